"""Exceptions that a program makes: of Python's own classes, and what classes of the program hand on to these."""

from __future__ import annotations

from cudalint.machine import exceptions
from cudalint.machine.frame import Call, Results
from cudalint.machine.interpreter import Machine
from cudalint.machine.values import NONE, Ref


def made(machine: Machine, call: Call) -> Results | None:
    """``ValueError("x")``, and ``super().__init__("x")`` of a class below it; None of all other calls."""
    kind, _, method = call.path.rpartition(".")
    if method == "__init__" and isinstance(call.receiver, Ref) and exceptions.kind(kind) is not None:
        if not call.open:
            exceptions.given_args(call.receiver, list(call.args), call.site, call.state)
        return [(call.state, NONE)]
    if call.receiver is not None:
        return None
    value = exceptions.made(call.path, None if call.open else list(call.args), call.site, call.state)
    return None if value is None else [(call.state, value)]
