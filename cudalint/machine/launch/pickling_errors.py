"""What goes wrong while values are pickled to a worker, or looked up by name in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cudalint.machine.frame import Frame
from cudalint.machine.heap import (
    BY_PATH,
    ENTERED,
    NAMESPACE,
    Class,
    Closure,
    Dict,
    Instance,
    LibraryObject,
    Object,
    Scope,
    Sequence,
)
from cudalint.machine.interpreter import Machine
from cudalint.machine.interpreter.entry import LIVES_ON
from cudalint.machine.launch.crossing import (
    SENT_ON,
    Carried,
    Pickler,
    as_called,
    carried,
    has_reducer,
    pickles_itself,
    visited,
    what_runs,
)
from cudalint.machine.launch.launching import FRESH, Start, Way, launch_of
from cudalint.machine.launch.pickling import STARTED
from cudalint.machine.outcome import Kind, Outcome
from cudalint.machine.reporting import outcome_of
from cudalint.machine.state import Launch, Process, State
from cudalint.machine.values import (
    NONE,
    TRUE,
    Atom,
    Bound,
    Const,
    Lib,
    Partial,
    Ref,
    Task,
    Unknown,
    Value,
    const,
    only,
    strings,
)
from cudalint.structs import replace

# How deep objects within the object that is called are looked into.
_DEEPEST = 3
# What multiprocessing has a way of its own to send.
_SENT = frozenset({"socket.socket"})
# Bases of libraries that add nothing to how objects are pickled.
_PLAIN_BASES = ("builtins.object", "abc.ABC", "typing.", "multiprocessing.", "torch.utils.data.", "torch.nn.Module")


def crossing_error(
    machine: Machine, state: State, start: Start, way: Way, launch: Launch, forked_from: State
) -> Outcome | None:
    """Outcomes of pickling; the first that is certain to fail is returned, and ends the child's path."""
    fresh = way.method in FRESH
    values = _sent(start, fresh)
    sent = [(c, state, v) for v in values for c in carried(v, state, start.pickler)]
    blocked = _refused(machine, state, start, way, values)
    by_hooks = [(c, then, v) for v in values for c, then in _given_by_hooks(machine, v, state, start)]
    for found, seen, value in [*sent, *by_hooks]:
        if fresh and found.what == "lock" and _comes_with_task(value, start):
            found = replace(found, what=_WITH_TASK)
        outcome = _crossing_outcome(machine, seen, start, way, launch, forked_from, found, fresh)
        if outcome is None:
            continue
        machine.emit(replace(outcome, within=start.anchor))
        if outcome.how in ("crash", "hang", "child-death") and found.certain and way.certain:
            blocked = blocked or outcome
    return blocked


def _sent(start: Start, fresh: bool) -> list[Value]:
    """What is pickled for the workers of a launch."""
    called = [task.function for task in start.tasks]
    return [as_called(v) if v in called else v for v in (*start.pickled, *(start.inherited if fresh else ()))]


def arriving_error(
    machine: Machine, state: State, start: Start, way: Way, launch: Launch, child: Process
) -> Outcome | None:
    """What a worker cannot open that a fork server forked after it used CUDA itself."""
    if child.poison is None:
        return None
    sent = (c for value in _sent(start, fresh=True) for c in carried(value, state, start.pickler))
    found = next((one for one in sent if one.is_picklable and one.what != "lock"), None)
    if found is None:
        return None
    outcome = outcome_of(
        machine,
        state,
        Kind.CUDA_TO_FORK,
        start.anchor,
        launch.failure,
        certain=found.certain and way.certain,
        cause=child.poison,
        launcher=start.launcher,
        subject=found.what,
        condition=way.condition,
        started=start.chain,
        within=start.anchor,
    )
    machine.emit(outcome)
    return outcome if outcome.certain else None


def _refused(machine: Machine, state: State, start: Start, way: Way, values: list[Value]) -> Outcome | None:
    """What pickle refuses wherever it goes: the first that is seen; it ends the child's path where it is certain."""
    if not machine.options.uses_gpu:
        return None
    seen = (one for value in values for one in never_pickled(machine, value, state))
    # A pool pickles what it hands to a forked worker, too; but with a lock it fails wherever it runs. dill and others
    # have ways to send locks and files. What is only one of several may be chosen with who takes it: an event of
    # threads with threads.
    strict = way.method in FRESH and start.pickler is Pickler.NAMES
    found = next((one for one in seen if one.runs or (strict and one.certain)), None)
    if found is None:
        return None
    outcome = outcome_of(
        machine,
        state,
        Kind.UNPICKLABLE_TARGET,
        start.anchor,
        "crash",
        certain=found.certain and way.certain,
        launcher=start.launcher,
        subject=found.what,
        detail=found.where and f" ({found.where})",
        condition=way.condition,
        within=start.anchor,
        started=start.chain,
    )
    machine.emit(outcome)
    return outcome if outcome.certain else None


class _Refused(NamedTuple):
    """What no pickler takes, in words: a function that runs, or what belongs to its process.

    ``where`` is the attribute that keeps it, where it is not what is sent itself.
    """

    what: str
    certain: bool
    runs: bool
    where: str


class _Inside(NamedTuple):
    """What is pickled along with a value, and the attribute that keeps it, where one does."""

    value: Value
    where: str = ""


def never_pickled(
    machine: Machine, value: Value, state: State, certain: bool = True, depth: int = 0, where: str = ""
) -> Iterator[_Refused]:
    """What of a value no pickler takes, and whether it is sure to be there."""
    sure = certain and len(value) == 1
    for atom in value:
        found = state.get(atom) if isinstance(atom, Ref) else None
        runs = what_runs(found, state)
        what = runs or _of_its_process(machine, atom, found, state)
        if what is not None:
            yield _Refused(what, sure, runs is not None, where)
        elif depth < _DEEPEST:
            for inner in _plainly_inside(machine, atom, found, state):
                yield from never_pickled(machine, inner.value, state, sure, depth + 1, inner.where or where)


def _of_its_process(machine: Machine, atom: Atom, found: Object | None, state: State) -> str | None:
    """What holds a lock, a file or another resource of its process; modules belong to one, too."""
    kinds: list[str] = []
    match atom, found:
        case Lib(path=path), _:
            return None if "." in path else f"the module {path}"
        case Unknown(sym=("call", _, _, _, str(path), *_)), _:
            kinds = [path]
        case _, (LibraryObject(fields=fields) | Instance(attributes=fields)) if STARTED in fields:
            return "a process that was started"
        case _, LibraryObject(type=kind):
            kinds = [kind]
        case _, Instance(cls=cls) if not pickles_itself(found, state):
            kinds = [base for base in machine.mro(cls, state) if isinstance(base, str)]
    kept = (k for k in kinds if k not in _SENT and _stays(machine, k) and not has_reducer(k, state))
    return next((f"an object of {kind}" for kind in kept), None)


def _stays(machine: Machine, kind: str) -> bool:
    effect = machine.library.process_effect(kind)
    return effect is not None and not effect.pickles


def _plainly_inside(machine: Machine, atom: Atom, found: Object | None, state: State) -> list[_Inside]:
    """What is pickled along with a value that is a container, a call, or an object of a class of the program."""
    match atom, found:
        case Bound(may_be_data=False, receiver=receiver), _:
            return [_Inside((receiver,))]
        case ((Partial(args=args, kwargs=kwargs) | Task(args=args, kwargs=kwargs)), _):
            return [*map(_Inside, args), *(_Inside(value) for _, value in kwargs)]
        case _, Sequence(items=items, element=element):
            return [*map(_Inside, items or ()), _Inside(element)]
        case _, Dict(items=entries, element=element):
            return [*map(_Inside, entries.values()), _Inside(element)]
        case _, LibraryObject(type=kind, fields=fields) if kind == NAMESPACE:
            return [_Inside(value, f"`{name}`") for name, value in fields.items()]
        case _, Instance(cls=cls, attributes=attributes) if not pickles_itself(found, state):
            bases = [base for base in machine.mro(cls, state) if isinstance(base, str)]
            if not all(base.startswith(_PLAIN_BASES) for base in bases):
                return []
            kept = state.get(cls)
            of = f" of `{kept.name}`" if isinstance(kept, Class) else ""
            return [_Inside(v, f"`{name}`{of}") for name, v in attributes.items() if not name.startswith("<")]
    return []


def _given_by_hooks(machine: Machine, value: Value, state: State, start: Start) -> Iterator[tuple[Carried, State]]:
    """What is in what objects give that say themselves what is pickled of them, each with the state it is in."""
    for atom in visited(value, state):
        found = state.get(atom) if isinstance(atom, Ref) else None
        if not isinstance(found, Instance) or not pickles_itself(found, state):
            continue
        for name, args in (("__getstate__", []), ("__reduce__", []), ("__reduce_ex__", [const(4)])):
            hook = machine.user_method(found, name, state)
            if not isinstance(hook, Ref):
                continue
            frame = Frame(Ref(("module", start.anchor.module)), start.anchor.module)
            after = machine.call_value((Bound(hook, atom),), args, {}, state.clone(), frame, start.anchor)
            for then, gives in after:
                for one in carried(gives, then, start.pickler):
                    yield (one if len(after) == 1 else replace(one, certain=False)), then
            break


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
        state,
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
    if not found.is_picklable:
        return replace(base, kind=Kind.UNPICKLABLE_CUDA, how="crash")
    if found.what == _WITH_TASK:
        return _uninherited(base, found, state)
    if found.what == "lock":
        return _lock_outcome(machine, base, found, state, way, start) if fresh else None
    if way.method == "loky":
        return replace(base, kind=Kind.CUDA_THROUGH_JOBLIB)
    if found.is_received and not start.copies:
        return replace(base, kind=Kind.UNPICKLABLE_CUDA, how="crash", detail=SENT_ON)
    parent = forked_from.process
    is_untouched = parent.driver is None and parent.poison is None
    is_joblib = start.family == "joblib"
    if (fresh or (is_untouched and not is_joblib)) and (start.copies or not found.is_shared):
        # Through the host and once: what it costs is the context that each worker opens.
        return None
    if fresh:
        # Who blocks until all have ended holds what it sent for as long.
        return replace(base, benign=True, detail=LIVES_ON) if start.waits else base
    if is_untouched:
        # joblib's own pickler copies through the host: it knows nothing of torch's CUDA IPC.
        return replace(base, kind=Kind.CUDA_THROUGH_JOBLIB) if is_joblib else base
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
    chosen = state.process.method(start.library).names or ()
    if len(chosen) > 1 and start.context == obj.fields.get("<context>") == NONE and set(chosen) == set(methods):
        # Both follow what was set as the default, whichever of several methods that is.
        return None
    if isinstance(only(start.context or ()), Ref) and start.context == obj.fields.get("<context>"):
        # Both are of one context, whatever its method is.
        return None
    how = start.failures.get("parent", "crash")
    certain = methods == ["fork"] and machine.record.cut is None
    return replace(base, kind=Kind.FOREIGN_LOCK, how=how, certain=certain, detail=obj.type)


# The families of workers that are handed tasks once they are started; a lock that a task brings, and why it fails.
_TAKE_TASKS = frozenset({"pool", "executor"})
_WITH_TASK = "lock with a task"
_ONLY_INHERITED = ", which only a process that is being started can be given,"


def _comes_with_task(value: Value, start: Start) -> bool:
    """Whether something is sent to a worker that was started before; by ``initargs`` it would come in time."""
    takes = start.family in _TAKE_TASKS and start.pickler is Pickler.NAMES
    return takes and value in _sent(start, fresh=False)


def _uninherited(base: Outcome, found: Carried, state: State) -> Outcome | None:
    obj = state.get(found.atom) if isinstance(found.atom, Ref) else None
    if not isinstance(obj, LibraryObject):
        return None
    return replace(base, kind=Kind.UNPICKLABLE_TARGET, how="crash", subject=f"a {obj.type}", detail=_ONLY_INHERITED)


def lookup_error(machine: Machine, state: State, start: Start, launch: Launch, name: str) -> Outcome | None:
    """What the child does not find by its name."""
    if "<" in name:
        return _lost(machine, state, start, launch, _local(name))
    if machine.options.assumed or machine.options.in_test or machine.record.cut is not None:
        # Without its main, or all of its imports, nothing says what a fresh process would find under a name.
        return None
    if machine.program.is_notebook(machine.main):
        what = f"{name}, which a cell of the notebook defines,"
        return _lost(machine, state, start, launch, what, how=launch.failure)
    if machine.program.is_package_main(machine.main):
        what = f"{name}, which the package's __main__.py defines,"
        return _lost(machine, state, start, launch, what, how=launch.failure)
    return _lost(machine, state, start, launch, f"{name}, which only the main guard defines")


def module_error(machine: Machine, state: State, start: Start, launch: Launch, what: str) -> Outcome | None:
    """What goes by its name to a child that has no module of that name: it was imported by its path."""
    if machine.options.assumed or machine.options.in_test or machine.record.cut is not None:
        return None
    return _lost(machine, state, start, launch, f"{what}, which was imported by its path,", how=launch.failure)


def refusal(machine: Machine, state: State, start: Start, launch: Launch, what: str) -> Outcome | None:
    """An object whose own ``__getstate__`` raises, as it pickles what pickle refuses."""
    return _lost(machine, state, start, launch, f"{what}, whose __getstate__ raises,")


def _local(qualname: str) -> str:
    return "a lambda" if "<lambda>" in qualname else f"the local function {qualname.rpartition('.')[2]}"


def _lost(
    machine: Machine, state: State, start: Start, launch: Launch, what: str, how: str = "crash"
) -> Outcome | None:
    """A worker that cannot be sent by name."""
    if not machine.options.uses_gpu:
        return None
    outcome = outcome_of(
        machine,
        state,
        Kind.UNPICKLABLE_TARGET,
        start.anchor,
        how,
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
    """What cannot go by its name is refused when it is pickled, before the child is anything."""
    if way.method not in FRESH or start.pickler is not Pickler.NAMES:
        return None
    names = [unpicklable_task(state, t.function) for t in (start.initializer, *start.tasks) if t is not None]
    name = next((n for n in names if n is not None), None)
    return None if name is None else lambda_task(machine, state, start, way, name)


def unpicklable_task(state: State, function: Value) -> str | None:
    """The lambda or local function that a task names, or one whose name is another's, in words.

    Pools pickle tasks under any method.
    """
    return next((name for atom in function if (name := _unpicklable(atom, state)) is not None), None)


def _unpicklable(target: Atom, state: State, depth: int = 0) -> str | None:
    found = state.get(target) if isinstance(target, Ref) else None
    match target, found:
        case ((Partial(function=inner) | Task(function=inner)), _):
            return _unpicklable(inner[0], state, depth) if inner else None
        case Bound(function=function, receiver=receiver), _:
            return _unpicklable(function, state, depth) or _unpicklable(receiver, state, depth)
        case _, Closure() if "<" in found.address[1]:
            return _local(found.address[1])
        case _, Closure() if (name := _only_by_path(found, state)) is not None:
            return f"{found.address[1]} (nothing is imported as {name}: its file was, by its path)"
        case _, Closure() if not _has_its_name(found, state, target):
            return f"{found.address[1]} (its name is bound to another object)"
        case _, Instance(attributes=attributes) if depth < _DEEPEST and not pickles_itself(found, state):
            held = (only(value) for name, value in attributes.items() if not name.startswith("<"))
            names = (_unpicklable(atom, state, depth + 1) for atom in held if atom is not None)
            return next((name for name in names if name is not None), None)
    return None


def _only_by_path(closure: Closure, state: State) -> str | None:
    """The name of the module of a function, where nothing finds that module under it: it was imported by its path."""
    known, home = state.get(BY_PATH), closure.address[0]
    if not isinstance(known, Dict) or home not in known.items or (ENTERED, home) in known.items:
        return None
    name = only(known.items[home])
    return str(name.value) if isinstance(name, Const) else None


def _has_its_name(closure: Closure, state: State, function: Atom) -> bool:
    """Whether its module has a function under the name that it has there, as far as that is known.

    A static method that was made of it gives the function itself.
    """
    module, name = closure.address
    scope = state.get(Ref(("module", module)))
    bound = scope.variables.get(name, ()) if isinstance(scope, Scope) else ()
    if not bound or function in bound or any(isinstance(atom, Unknown | Lib) for atom in bound):
        return True
    held = (one for atom in bound if isinstance(atom, Ref) and isinstance(one := state.get(atom), Closure))
    return any(replace(one, kind=closure.kind, owner=closure.owner) == closure for one in held)


def lambda_task(machine: Machine, state: State, start: Start, way: Way, what: str) -> Outcome | None:
    """A task that pickle refuses whatever the start method."""
    return _lost(machine, state, start, launch_of(start, way, "unpickle", start.anchor), what)
