"""What a future or an asynchronous result gives."""

from __future__ import annotations

from cudalint.machine.effects.receivers import library_object
from cudalint.machine.frame import Call, Results
from cudalint.machine.interpreter import Machine
from cudalint.machine.values import unknown


def future_result(machine: Machine, call: Call) -> Results:
    """``future.result()``, ``async_result.get()``."""
    obj = library_object(call)
    if obj is None:
        return [(call.state, unknown("future", call.site))]
    return [(call.state, obj.fields.get("<result>", unknown("future", call.site)))]
