"""What a future or an asynchronous result gives."""

from __future__ import annotations

from cudalint.machine.effects.receivers import thing_of
from cudalint.machine.frame import Call, Results
from cudalint.machine.interpreter import Machine
from cudalint.machine.values import unknown


def future_result(machine: Machine, call: Call) -> Results:
    """``future.result()``, ``async_result.get()``."""
    thing = thing_of(call)
    if thing is None:
        return [(call.state, unknown("future", call.site))]
    return [(call.state, thing.fields.get("<result>", unknown("future", call.site)))]
