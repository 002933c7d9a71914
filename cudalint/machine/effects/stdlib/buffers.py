"""Buffers of bytes into which a program writes what it saves, and from which it reads that elsewhere."""

from __future__ import annotations

from cudalint.machine.effects.receivers import library_object
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import LibraryObject
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch.crossing import PICKLED, PICKLER, Pickler
from cudalint.machine.state import State
from cudalint.machine.values import Ref, Value, const, only, union, unknown
from cudalint.structs import replace

_BUFFER = "io.BytesIO"
_BYTES = "cudalint.pickled"


def buffer(machine: Machine, call: Call) -> Results:
    """``io.BytesIO(data)``: holds what was saved into the bytes that it is given."""
    made = LibraryObject(_BUFFER, _kept(call.args[0] if call.args else (), call.state), call.site)
    return [(call.state, (call.state.new(("buffer", call.site), made),))]


def contents(machine: Machine, call: Call) -> Results:
    """``buffer.getvalue()``: the bytes, which cross as they are."""
    held = library_object(call)
    if held is None or PICKLED not in held.fields:
        return [(call.state, unknown("bytes", call.site))]
    fields = {name: held.fields[name] for name in (PICKLED, PICKLER)}
    return [(call.state, (call.state.new(("bytes", call.site), LibraryObject(_BYTES, fields, call.site)),))]


def fill(place: Value, saved: Value, state: State) -> None:
    """Something is saved into what may be a buffer."""
    atom = only(place)
    found = state.get(atom) if isinstance(atom, Ref) else None
    if isinstance(atom, Ref) and isinstance(found, LibraryObject) and found.type == _BUFFER:
        fields = {**found.fields, PICKLED: saved, PICKLER: const(Pickler.NAMES.value)}
        state.store(atom, replace(found, fields=fields))


def saved_in(place: Value, state: State) -> Value | None:
    """What was saved into a buffer; None where that is not seen."""
    return _kept(place, state).get(PICKLED)


def _kept(place: Value, state: State) -> dict[str, Value]:
    """What was saved; of several of which nobody knows which one it is, what was saved into any."""
    found = [state.get(atom) if isinstance(atom, Ref) else None for atom in place]
    kept = [one.fields for one in found if isinstance(one, LibraryObject) and PICKLED in one.fields]
    if not kept or len(kept) < len(found):
        return {}
    return {name: union(fields[name] for fields in kept) for name in (PICKLED, PICKLER)}
