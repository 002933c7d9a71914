"""``contextvars``: variables of a context, of which one process is taken to have one."""

from __future__ import annotations

from dataclasses import replace

from cudalint.machine.effects.receivers import library_object
from cudalint.machine.frame import Call, Raised, Results
from cudalint.machine.heap import LibraryObject
from cudalint.machine.interpreter import Machine
from cudalint.machine.values import NONE, Ref, unknown

TYPE = "contextvars.ContextVar"
_VALUE, _BEFORE = "<value>", "<before>"
_DEFAULT = "<default>"


def make(machine: Machine, call: Call) -> Results:
    """``ContextVar("name", default=...)``."""
    fields = {_DEFAULT: call.kwargs["default"]} if "default" in call.kwargs else {}
    return [(call.state, (call.state.new(("context variable", call.site), LibraryObject(TYPE, fields, call.site)),))]


def get(machine: Machine, call: Call) -> Results:
    """``variable.get(default)``: what was set, or a default."""
    obj = library_object(call)
    fields = {} if obj is None else obj.fields
    given = call.args[0] if call.args else fields.get(_DEFAULT)
    value = fields.get(_VALUE) or given
    if not value and obj is not None and call.frame.tries:
        return machine.fail(call.state, call.frame, Raised(None, ("LookupError",)))
    return [(call.state, value or unknown("context", call.receiver))]


def set_(machine: Machine, call: Call) -> Results:
    """``variable.set(value)``: a token, by which ``reset`` brings back what was there before."""
    obj = library_object(call)
    if obj is None or not isinstance(call.receiver, Ref) or not call.args:
        return [(call.state, NONE)]
    token = LibraryObject("contextvars.Token", {_BEFORE: obj.fields.get(_VALUE, ())}, call.site)
    call.state.store(call.receiver, replace(obj, fields={**obj.fields, _VALUE: call.args[0]}))
    return [(call.state, (call.state.new(("token", call.site), token),))]


def reset(machine: Machine, call: Call) -> Results:
    """``variable.reset(token)``."""
    obj = library_object(call)
    token = call.state.get(atom) if call.args and isinstance(atom := call.args[0][0], Ref) else None
    if obj is not None and isinstance(call.receiver, Ref):
        before = token.fields.get(_BEFORE, ()) if isinstance(token, LibraryObject) else ()
        call.state.store(call.receiver, replace(obj, fields={**obj.fields, _VALUE: before}))
    return [(call.state, NONE)]
