"""Bytes that a program pickles by itself, and unpickles elsewhere."""

from __future__ import annotations

from dataclasses import replace

from cudalint.machine.effects.gpu import cuda
from cudalint.machine.effects.receivers import pickler_of
from cudalint.machine.effects.stdlib import copies
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import Instance, LibraryObject
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch.crossing import PICKLED, PICKLER, pickles_itself, reduces_itself, register_reducer, visited
from cudalint.machine.state import State
from cudalint.machine.values import NONE, Ref, Tensor, Value, const, only, unknown


def dumps(machine: Machine, call: Call) -> Results:
    """``pickle.dumps(value)``: bytes, which nothing keeps from crossing; a tensor's data goes by way of the host.

    What objects give that say themselves how they are pickled is not followed, but for the state of one.
    """
    given = call.args[0] if call.args else call.kwargs.get("obj")
    if given is None or _pickle_themselves(given, call.state):
        return [(call.state, unknown("bytes", call.site))]
    by = pickler_of(machine, call.path.partition(".")[0])
    made: Results = []
    for one in copies.told(machine, replace(call, args=[given])):
        for state, copy in copies.copied_deep(machine, one, call.label):
            data = LibraryObject("cudalint.pickled", {PICKLED: copy, PICKLER: const(by.value)}, call.site)
            made.append((state, (state.new(("bytes", call.site), data),)))
    return made


def loads(machine: Machine, call: Call) -> Results:
    """``pickle.loads(data)``: what was pickled once more, whose tensors are put where they lay."""
    atom = only(call.args[0]) if call.args else None
    data = call.state.get(atom) if isinstance(atom, Ref) else None
    if not isinstance(data, LibraryObject) or PICKLED not in data.fields:
        return [(call.state, unknown("unpickled", call.site))]
    state: State | None = call.state
    held = data.fields[PICKLED]
    if any(isinstance(one, Tensor) and one.device.is_gpu for one in held):
        state = cuda.touch(machine, call.state, call.frame, call.site, "torch", "init", call.label, context=True)
    if state is None:
        return []
    return copies.taken(machine, call, copies.copied_deep(machine, replace(call, state=state, args=[held]), call.label))


def _pickle_themselves(value: Value, state: State) -> bool:
    found = (state.get(atom) for atom in visited(value, state) if isinstance(atom, Ref) and atom not in value)
    within = any(isinstance(one, Instance) and pickles_itself(one, state) for one in found)
    whole = (state.get(atom) for atom in value if isinstance(atom, Ref))
    return within or any(isinstance(one, Instance) and reduces_itself(one, state) for one in whole)


def register(machine: Machine, call: Call) -> Results:
    """``copyreg.pickle(cls, reduce)``: how objects of a class are pickled from now on."""
    if len(call.args) > 1:
        register_reducer(call.args[0], call.args[1], call.state)
    return [(call.state, NONE)]
