"""What goes wrong while values are pickled to a worker, or looked up by name in it."""

from __future__ import annotations

from dataclasses import replace

from cudalint.machine.heap import Closure, LibraryObject
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch.crossing import Carried, Pickler, carried
from cudalint.machine.launch.launching import FRESH, Start, Way, launch_of
from cudalint.machine.outcome import Kind, Outcome
from cudalint.machine.reporting import outcome_of
from cudalint.machine.state import Launch, State
from cudalint.machine.values import TRUE, Atom, Bound, Const, Partial, Ref, Task, Value, strings


def crossing_error(
    machine: Machine, state: State, start: Start, way: Way, launch: Launch, forked_from: State
) -> Outcome | None:
    """Outcomes of pickling; the first that is certain to fail is returned, and ends the child's path."""
    fresh = way.method in FRESH
    values = [*start.pickled, *(start.inherited if fresh else ())]
    sent: list[Carried] = [c for v in values for c in carried(v, state, start.pickler)]
    blocked: Outcome | None = None
    for found in sent:
        outcome = _crossing_outcome(machine, state, start, way, launch, forked_from, found, fresh)
        if outcome is None:
            continue
        machine.emit(replace(outcome, within=start.anchor))
        if outcome.how in ("crash", "hang", "child-death") and found.certain and way.certain:
            blocked = blocked or outcome
    return blocked


def _crossing_outcome(
    machine: Machine,
    state: State,
    start: Start,
    way: Way,
    launch: Launch,
    forked_from: State,
    found: Carried,
    fresh: bool,
) -> Outcome | None:
    base = outcome_of(
        machine,
        Kind.CUDA_ACROSS,
        start.anchor,
        "cost",
        certain=found.certain and way.certain,
        cause=found.origin,
        launcher=start.launcher,
        subject=found.what,
        condition=way.condition,
        started=start.chain,
    )
    if found.what == "unpicklable":
        return replace(base, kind=Kind.UNPICKLABLE_CUDA, how="crash")
    if found.what == "lock":
        return _lock_outcome(machine, base, found, state, way, start) if fresh else None
    if found.what == "numba.cuda.devicearray":
        return replace(base, kind=Kind.UNPICKLABLE_CUDA, how="crash")
    if way.method == "loky":
        return replace(base, kind=Kind.CUDA_THROUGH_JOBLIB)
    if fresh:
        return base
    parent = forked_from.process
    if parent.driver is None and parent.poison is None:
        # joblib's own pickler copies through the host: it knows nothing of torch's CUDA IPC.
        return replace(base, kind=Kind.CUDA_THROUGH_JOBLIB) if start.family == "joblib" else base
    return replace(base, kind=Kind.CUDA_TO_FORK, how=launch.failure)


def _lock_outcome(
    machine: Machine, base: Outcome, found: Carried, state: State, way: Way, start: Start
) -> Outcome | None:
    obj = state.get(found.atom) if isinstance(found.atom, Ref) else None
    if not isinstance(obj, LibraryObject) or start.family in ("joblib",):
        return None
    methods = strings(obj.fields.get("<lock>", ()))
    if not methods or "fork" not in methods:
        return None
    if not way.explicit and obj.fields.get("<default>") == TRUE:
        # Both follow the default, and so each other, whatever it is.
        return None
    how = start.failures.get("parent", "crash")
    certain = methods == ["fork"] and machine.record.cut is None
    return replace(base, kind=Kind.FOREIGN_LOCK, how=how, certain=certain, detail=obj.type)


def lookup_error(machine: Machine, state: State, start: Start, launch: Launch, name: str) -> Outcome | None:
    """A worker that the child cannot find by name."""
    if not machine.options.uses_gpu or (
        "<" not in name and (machine.options.assumed or machine.options.in_test or machine.record.cut is not None)
    ):
        # Without its main, or all of its imports, nothing says what a fresh process would find under a name.
        return None
    what = "a lambda" if "<lambda>" in name else f"the local function {name.rpartition('.')[2]}"
    if "<" not in name:
        what = f"{name}, which only the main guard defines"
    outcome = outcome_of(
        machine,
        Kind.UNPICKLABLE_TARGET,
        start.anchor,
        "crash",
        certain=launch.certain,
        launcher=start.launcher,
        subject=what,
        condition=launch.condition,
        within=start.anchor,
        started=start.chain,
    )
    machine.emit(outcome)
    return outcome


def nameless_error(machine: Machine, state: State, start: Start, way: Way) -> Outcome | None:
    """A lambda or local function is refused when it is pickled, before the child is anything."""
    if way.method not in FRESH or start.pickler is not Pickler.NAMES:
        return None
    names = [unpicklable_task(state, t.function) for t in (start.initializer, *start.tasks) if t is not None]
    name = next((n for n in names if n is not None), None)
    return None if name is None else lambda_task(machine, state, start, way, name)


def unpicklable_task(state: State, function: Value) -> str | None:
    """The name of a lambda or local function where a task names one: pools pickle tasks under any method."""
    for atom in function:
        target: Atom = atom
        while isinstance(target, Partial | Task):
            target = target.function[0] if target.function else Const(None)
        if isinstance(target, Bound):
            target = target.function
        found = state.get(target) if isinstance(target, Ref) else None
        if isinstance(found, Closure) and "<" in found.address[1]:
            return found.address[1]
    return None


def lambda_task(machine: Machine, state: State, start: Start, way: Way, name: str) -> Outcome | None:
    """A lambda handed to a pool: pickling it fails whatever the start method."""
    return lookup_error(machine, state, start, launch_of(start, way, "unpickle", start.anchor), name)
