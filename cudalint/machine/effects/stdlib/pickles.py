"""Bytes that a program pickles by itself, and unpickles elsewhere."""

from __future__ import annotations

from cudalint.machine.effects.gpu import cuda
from cudalint.machine.effects.receivers import pickler_of
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import LibraryObject
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch.crossing import PICKLED, PICKLER
from cudalint.machine.state import State
from cudalint.machine.values import Ref, Tensor, Value, const, unknown


def dumps(machine: Machine, call: Call) -> Results:
    """``pickle.dumps(value)``: bytes, which nothing keeps from crossing; a tensor's data goes by way of the host."""
    given = call.args[0] if call.args else call.kwargs.get("obj")
    if given is None:
        return [(call.state, unknown("bytes", call.site))]
    by = pickler_of(machine, call.path.partition(".")[0])
    made = LibraryObject("cudalint.pickled", {PICKLED: given, PICKLER: const(by.value)}, call.site)
    return [(call.state, (call.state.new(("bytes", call.site), made),))]


def loads(machine: Machine, call: Call) -> Results:
    """``pickle.loads(data)``: what was pickled, whose tensors are put where they lay."""
    state: State | None = call.state
    found: list[Value] = []
    for atom in call.args[0] if call.args else ():
        data = call.state.get(atom) if isinstance(atom, Ref) else None
        if not isinstance(data, LibraryObject) or PICKLED not in data.fields:
            return [(call.state, unknown("unpickled", call.site))]
        found.append(data.fields[PICKLED])
    if len(found) != 1:
        return [(call.state, unknown("unpickled", call.site))]
    if any(isinstance(atom, Tensor) and atom.device.is_gpu for atom in found[0]):
        state = cuda.touch(machine, call.state, call.frame, call.site, "torch", "init", call.label, context=True)
    return [] if state is None else [(state, found[0])]
