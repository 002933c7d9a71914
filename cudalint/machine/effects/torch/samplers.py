"""What tells the workers of a loader which samples to load: it runs in the process that iterates the loader."""

from __future__ import annotations

from cudalint.machine import gpu_memory, operators
from cudalint.machine.effects.gpu import queries
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import Instance, LibraryObject
from cudalint.machine.interpreter import Machine
from cudalint.machine.joining import merge
from cudalint.machine.launch.arguments import constant_bool
from cudalint.machine.outcome import Kind
from cudalint.machine.reporting import outcome_of
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import NONE, Bound, Ref, Value, const, only, union, unknown

_INDICES = "<indices>"
_SHUFFLE, _GENERATOR = "<shuffle>", "<generator>"
# What a generator has that is on the CPU.
_ON_HOST = "<host>"


def listed(machine: Machine, call: Call) -> Results:
    """``SubsetRandomSampler(indices)``: gives these one by one, as they are."""
    made = LibraryObject(call.path, {_INDICES: call.get("indices") or NONE}, call.site)
    return [(call.state, (call.state.new(("sampler", call.site), made),))]


def drawn(machine: Machine, call: Call) -> Results:
    """``RandomSampler(dataset)``: draws numbers in an order of its own, by a generator on the CPU unless it has one."""
    fields = {_SHUFFLE: call.get("shuffle") or const(True), _GENERATOR: call.get("generator") or NONE}
    return [(call.state, (call.state.new(("sampler", call.site), LibraryObject(call.path, fields, call.site)),))]


def generator(machine: Machine, call: Call) -> Results:
    """``torch.Generator()``: on the CPU unless a device is named, whatever the default device is."""
    made = queries.gpu_call(machine, call)
    devices = operators.device_of(call.get("device") or const("cpu"))
    if not devices or any(device.is_gpu for device in devices):
        return made
    held = LibraryObject("torch.Generator", {_ON_HOST: const(True)}, call.site)
    return [(state, (state.new(("generator", call.site), held),)) for state, _ in made]


def is_on_host(state: State, generator: Value) -> bool:
    """Whether what draws is a generator on the CPU, as torch's own is, which stands in where none is given."""
    if generator == NONE:
        return True
    atom = only(generator)
    found = state.get(atom) if isinstance(atom, Ref) else None
    return isinstance(found, LibraryObject) and _ON_HOST in found.fields


def draws_on_the_host(state: State, fields: dict[str, Value]) -> bool:
    """Whether the order of a loader's samples is drawn by a generator on the CPU, on the default device."""
    if "<batch_sampler>" in fields:
        return False
    if "<sampler>" not in fields:
        shuffles = constant_bool(fields.get(_SHUFFLE), False) is True
        return shuffles and is_on_host(state, fields.get(_GENERATOR, NONE))
    atom = only(fields["<sampler>"])
    found = state.get(atom) if isinstance(atom, Ref) else None
    if not isinstance(found, LibraryObject) or _SHUFFLE not in found.fields:
        return False
    return constant_bool(found.fields[_SHUFFLE], True) is True and is_on_host(state, found.fields[_GENERATOR])


def refused(machine: Machine, call: Call, state: State, kind: Kind, anchor: Site, what: str, detail: str = "") -> None:
    """Report that an order is drawn on the default device by a generator on the CPU."""
    effect = machine.chain(state, call.site, f"{what} wants a generator of the default device")
    where = state.process.default_where
    machine.emit(outcome_of(machine, state, kind, anchor, "crash", cause=where, effect=effect, detail=detail))


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
