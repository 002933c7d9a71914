"""What tells the workers of a loader which samples to load: it runs in the process that iterates the loader."""

from __future__ import annotations

from cudalint.machine import gpu_memory
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import Instance, LibraryObject
from cudalint.machine.interpreter import Machine
from cudalint.machine.joining import merge
from cudalint.machine.launch.arguments import constant_bool
from cudalint.machine.state import State
from cudalint.machine.values import NONE, Bound, Ref, Value, const, only, union, unknown

_INDICES = "<indices>"
_SHUFFLE, _GENERATOR = "<shuffle>", "<generator>"


def listed(machine: Machine, call: Call) -> Results:
    """``SubsetRandomSampler(indices)``: gives these one by one, as they are."""
    made = LibraryObject(call.path, {_INDICES: call.get("indices") or NONE}, call.site)
    return [(call.state, (call.state.new(("sampler", call.site), made),))]


def drawn(machine: Machine, call: Call) -> Results:
    """``RandomSampler(dataset)``: draws numbers in an order of its own, by a generator on the CPU unless it has one."""
    fields = {_SHUFFLE: call.get("shuffle") or const(True), _GENERATOR: call.get("generator") or NONE}
    return [(call.state, (call.state.new(("sampler", call.site), LibraryObject(call.path, fields, call.site)),))]


def draws_on_the_host(state: State, fields: dict[str, Value]) -> bool:
    """Whether the order of a loader's samples is drawn by a generator on the CPU, on the default device."""
    if "<batch_sampler>" in fields:
        return False
    if "<sampler>" not in fields:
        own = constant_bool(fields.get(_SHUFFLE), False), fields.get(_GENERATOR, NONE)
        return own == (True, NONE)
    atom = only(fields["<sampler>"])
    found = state.get(atom) if isinstance(atom, Ref) else None
    if not isinstance(found, LibraryObject) or _SHUFFLE not in found.fields:
        return False
    return constant_bool(found.fields[_SHUFFLE], True) is True and found.fields[_GENERATOR] == NONE


def told(machine: Machine, call: Call, fields: dict[str, Value]) -> tuple[Value, ...]:
    """The GPU memory in what a sampler tells workers: it is pickled, for each batch anew.

    The sampler begins when the workers have started. What it does to the process by then is left to ``runs``.
    """
    if not _begun(machine, call.state, fields):
        return ()
    record = machine.record
    machine.record = record.copy()
    made = _given(machine, call, call.state.clone(), fields)
    machine.record = record
    tensors = union([tuple(gpu_memory.tensors_in([value], after)) for after, value in made])
    return (tensors,) if tensors else ()


def runs(machine: Machine, call: Call, state: State, fields: dict[str, Value]) -> list[State]:
    """The paths on which a sampler of the program has given what it gives."""
    if not any(isinstance(found, Instance) for _, found in _begun(machine, state, fields)):
        return [state]
    return merge([after for after, _ in _given(machine, call, state, fields)])


def _begun(machine: Machine, state: State, fields: dict[str, Value]) -> list[tuple[Ref, Instance | LibraryObject]]:
    """The sampler of a loader, where it is known what that gives."""
    atom = only(fields.get("<batch_sampler>") or fields.get("<sampler>") or NONE)
    found = state.get(atom) if isinstance(atom, Ref) else None
    match atom, found:
        case Ref(), Instance() if machine.user_method(found, "__iter__", state) is not None:
            return [(atom, found)]
        case Ref(), LibraryObject(fields=own) if _INDICES in own:
            return [(atom, found)]
    return []


def _given(machine: Machine, call: Call, state: State, fields: dict[str, Value]) -> Results:
    for atom, found in _begun(machine, state, fields):
        if isinstance(found, LibraryObject):
            rounds = machine.iterate(found.fields[_INDICES], state, call.frame, call.site)
            return [(after, union(values)) for after, values in rounds]
        function = machine.user_method(found, "__iter__", state)
        if function is not None:
            made = machine.call_value((Bound(function, atom),), [], {}, state, call.frame, call.site)
            return [
                (after, union(values))
                for begun, value in made
                for after, values in machine.iterate(value, begun, call.frame, call.site)
            ]
    return [(state, unknown("index", call.site))]
