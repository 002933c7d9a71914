"""Bytes that a program pickles by itself, and unpickles elsewhere."""

from __future__ import annotations

from cudalint.machine.effects.gpu import cuda
from cudalint.machine.effects.receivers import pickler_of
from cudalint.machine.effects.stdlib import copies
from cudalint.machine.frame import Call, Raised, Results
from cudalint.machine.gpu_memory import memory_of
from cudalint.machine.heap import Instance, LibraryObject, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch.crossing import (
    OF_A_CALL,
    PICKLED,
    PICKLER,
    Pickler,
    pickles_itself,
    reducer_of,
    reduces_itself,
    register_reducer,
    visited,
)
from cudalint.machine.launch.pickling_errors import unpicklable_task
from cudalint.machine.state import State
from cudalint.machine.values import NONE, TRUE, Atom, Ref, Value, const, only, unknown
from cudalint.structs import replace

# The field of bytes that are a call by which an object is made.
_IS_CALL = "<is a call>"
# By which of them a local function is refused depends on the Python.
_REFUSED = Raised(None, ("PicklingError", "PickleError", "AttributeError"))


def dumps(machine: Machine, call: Call) -> Results:
    """``pickle.dumps(value)``: bytes, which nothing keeps from crossing; a tensor's data goes by way of the host.

    Of objects that say themselves how they are pickled, one that is given by itself is followed.
    """
    given = call.args[0] if call.args else call.kwargs.get("obj")
    reduced = None if given is None else _reduced(machine, given, call)
    if reduced is not None:
        return reduced
    if given is None or _pickle_themselves(given, call.state):
        return [(call.state, unknown("bytes", call.site))]
    by = pickler_of(machine, call.path.partition(".")[0])
    if by is Pickler.NAMES and len(given) == 1 and unpicklable_task(call.state, given) is not None:
        return machine.fail(call.state, call.frame, _REFUSED)
    made: Results = []
    for one in copies.told(machine, replace(call, args=[given])):
        for state, copy in copies.copied_deep(machine, one, call.label):
            data = LibraryObject("cudalint.pickled", {PICKLED: copy, PICKLER: const(by.value)}, call.site)
            made.append((state, (state.new(("bytes", call.site), data),)))
    return made


def _reduced(machine: Machine, given: Value, call: Call) -> Results | None:
    """The bytes of an object whose class says of which call it is made: that function, and what it is given."""
    told = _reduction(machine, given, call)
    if told is None:
        return None
    by = pickler_of(machine, call.path.partition(".")[0])
    made: Results = []
    for state, value in told:
        parts = state.get(ref) if isinstance(ref := only(value), Ref) else None
        if not isinstance(parts, Sequence) or len(parts.items or ()) != OF_A_CALL:
            made.append((state, unknown("bytes", call.site)))
            continue
        for after, copy in copies.copied_deep(machine, replace(call, state=state, args=[value]), call.label):
            fields = {_IS_CALL: TRUE, PICKLED: copy, PICKLER: const(by.value)}
            data = LibraryObject("cudalint.pickled", fields, call.site)
            made.append((after, (after.new(("bytes", call.site), data),)))
    return made


def _reduction(machine: Machine, given: Value, call: Call) -> Results | None:
    """What the function that was registered for a class, or a method of it, says of how an object is pickled."""
    found = call.state.get(atom) if isinstance(atom := only(given), Ref) else None
    if not isinstance(found, Instance):
        return None
    function = reducer_of(found.cls, call.state)
    if function is not None:
        return machine.call_value(function, [given], {}, call.state, call.frame, call.site)
    protocol = unknown("protocol", call.site)
    by_protocol = machine.special(given, ("__reduce_ex__",), [protocol], call.state, call.frame, call.site)
    return by_protocol or machine.special(given, ("__reduce__",), [], call.state, call.frame, call.site)


def loads(machine: Machine, call: Call) -> Results:
    """``pickle.loads(data)``: what was pickled once more, whose tensors are put where they lay."""
    given = call.args[0] if call.args else ()
    if not given:
        return [(call.state, unknown("unpickled", call.site))]
    states = [call.state.clone() for _ in given[1:]]
    paths = zip(given, [*states, call.state], strict=True)
    return [result for atom, state in paths for result in _loaded(machine, replace(call, state=state), atom)]


def _loaded(machine: Machine, call: Call, atom: Atom) -> Results:
    data = call.state.get(atom) if isinstance(atom, Ref) else None
    if not isinstance(data, LibraryObject) or PICKLED not in data.fields:
        return [(call.state, unknown("unpickled", call.site))]
    state: State | None = call.state
    held = data.fields[PICKLED]
    if any(memory_of(one, call.state) is not None for one in visited(held, call.state)):
        state = cuda.touch(machine, call.state, call.frame, call.site, "torch", "init", call.label, context=True)
    if state is None:
        return []
    if _IS_CALL in data.fields:
        return _made_again(machine, replace(call, state=state), held)
    return copies.taken(machine, call, copies.copied_deep(machine, replace(call, state=state, args=[held]), call.label))


def _made_again(machine: Machine, call: Call, told: Value) -> Results:
    """What the call gives that was pickled: a function, and what it is given."""
    parts = call.state.get(ref) if isinstance(ref := only(told), Ref) else None
    function, given = parts.items if isinstance(parts, Sequence) and parts.items is not None else ((), ())
    args = call.state.get(ref) if isinstance(ref := only(given), Ref) else None
    if not isinstance(args, Sequence) or args.items is None:
        return [(call.state, unknown("unpickled", call.site))]
    return machine.call_value(function, list(args.items), {}, call.state, call.frame, call.site)


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
