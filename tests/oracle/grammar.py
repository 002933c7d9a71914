"""A program is a choice on every axis. What Python refuses on any machine is no program."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from oracle import homes, launch, loader, methods, parent, values, work


@dataclass(frozen=True)
class Choice:
    """One program."""

    touch: str
    place: str
    when: str  # before the launcher is made, between its making and its use, after
    rounds: int
    remade: bool  # the launcher is made anew in every round
    launcher: str
    library: str
    method: str
    chosen: str
    home: str
    work: str
    channel: str
    form: str
    handling: str
    made: str  # the value: before the launcher is made, or between
    table_at: str  # a global value: module, guard, main
    framed: bool
    size: int
    with_block: bool
    respawn: bool
    consume: str
    workers: int
    pin: bool
    persistent: bool
    shuffle: bool

    @property
    def effective(self) -> str:
        """The start method that the launcher really uses on Linux before Python 3.14."""
        if self.launcher == "mp_spawn":
            return "spawn"
        if self.launcher == "start_processes":
            return "spawn" if self.method == "default" else self.method
        if self.launcher in (*launch.THREADS, *launch.JOBLIB_THREADS, "thread"):
            return "thread"
        if self.launcher in ("joblib_loky", "joblib_default", "joblib_generator"):
            return "loky" if self.size > 1 else "thread"
        if self.launcher.startswith("joblib") and self.size == 1:
            return "thread"
        if self.launcher in launch.FORKS:
            return "fork"
        if self.launcher == "loader" and self.workers == 0:
            return "thread"
        return "fork" if self.method == "default" else self.method


def draw(seed: int) -> Choice:
    """The program of a seed: a launcher, a channel, and choices on the other axes until they fit together."""
    rng = random.Random(seed)
    while True:
        launcher = rng.choice(_WEIGHTED)
        channel = "none" if rng.random() < 0.3 else rng.choice(_channels(launcher))
        for _ in range(_PATIENCE):
            choice = _attempt(rng, launcher, channel)
            if legal(choice):
                return choice


_EVERYWHERE = ("argument", "argument", "partial", "bound", "closure", "global")


def _channels(launcher: str) -> tuple[str, ...]:
    """What can cross to the workers of a launcher."""
    if launcher == "loader":
        return ("partial", "bound", "closure", "global", "result", "dataset", "dataset", "dataset")
    if launcher in launch.PROCESSES:
        return (*_EVERYWHERE, "queue", "queue", "queue_result", "pipe", "pipe_result")
    if launcher not in launch.RETURNS:
        return _EVERYWHERE
    channels = (*_EVERYWHERE, "generator", "result")
    return channels if launcher in launch.JOBLIB else (*channels, "initargs")


_PATIENCE = 1000  # a subclass of Process calls its code by name, and so has no partial of its own


def _attempt(rng: random.Random, launcher: str, channel: str) -> Choice:
    loads = launcher == "loader"
    returned = channel in ("none", "result", *values.SHARED_RESULT)
    form = "number" if returned else rng.choice(tuple(values.FORMS))
    method = "default" if rng.random() < 0.4 else rng.choice(methods.METHODS)
    touch = rng.choice(tuple(parent.TOUCHES))
    silent = not parent.TOUCHES[touch].lines
    rounds = rng.choice((1, 1, 2))
    home = rng.choice(loader.HOMES if loads else homes.HOMES)
    idle = home == "default_collate" or rng.random() < 0.15
    return Choice(
        touch=touch,
        place="inline" if silent else rng.choice(parent.PLACES),
        when="before" if silent else rng.choice(("before", "before", "between", "after")),
        rounds=rounds,
        remade=rounds == 1 or launcher in (*launch.PROCESSES, "thread") or rng.random() < 0.5,
        launcher=launcher,
        library=rng.choice(tuple(methods.LIBRARIES)),
        method=method,
        chosen="default" if method == "default" else rng.choice(methods.CHOSEN[1:]),
        home=home,
        work="nothing" if idle else rng.choice(tuple(work.WORKS)),
        channel=channel,
        form=form,
        handling="ignore" if channel == "none" else rng.choice(values.handlings("tensor" if returned else form)),
        made="before" if loads else rng.choice(("before", "between")),
        table_at=rng.choice(("module", "module", "guard", "main")) if channel == "global" else "module",
        framed=rng.random() < 0.75,
        size=1 if loads else rng.choice((1, 2)),
        with_block=launcher in launch.OPENED and rng.random() < 0.5,
        respawn=launcher in launch.POOLS and rng.random() < 0.15,
        consume=rng.choice(("count", "sum", "cuda")) if loads else "count",
        workers=rng.choice((0, 1, 2)) if loads else 0,
        pin=loads and rng.random() < 0.4,
        persistent=loads and rng.random() < 0.3,
        shuffle=loads and rng.random() < 0.2,
    )


_LIGHT = [name for name in launch.LAUNCHERS if not name.startswith(("joblib", "pool"))]
_WEIGHTED = (*_LIGHT, *_LIGHT, *launch.POOLS, *launch.JOBLIB, *["loader"] * 10, "process", "process", "os_fork")


# -- what Python allows --------------------------------------------------------------------------------------

Law = Callable[[Choice], bool]


def legal(choice: Choice) -> bool:
    """Whether the choices fit together and each says something."""
    laws = _LOADER_LAWS if choice.launcher == "loader" else _TASK_LAWS
    return all(law(choice) for law in (*_LAWS, *laws))


def _method_fits(c: Choice) -> bool:
    """A context must have a taker; a process subclass is tied to its base, made at import."""
    if c.chosen == "parameter" and not c.framed:
        return False
    if c.launcher == "start_processes":
        return c.chosen in ("default", "context")  # it takes the name itself
    if c.launcher in ("mp_spawn", "thread", *launch.FORKS, *launch.THREADS, *launch.JOBLIB):
        return c.chosen == "default" or c.chosen in methods.SETTERS
    if c.launcher == "process_subclass":
        return c.chosen in ("default", "context", "module_context", *methods.SETTERS)
    return True


def _touch_fits(c: Choice) -> bool:
    """Without a statement there is no place and no time for it; at import or under the guard comes first."""
    if not parent.TOUCHES[c.touch].lines:
        return c.place == "inline" and c.when == "before"
    return c.place not in ("module", "guard") or c.when == "before"


def _global_fits(c: Choice) -> bool:
    if c.channel != "global":
        return c.table_at == "module"
    return c.table_at != "main" or c.framed


def _results_fit(c: Choice) -> bool:
    if c.channel not in ("result", *values.SHARED_RESULT):
        return True
    if c.channel in values.SHARED_RESULT:  # CPU tensors fail there too, for a reason of their own
        return c.work in ("cuda_method", "to", "factory")
    return work.WORKS[c.work].tensor


_LAWS: tuple[Law, ...] = (_method_fits, _touch_fits, _global_fits)


def _has_value(c: Choice) -> bool:
    return c.channel in ("none", "result", *values.SHARED_RESULT) or c.form != "number"


def _task_channel(c: Choice) -> bool:
    """Which channel a launcher has."""
    process = c.launcher in launch.PROCESSES
    by_channel = {
        "argument": c.home != "initializer",
        "generator": c.launcher in (*launch.POOLS, *launch.EXECUTORS, *launch.JOBLIB) and c.home != "initializer",
        "partial": c.home in homes.PARTIAL,
        "bound": c.home in homes.BOUND,
        "closure": c.home == "nested",
        "queue": process and c.home != "initializer",
        "initargs": c.home == "initializer",
        "result": c.launcher in launch.RETURNS and c.home != "initializer",
        "queue_result": process,
        "pipe": process and c.home != "initializer" and c.size == 1,  # two readers would tear messages apart
        "pipe_result": process and c.size == 1,
        "dataset": False,
    }
    return by_channel.get(c.channel, True)


def _task_home(c: Choice) -> bool:
    """Initializers belong to pools; functions without a name cannot be pickled, whatever CUDA does."""
    if c.home not in homes.HOMES:
        return False
    if c.home == "initializer":
        return c.launcher in (*launch.POOLS, *launch.EXECUTORS, *launch.THREADS) and not c.respawn
    if c.home == "nested" and not c.framed:
        return False
    if c.launcher == "process_subclass":  # run() calls it by its name
        return c.home in ("function", "deep", "wrapped", "staticmethod", "classmethod")
    if c.home in homes.LOCAL:
        return _local_fits(c)
    return True


def _local_fits(c: Choice) -> bool:
    """A spawned lambda is CUD108's, in programs with a GPU framework; a pickled one fails under fork as well."""
    if c.launcher.startswith("joblib"):
        return c.launcher not in ("joblib_multiprocessing", "joblib_config") or c.size == 1
    if c.effective in ("spawn", "forkserver"):
        return "torch" in _frameworks(c)
    return c.effective == "thread" or c.launcher in (*launch.PROCESSES, *launch.FORKS, *launch.RANKS)


def _frameworks(c: Choice) -> str:
    lines = (*parent.TOUCHES[c.touch].imports, *work.WORKS[c.work].imports, *values.FORMS[c.form].imports)
    return " ".join(lines)


def _task_shape(c: Choice) -> bool:
    """Options exist only where the launcher has them; processes start once."""
    if c.respawn and (c.launcher not in launch.POOLS or (c.size > 1 and c.rounds == 1)):
        return False
    if c.launcher not in launch.OPENED and c.with_block:
        return False
    if c.launcher == "joblib_config" and c.with_block:
        return False
    if c.launcher in (*launch.PROCESSES, "thread") and not c.remade:
        return False
    if c.rounds == 1 and not c.remade:
        return False
    return (c.workers, c.pin, c.persistent, c.shuffle) == (0, False, False, False)


def _task_value(c: Choice) -> bool:
    """A value that main() hands over when the launcher is made exists before."""
    early = c.launcher in (*launch.PROCESSES, "thread") and c.channel not in values.SHARED
    if c.channel in ("argument", "partial", "bound") and not early:
        return True
    return c.channel in values.SHARED or c.made == "before"


def _task_handling(c: Choice) -> bool:
    if c.channel in ("result", *values.SHARED_RESULT):
        return c.handling in ("ignore", "shape", "sum")
    return c.handling in values.handlings(c.form)


_TASK_LAWS: tuple[Law, ...] = (
    _has_value,
    _task_channel,
    _task_home,
    _task_shape,
    _task_value,
    _task_handling,
    _results_fit,
    lambda c: c.consume == "count",
)


def _loader_channel(c: Choice) -> bool:
    if c.home not in loader.HOMES:
        return False
    by_channel = {
        "partial": c.home == "collate_partial",
        "bound": c.home in ("collate_bound", "collate_callable", "transform"),
        "closure": c.home == "collate_nested",
        "dataset": c.home in ("getitem", "getitem_deep", "iterable", "default_collate"),
        "result": c.home not in ("worker_init", "default_collate"),
        "none": c.home != "default_collate" or c.work == "nothing",
        "global": c.home != "default_collate",
    }
    return by_channel.get(c.channel, False)


def _loader_value(c: Choice) -> bool:
    if c.home == "default_collate" and c.channel == "dataset":
        return c.form in ("cpu_tensor", "tensor", "tensor_cuda", "derived") and c.work == "nothing"
    if c.channel == "result":
        return c.handling == "ignore"
    return c.handling in values.handlings(c.form)


def _loader_shape(c: Choice) -> bool:
    if c.respawn or c.with_block or c.size > 1 or c.made != "before":
        return False
    if c.workers == 0 and (c.persistent or c.chosen in methods.CONTEXTS):
        return False
    if c.rounds == 1 and not c.remade:
        return False
    if c.home == "iterable" and c.shuffle:
        return False
    return c.home != "collate_nested" or c.framed


_LOADER_LAWS: tuple[Law, ...] = (_has_value, _loader_channel, _loader_value, _loader_shape, _results_fit)
