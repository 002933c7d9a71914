"""Notes for a map of the processes: what a launch starts, and what a process did so far."""

from __future__ import annotations

from collections.abc import Iterator

from cudalint.machine.gpu_memory import placed_tensor
from cudalint.machine.heap import Class, Closure, Dict, Instance, LibraryObject, Scope, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch.children import child_identity
from cudalint.machine.launch.crossing import Pickler, carried
from cudalint.machine.launch.launching import FRESH, Start, Way
from cudalint.machine.launch.pickling import function_sites
from cudalint.machine.started import Crossing, Deed, Done, ProcessKey, ProcessRecord, Started, Work
from cudalint.machine.state import Context, Process, State
from cudalint.machine.trace import Site
from cudalint.machine.values import (
    Atom,
    Bound,
    Const,
    Dev,
    Index,
    Lib,
    Partial,
    Rank,
    Ref,
    Task,
    Tensor,
    Value,
    constant,
    only,
    strings,
)

MOST_CROSSINGS = 12
_FIRST_THREAD = Process().thread
_LONGEST_TEXT = 40
_GPUS = {"global": "the GPU of its rank", "local": "the GPU of its local rank", "each": "another GPU each time"}
_NUMBERS = {"global": "its rank", "local": "its local rank", "each": "another one for each task"}


def key_of(process: Process) -> ProcessKey:
    """What tells a process apart."""
    return ProcessKey(process.identity, "" if process.launch is None else process.launch.method)


# -- launches ------------------------------------------------------------------------------------------------


def note_launch(
    machine: Machine, state: State, start: Start, way: Way, parent: State | None, settled: Site | None
) -> None:
    """Note a launch that is about to be made; ``parent`` is the state that it forks from, if not the present one."""
    record = machine.record.processes_noted
    if record is None:
        return
    origin = parent or state
    note_process(record, state.process)
    crossings = list(_given(start, state, way.method in FRESH))
    if way.method not in FRESH:
        crossings.extend(_there(origin))
    before = origin.process.driver or origin.process.poison
    record.launched(
        Started(
            parent=key_of(origin.process),
            child=ProcessKey(child_identity(origin, start), way.method),
            label=start.label,
            launcher=start.launcher,
            family=start.family,
            library=start.library,
            certain=way.certain,
            explicit=way.explicit,
            condition=way.condition,
            at=start.chain.step.site,
            made=start.made or start.anchor,
            anchors=frozenset(site for site in (start.anchor, start.initializer_anchor) if site is not None),
            settled=settled,
            count=start.count,
            many=start.many,
            adds_up=start.adds_up,
            reused=start.reused,
            daemon=start.daemon,
            runs=tuple(dict.fromkeys(_runs(start, state))),
            crossings=tuple(dict.fromkeys(crossings))[:MOST_CROSSINGS],
            environment=tuple((n, _text(v)) for n, v in (*origin.process.environment, *start.environment)),
            before=None if before is None else before.step,
        )
    )


def note_program(machine: Machine, state: State, launcher: str, site: Site) -> None:
    """Note that another program is started, of which nothing is known."""
    record = machine.record.processes_noted
    if record is None:
        return
    note_process(record, state.process)
    parent = key_of(state.process)
    environment = tuple((name, _text(value)) for name, value in state.process.environment)
    record.launched(
        Started(
            parent=parent,
            child=ProcessKey((*parent.identity, f"exec@{site.module}:{site.ordinal}"), "exec"),
            label="another program",
            launcher=launcher,
            family="exec",
            library=launcher.partition(".")[0],
            certain=True,
            explicit=True,
            condition=None,
            at=site,
            made=site,
            anchors=frozenset({site}),
            settled=None,
            count=1,
            many=False,
            adds_up=False,
            reused=False,
            daemon=False,
            runs=(),
            crossings=(),
            environment=environment,
            before=None if state.process.driver is None else state.process.driver.step,
        )
    )


def _runs(start: Start, state: State) -> Iterator[Work]:
    first = () if start.initializer is None else start.initializer.function
    given = start.inherited if start.family == "loader" else ()
    for value, prepares in ((first, True), *((t.function, False) for t in start.tasks), *((v, False) for v in given)):
        for name, site in _functions(value, state):
            yield Work(name, site, prepares)


def _functions(value: Value, state: State) -> Iterator[tuple[str, Site | None]]:
    for atom in value:
        sites = function_sites((atom,), state)
        if sites:
            yield from ((_called(atom, state), site) for site in sites)
        elif isinstance(atom, Lib) and not atom.path.startswith("cudalint."):
            yield atom.path, None


def _name(atom: Atom, state: State) -> str:
    match atom:
        case Bound(function=function):
            return _name(function, state)
        case Partial(function=inner) | Task(function=inner):
            return next((_name(one, state) for one in inner), "")
        case Ref():
            return _name_of(atom, state)
    return ""


def _name_of(ref: Ref, state: State) -> str:
    match state.get(ref):
        case Closure(function=function):
            return function.qualname
        case Instance(cls=cls):
            return _class_name(cls, state)
        case Class(qualname=qualname):
            return qualname
    return ""


# -- what crosses ----------------------------------------------------------------------------------------------


def _given(start: Start, state: State, fresh: bool) -> Iterator[Crossing]:
    """What workers are handed: the arguments of what they run; of loaders the parts that these keep."""
    if start.family == "loader":
        for value in start.inherited:
            yield from _crossings("", value, state, fresh)
        return
    if start.initializer is not None:
        yield from _arguments(start.initializer, state, fresh)
    for task in start.tasks:
        yield from _arguments(task, state, fresh or bool(start.pickled))


def _arguments(task: Task, state: State, pickled: bool) -> Iterator[Crossing]:
    names = _parameters(task.function, state)
    bound = _receiver(task.function, state)
    if isinstance(bound, Ref) and not isinstance(state.get(bound), Class):
        yield from _crossings("self", (bound,), state, pickled)
    for place, value in enumerate(task.args):
        yield from _crossings(names[place] if place < len(names) else "", value, state, pickled)
    for name, value in task.kwargs:
        yield from _crossings(name, value, state, pickled)


def _receiver(value: Value, state: State) -> Atom | None:
    atom = only(value)
    match atom:
        case Bound(receiver=receiver):
            return receiver
        case Ref() if isinstance(state.get(atom), Instance):
            return atom
    return None


def _parameters(value: Value, state: State) -> list[str]:
    """The names of the parameters that arguments of a call reach, in their order."""
    atom = only(value)
    match atom:
        case Bound(function=function):
            return _parameters((function,), state)[1:]
        case Partial(function=inner, args=args):
            return _parameters(inner, state)[len(args) :]
        case Ref():
            found = state.get(atom)
            return [p.name for p in found.function.params] if isinstance(found, Closure) else []
    return []


def _there(parent: State) -> Iterator[Crossing]:
    """What lies on a GPU under a name of a module, which a forked child has in its memory."""
    scopes = [found for found in parent.objects() if isinstance(found, Scope) and found.kind == "module"]
    for scope in sorted(scopes, key=lambda found: found.module):
        for name, value in scope.variables.items():
            yield from (c for c in _crossings(name, value, parent, pickled=False) if c.device)


def _crossings(name: str, value: Value, state: State, pickled: bool) -> Iterator[Crossing]:
    for atom in value:
        what = _described(atom, state)
        if not what:
            continue
        found = next((c for c in carried((atom,), state, Pickler.NAMES) if c.what not in ("lock", "unpicklable")), None)
        if found is None:
            yield Crossing(name, what, "", pickled)
            continue
        step = None if found.origin is None else found.origin.step
        yield Crossing(name, what, _device_of(found.atom, state), pickled, step)


def _device_of(atom: Atom, state: State) -> str:
    match atom:
        case Tensor(device=device):
            return _device(device)
        case Ref():
            memory = placed_tensor(atom, state)
            return "cuda" if memory is None else _device(memory.device)
    return "cuda"


def _device(device: Dev) -> str:
    match device.index:
        case None:
            return device.kind
        case int():
            return f"{device.kind}:{device.index}"
        case Rank():
            return f"{device.kind}, by rank"


def _described(atom: Atom, state: State) -> str:
    """A value in a few words; empty for one of which nothing is known."""
    match atom:
        case Const(value=None):
            return ""
        case Const(value=value):
            shown = repr(value)
            return shown if len(shown) <= _LONGEST_TEXT else f"{shown[: _LONGEST_TEXT - 1]}…"
        case Rank(kind=kind):
            return _NUMBERS.get(kind, "a number")
        case Dev():
            return f"device {_device(atom)}"
        case Tensor(type=kind):
            return kind
        case Lib(path=path):
            return path
        case Bound() | Partial() | Task():
            return _called(atom, state)
        case Ref():
            return _object(atom, state)
    return ""


def _called(atom: Atom, state: State) -> str:
    name = _name(atom, state)
    is_object = isinstance(atom, Ref) and isinstance(state.get(atom), Instance)
    return name if is_object else f"{name}()" if name else "a function"


def _object(ref: Ref, state: State) -> str:
    match state.get(ref):
        case Closure():
            return _called(ref, state)
        case Class(qualname=qualname):
            return f"class {qualname}"
        case Instance(cls=cls):
            return _class_name(cls, state)
        case LibraryObject(type=kind):
            return kind if not kind.startswith("cudalint.") else ""
        case Sequence(kind=kind, items=items, open=is_open):
            return kind if items is None or is_open else f"{kind} of {len(items)}"
        case Dict():
            return "dict"
    return ""


def _class_name(ref: Ref, state: State) -> str:
    found = state.get(ref)
    return found.qualname if isinstance(found, Class) else "an object"


def _text(value: Value) -> str | None:
    known = constant(value)
    if isinstance(known, str | int):
        return str(known)
    several = strings(value)
    return " or ".join(several) if several and len(several) == len(value) else None


# -- deeds -----------------------------------------------------------------------------------------------------


def note_process(record: ProcessRecord, process: Process) -> None:
    """Note what a process has done so far."""
    deeds = record.deeds.setdefault(key_of(process), {})
    for done in _deeds(process):
        # What a fork copied was done by the parent.
        if done.step.process == process.label:
            deeds.setdefault(done)


def _deeds(process: Process) -> Iterator[Done]:
    for library, method in process.methods:
        if method.where is not None:
            yield Done(Deed.METHOD, method.where.step, f"{' or '.join(method.names or ())} for {library}")
    if process.thread_start is not None:
        yield Done(Deed.THREAD, process.thread_start[1].step)
    if process.driver is not None:
        yield Done(Deed.DRIVER, process.driver.step, in_thread=process.in_thread)
    for thread, selected in process.selected:
        yield Done(Deed.DEVICE, selected.where.step, _gpu(selected.index), in_thread=thread != _FIRST_THREAD)
    for context in sorted(process.contexts, key=_site_of):
        yield Done(Deed.CONTEXT, context.where.step, _gpu(context.index), in_thread=process.in_thread)
    if process.group is not None:
        yield Done(Deed.GROUP, process.group.made.step, process.group.backend)


def _site_of(context: Context) -> Site:
    return context.where.step.site


def _gpu(index: Index) -> str:
    match index:
        case int():
            return f"GPU {index}"
        case Rank(kind=kind):
            return _GPUS.get(kind, "a GPU by number")
        case None:
            return "the current GPU"
