"""What workers return to the process that waits for them, and futures."""

from __future__ import annotations

from dataclasses import replace

from cudalint.machine.effects.gpu import cuda
from cudalint.machine.effects.receivers import library_object
from cudalint.machine.frame import Call, Results
from cudalint.machine.interpreter import Machine
from cudalint.machine.outcome import Kind
from cudalint.machine.reporting import outcome_of
from cudalint.machine.state import State
from cudalint.machine.values import Bound, Partial, Ref, Snapshot, Tensor, Value, union, unknown


def future_result(machine: Machine, call: Call) -> Results:
    """``future.result()``, ``async_result.get()``."""
    obj = library_object(call)
    if obj is None:
        return [(call.state, unknown("future", call.site))]
    return [(call.state, obj.fields.get("<result>", unknown("future", call.site)))]


def returned_values(machine: Machine, call: Call, state: State, values: list[Value], family: str) -> Value:
    """What workers return: a GPU tensor comes back through CUDA IPC, or through the host."""
    result: list[Value] = []
    for value in values:
        kept: list[object] = []
        for atom in value:
            if isinstance(atom, Tensor) and atom.device.is_gpu:
                kind = Kind.CUDA_THROUGH_JOBLIB if family == "joblib" else Kind.CUDA_ACROSS
                _result_outcome(machine, call, state, atom, kind)
                after = cuda.touch(
                    machine, state, call.frame, call.site, atom.framework, "init", "receiving a CUDA tensor"
                )
                del after
                result.append((replace(atom, owner=state.process.identity),))
            elif isinstance(atom, Ref | Bound | Partial | Snapshot):
                continue
            else:
                kept.append(atom)
                result.append((atom,))
    return union(result)


def _result_outcome(machine: Machine, call: Call, state: State, tensor: Tensor, kind: Kind) -> None:
    machine.emit(
        outcome_of(
            machine,
            state,
            kind,
            call.site,
            "cost",
            cause=tensor.origin,
            launcher=call.label,
            subject="result",
            started=machine.chain(state, call.site, "the worker returns it"),
        )
    )
