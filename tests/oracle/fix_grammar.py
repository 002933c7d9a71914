"""Broken programs for repairs: a worker that is forked after CUDA and that reads what its parent set."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from oracle import homes, inherited, launch, methods
from oracle.inherited import State
from oracle.states import FAMILIES, STATES

TOUCHES = (
    "is_available",
    "init",
    "tensor",
    "tensor_cuda",
    "tensor_to",
    "matmul",
    "model_cuda",
    "device_name",
    "device_properties",
    "synchronize",
)
TOUCHED_AT = ("inline", "helper", "deep", "method", "init", "guard")
LAUNCHERS = (
    *launch.POOLS,
    *launch.EXECUTORS,
    *launch.PROCESSES,
    "joblib_multiprocessing",
    "joblib_config",
    "start_processes",
    "loader",
)
HOMES = (*(home for home in homes.HOMES if home != "initializer"), "module")
CHOSEN = ("default", "context", "alias", "module_context", "set_guard", "set_main")
CHANNELS = ("return", "queue", "file", "print")
MADE_IN = ("main", "handler", "branches")
CROSSINGS = ("none", "value", "own", "any")
ARGUMENTS = ("number", "list", "dict", "dataclass", "tensor")
RESULTS = ("pairs", "text", "dict", "dataclass", "tensor")


@dataclass(frozen=True)
class Broken:
    """One program. What a worker prints, writes or returns is its own result and its view of each state."""

    states: tuple[str, ...]
    placed: str
    state_first: bool  # the state is set before CUDA is used
    touch: str
    touched_at: str
    launcher: str
    library: str
    chosen: str
    home: str
    channel: str
    crossing: str  # the exception that the worker raises and that main() waits for
    argument: str
    result: str
    framed: bool
    size: int
    with_block: bool
    single: bool  # one task
    made_in: str = "main"  # where main() makes what starts the workers, which it uses behind that

    @property
    def kinds(self) -> tuple[State, ...]:
        """The states themselves."""
        return tuple(STATES[name] for name in self.states)


def draw_broken(seed: int) -> Broken:
    """The program of a seed: a launcher and states, and choices on the other axes until they fit together."""
    rng = random.Random(f"repairs {seed}")
    while True:
        launcher = rng.choice(_WEIGHTED)
        states = tuple(_state(rng) for _ in range(rng.choice((1, 1, 1, 2))))
        for _ in range(_PATIENCE):
            choice = _attempt(rng, launcher, states)
            if legal(choice):
                return choice


_PATIENCE = 1000  # two states may exclude each other, and some mean nothing to some launchers


def _attempt(rng: random.Random, launcher: str, states: tuple[str, ...]) -> Broken:
    channel = rng.choice(("return", "return", "return", "file", "print"))
    if launcher in launch.PROCESSES:
        channel = rng.choice(("queue", "queue", "file", "print"))
    once = any(STATES[name].once for name in states)
    opened = launcher in launch.OPENED and launcher != "joblib_config"
    return Broken(
        states=states,
        placed=rng.choice((*inherited.PLACES, "inline")),
        state_first=rng.random() < 0.5,
        touch=rng.choice(TOUCHES),
        touched_at=rng.choice(("inline", *TOUCHED_AT)),
        launcher=launcher,
        library=rng.choice(tuple(methods.LIBRARIES)),
        chosen=rng.choice(("default", "default", "default", *CHOSEN)),
        home=rng.choice(("function", "module", *HOMES)),
        channel=channel,
        crossing=rng.choice(("none", "none", "none", *CROSSINGS)),
        argument=rng.choice(ARGUMENTS),
        result=rng.choice(RESULTS),
        framed=rng.random() < 0.75,
        size=rng.choice((1, 2)),
        with_block=opened and rng.random() < 0.5,
        single=once or channel == "print" or rng.random() < 0.2,
        made_in=rng.choice(("main", "main", *MADE_IN)),
    )


def _state(rng: random.Random) -> str:
    return rng.choice(tuple(FAMILIES[rng.choice(_FAMILIES)]))


# Of those that inherit nothing more than a share: they are the ones of which repairs can be safe.
_FAMILIES = (
    "program",
    "program",
    "reached",
    "modules",
    "modules",
    "process",
    "libraries",
    "repeated",
    "carried",
    "stays",
    *["nothing"] * 4,
)
_LIGHT = ("joblib_multiprocessing", "joblib_config", *launch.EXECUTORS, "start_processes")
_SHARE_OUT = (*launch.POOLS, *launch.EXECUTORS, "joblib_multiprocessing", "joblib_config")
_WEIGHTED = (*launch.POOLS, *_LIGHT, *launch.PROCESSES * 2, *["loader"] * 4)

Law = Callable[[Broken], bool]


def legal(choice: Broken) -> bool:
    """Whether the choices fit together and each says something."""
    return all(law(choice) for law in _LAWS)


def _states_fit(c: Broken) -> bool:
    if len(set(c.states)) < len(c.states) or sum(bool(kind.around) for kind in c.kinds) > 1:
        return False
    if c.home == "module" and not all(kind.portable for kind in c.kinds):
        return False
    if c.placed != "inline" and not any(kind.set for kind in c.kinds):
        return False
    return c.launcher != "loader" or all(kind.loader for kind in c.kinds)


def _method_fits(c: Broken) -> bool:
    """A context must have a taker; a process subclass is tied to its base, made at import."""
    if c.launcher.startswith("joblib") or c.launcher == "start_processes":
        return c.chosen in ("default", *(() if c.launcher == "start_processes" else methods.SETTERS))
    if c.launcher == "process_subclass":
        return c.chosen in ("default", "context", "module_context", *methods.SETTERS)
    return True


def _home_fits(c: Broken) -> bool:
    """A subclass of Process and a dataset call their code by its name."""
    if c.launcher in ("process_subclass", "loader"):
        return c.home in ("function", "deep", "wrapped", "staticmethod", "classmethod", "module")
    if c.home in homes.LOCAL:  # what has no name cannot be pickled, whatever CUDA does
        nested = c.framed or c.home == "lambda"
        return nested and c.launcher in ("process", "process_keywords", "start_processes")
    return True


def _channel_fits(c: Broken) -> bool:
    allowed = {
        "return": c.launcher in (*launch.RETURNS, "loader"),
        "queue": c.launcher in launch.PROCESSES,
        "file": c.result == "pairs",
        "print": c.result == "pairs" and c.single,
    }
    if c.channel == "file" and any("chdir" in line for kind in c.kinds for line in kind.top):
        return False  # its name would be another file
    if c.channel == "queue" and c.argument != "number":  # its tasks have nothing but the queue
        return False
    return allowed[c.channel]


def _crossing_fits(c: Broken) -> bool:
    """Processes do not tell their parent; of a rank or a loader's worker the exception is another one."""
    if c.crossing == "none":
        return True
    if c.launcher in (*launch.PROCESSES, "start_processes"):
        return False
    return c.launcher != "loader" or c.crossing == "any"


def _shape_fits(c: Broken) -> bool:
    if c.launcher == "loader" and (c.size > 1 or c.with_block):
        return False
    if c.launcher in ("joblib_multiprocessing", "joblib_config") and c.size == 1:  # it runs tasks itself
        return False
    if any(kind.once for kind in c.kinds) and not c.single:
        return False
    if any(kind.carried for kind in c.kinds) and not _shares_tasks_out(c):
        return False
    if any(kind.stays for kind in c.kinds) and c.touch == "is_available":  # nothing is said of forks that stay forks
        return False
    workers_by_items = c.launcher in (*launch.PROCESSES, "start_processes")
    return not workers_by_items or c.size == (1 if c.single else 2)


def _shares_tasks_out(c: Broken) -> bool:
    """Whether workers share tasks out; where nothing but a question needs another form, they are forked as before."""
    return c.launcher in _SHARE_OUT and c.size > 1 and not c.single and c.touch != "is_available"


def _making_fits(c: Broken) -> bool:
    """What is made by a `with` statement is used there."""
    return c.made_in == "main" or (c.launcher in launch.MADE_BEFORE and not c.with_block)


_LAWS: tuple[Law, ...] = (
    _states_fit, _method_fits, _home_fits, _channel_fits, _crossing_fits, _shape_fits, _making_fits,
)  # fmt: skip
