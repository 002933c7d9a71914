"""A launch before anything runs: its start methods, its tasks, how it fails."""

from __future__ import annotations

from cudalint.machine import questions
from cudalint.machine.frame import Raised
from cudalint.machine.heap import Instance, LibraryObject
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch.crossing import Pickler
from cudalint.machine.outcome import Outcome
from cudalint.machine.state import Launch, State
from cudalint.machine.trace import Chain, Site
from cudalint.machine.values import NONE, Const, Lib, Ref, Task, Value, strings
from cudalint.structs import Frozen, Mutable, field, replace

FRESH = frozenset({"spawn", "forkserver", "loky"})
# The start method of a default context where the Pythons in range have different ones.
BY_PYTHON = "<by Python>"


class Way(Frozen):
    """One start method that a launch may use; ``certain`` where it is the only one on this path."""

    method: str
    certain: bool
    condition: str | None = None
    explicit: bool = False


def ways(machine: Machine, state: State, library: str, context: Value | None) -> list[Way]:
    """The start methods a launch may use: its context's, else the library's default."""
    if context is not None and context != (Const(None),):
        names = _context_methods(machine, context, state)
        if names == [BY_PYTHON]:
            return [Way(n, True, c) for n, c in machine.host.defaults()]
        if names is not None and "default" not in names:
            return [Way(n, len(names) == 1, explicit=True) for n in names if n != "?"]
    method = state.process.method(library)
    if method.names is None:
        return [Way(n, True, c) for n, c in machine.host.defaults()]
    found: list[Way] = []
    for name in method.names:
        if name == "default":
            found.extend(Way(n, False, c) for n, c in machine.host.defaults())
        elif name != "?":
            found.append(Way(name, len(method.names) == 1, explicit=True))
    return found


def _context_methods(machine: Machine, context: Value, state: State) -> list[str] | None:
    result: list[str] = []
    for atom in questions.if_unset(context):
        found = state.get(atom) if isinstance(atom, Ref) else None
        if isinstance(found, LibraryObject) and "<method>" in found.fields:
            given = questions.if_unset(found.fields["<method>"])
            names = strings(given)
            result.extend(names if len(names) == len(given) else [*names, "?"])
        elif isinstance(atom, Const) and isinstance(atom.value, str):
            result.append(atom.value)
        elif isinstance(found, Instance):
            result.append(_method_of_class(machine, found.cls, state) or "?")
        elif isinstance(atom, Lib):
            return None
        else:
            result.append("?")
    return result


def _method_of_class(machine: Machine, cls: Ref, state: State) -> str | None:
    """The start method of a program's own context, which derives from one of the library's."""
    bases = (machine.library.function(entry) for entry in machine.mro(cls, state) if isinstance(entry, str))
    found = [spec.get("value") for spec in bases if spec is not None and spec.get("does") == "method.context"]
    return next((name for name in found if isinstance(name, str)), None)


def fix_default(machine: Machine, state: State, library: str, site: Site, what: str) -> None:
    """Using the default context settles the start method: setting it later raises."""
    method = state.process.method(library)
    if method.fixed is None:
        where = machine.chain(state, site, f"{what} settles the start method")
        state.process = state.process.with_method(library, replace(method, fixed=where))


def fix_by_fresh(machine: Machine, state: State, library: str, context: Value, site: Site) -> None:
    """A fresh process is sent its parent's default start method, which settles that, whichever context starts it."""
    names = _context_methods(machine, context, state) if context != NONE else None
    if names and set(names) <= {"spawn", "forkserver"}:
        fix_default(machine, state, library, site, "starting a fresh process")


class Start(Frozen):
    """One launch: what starts what, how, and what its failures look like.

    ``tasks`` are the calls the worker makes, in order; ``initializer`` runs before them. ``pickled`` values
    travel; ``inherited`` ones travel only where the child does not fork. ``adds_up`` says that each call brings one
    more worker, as each submitted task may. ``made`` is the call that made the launcher, where that is not the anchor;
    ``renewed`` says that workers are replaced after some tasks; ``context`` is the context it was made from,
    ``keyword`` the parameter that takes one, the ``place``-th; ``waits``: the call returns when all workers have ended;
    ``each``: there are as many workers as there are things of some kind; ``looks``: the launcher itself refuses a
    process that used CUDA, so that an unseen caller is told of it; ``dropped``: nothing takes what the workers give;
    ``ends``: a worker ends after some tasks, while its parent goes on; ``fresh_main``: no fork server imports main.
    """

    launcher: str
    family: str
    anchor: Site
    chain: Chain
    many: bool
    reused: bool
    daemon: bool
    failures: dict[str, str]
    library: str = "multiprocessing"
    initializer: Task | None = None
    initializer_anchor: Site | None = None
    tasks: tuple[Task, ...] = ()
    pickled: tuple[Value, ...] = ()
    inherited: tuple[Value, ...] = ()
    pickler: Pickler = Pickler.NAMES
    rank: str | None = None
    environment: tuple[tuple[str, Value], ...] = ()
    shares: bool = True
    label: str = "worker"
    count: int | None = None
    rounds: int = 2
    adds_up: bool = False
    made: Site | None = None
    renewed: bool = False
    context: Value = NONE
    keyword: str = ""
    place: int = 0
    waits: bool = False
    listens: bool = False
    each: bool = False
    looks: bool = False
    dropped: bool = False
    ends: bool = False
    fresh_main: bool = False

    @property
    def copies(self) -> bool:
        """Whether values on the GPU go as copies: only multiprocessing's own pickler knows how torch shares them."""
        return self.family == "joblib" or self.pickler is not Pickler.NAMES


class Ended(Mutable):
    """What became of a launch: the children that ended well, and how the first that failed did.

    ``began``: whether any came to its work. ``raised``: the exceptions that tasks end with, as the program raises them,
    and the path of the child on which it does.
    """

    failed: Outcome | None
    children: list[tuple[State, Value]]
    began: bool = False
    raised: list[tuple[State, Raised]] = field(default_factory=list)


def launch_of(start: Start, way: Way, stage: str, anchor: Site) -> Launch:
    """What the outcomes of a worker need to know of its launch."""
    return Launch(
        launcher=start.launcher,
        family=start.family,
        method=way.method,
        many=start.many,
        reused=start.reused,
        stage=stage,
        failure=start.failures.get(stage, start.failures.get("body", "crash")),
        certain=way.certain,
        anchor=anchor,
        chain=start.chain,
        condition=way.condition,
        shares=start.shares,
        each=start.each,
        chosen=way.explicit,
    )
