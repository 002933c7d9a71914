"""What workers return to the process that waits for them, and futures."""

from __future__ import annotations

from cudalint.machine import exceptions
from cudalint.machine.effects.gpu import cuda
from cudalint.machine.effects.receivers import library_object
from cudalint.machine.frame import Call, Raised, Results
from cudalint.machine.heap import Dict, Instance, LibraryObject, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.interpreter.entry import RESULT
from cudalint.machine.launch import crossing, lending
from cudalint.machine.outcome import Kind
from cudalint.machine.reporting import outcome_of, told_by_worker
from cudalint.machine.state import State
from cudalint.machine.values import (
    NONE,
    Atom,
    Bound,
    Partial,
    Ref,
    Snapshot,
    Tensor,
    Value,
    const,
    constant,
    union,
    unknown,
)
from cudalint.structs import replace


def future_result(machine: Machine, call: Call) -> Results:
    """``future.result()``, ``async_result.get()``."""
    obj = library_object(call)
    if obj is None:
        return [(call.state, unknown("future", call.site))]
    lending.awaited(machine, call.state, obj.site)
    names = _raises(obj)
    if names and call.frame.tries:
        for state in called_back(machine, call, call.receiver, call.state):
            machine.fail(state, call.frame, Raised(None, names))
        return []
    result = obj.fields.get("<result>", unknown("future", call.site))
    return [(state, result) for state in called_back(machine, call, call.receiver, call.state)]


def _raises(future: LibraryObject) -> tuple[str, ...] | None:
    """The names of the exception that comes instead of a result; None where none comes, empty where nobody knows."""
    told = constant(future.fields.get(RAISES, ()))
    return None if told is None else tuple(map(str, told)) if isinstance(told, tuple) else ()


def outcome_of_task(machine: Machine, call: Call) -> Results:
    """``future.exception()`` and ``async_result.successful()``."""
    obj = library_object(call)
    asks_exception = call.path.endswith(".exception")
    names = () if obj is None else _raises(obj)
    if names == ():
        return [(call.state, unknown("future", call.path, call.site, call.receiver))]
    states = called_back(machine, call, call.receiver, call.state)
    return [(state, _exception(names, call, state) if asks_exception else const(names is None)) for state in states]


def _exception(names: tuple[str, ...] | None, call: Call, state: State) -> Value:
    if names is None:
        return NONE
    made = exceptions.made(f"builtins.{names[0]}", None, call.site, state)
    return made or unknown("exception", call.site)


CALLBACK = "<callback>"
# The field of a future with the names of the exception that its task ends with.
RAISES = "<raises>"


def called_back(machine: Machine, call: Call, future: Atom | None, state: State) -> list[State]:
    """What a pool was told to call with the result of a task has been called, once, when that result is there."""
    found = state.get(future) if isinstance(future, Ref) else None
    if not isinstance(future, Ref) or not isinstance(found, LibraryObject) or CALLBACK not in found.fields:
        return [state]
    fields = dict(found.fields)
    callback = fields.pop(CALLBACK)
    state.store(future, replace(found, fields=fields))
    result = fields.get("<result>", unknown("future", call.site))
    names = _raises(found)
    result = _exception(names, call, state) if names else result
    return [after for after, _ in machine.call_value(callback, [result], {}, state, call.frame, call.site)]


def done_callback(machine: Machine, call: Call) -> Results:
    """``future.add_done_callback(f)``: f is called with the future when it has ended."""
    if not call.args or call.receiver is None:
        return [(call.state, NONE)]
    called = machine.call_value(call.args[0], [(call.receiver,)], {}, call.state, call.frame, call.site)
    return [(state, NONE) for state, _ in called]


def wait(machine: Machine, call: Call) -> Results:
    """``concurrent.futures.wait(futures)``: all of them are done, unless it stops waiting before."""
    state = call.state
    stops = any(call.get(name) not in (None, NONE) for name in ("timeout", "return_when"))
    for atom in () if stops else union(machine.elements(call.get("fs") or (), state)):
        found = state.get(atom) if isinstance(atom, Ref) else None
        if isinstance(found, LibraryObject):
            lending.awaited(machine, state, found.site)
    return [(state, unknown("done", call.site))]


def returned_values(
    machine: Machine, call: Call, state: State, children: list[tuple[State, Value]], family: str, copies: bool
) -> Value:
    """What workers return: a GPU tensor comes back through CUDA IPC, or through the host, as a copy."""
    result: list[Value] = []
    for child, value in children:
        told = told_by_worker(state, child)
        for atom in value:
            if isinstance(atom, Tensor) and atom.device.is_gpu:
                received = _received(machine, call, state, told, atom, len(value) == 1, family, copies)
                result.append((replace(atom, owner=state.process.identity, received=received),))
            elif isinstance(atom, Ref):
                for held in _held(atom, child):
                    _received(machine, call, state, told, held[0], held[1] and len(value) == 1, family, copies)
            elif not isinstance(atom, Bound | Partial | Snapshot):
                result.append((atom,))
    return union(result)


def _held(returned: Ref, child: State) -> list[tuple[Tensor, bool]]:
    """What lies on a GPU in an object or container that a worker returns, and whether it does so for certain."""
    if not isinstance(child.get(returned), Sequence | Dict | Instance):
        return []
    found = crossing.carried((returned,), child, crossing.Pickler.NAMES)
    return [(one.memory, one.certain) for one in found if one.memory is not None]


def _received(
    machine: Machine, call: Call, state: State, told: State, tensor: Tensor, certain: bool, family: str, copies: bool
) -> bool:
    """A worker returned something that lies on a GPU: whether it now lies in memory that the worker shares.

    ``told`` is the state with what the worker was told.
    """
    is_shared = tensor.is_shared and not copies
    if not tensor.is_picklable:
        _result_outcome(machine, call, told, tensor, Kind.UNPICKLABLE_CUDA, "crash", certain)
    elif family == "joblib":
        _result_outcome(machine, call, told, tensor, Kind.CUDA_THROUGH_JOBLIB)
    elif is_shared:
        _result_outcome(machine, call, told, tensor, Kind.CUDA_ACROSS)
    cuda.touch(machine, state, call.frame, call.site, tensor.framework, "init", "receiving a CUDA tensor")
    return is_shared


def _result_outcome(
    machine: Machine, call: Call, state: State, tensor: Tensor, kind: Kind, how: str = "cost", certain: bool = True
) -> None:
    machine.emit(
        outcome_of(
            machine,
            state,
            kind,
            call.site,
            how,
            certain=certain,
            cause=tensor.origin,
            launcher=call.label,
            subject=RESULT,
            started=machine.chain(state, call.site, "the worker returns it"),
        )
    )
