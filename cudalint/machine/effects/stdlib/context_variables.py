"""``contextvars``: variables of a context, of which one process is taken to have one."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from cudalint.machine.effects.receivers import library_object
from cudalint.machine.frame import Call, Raised, Results
from cudalint.machine.heap import Dict, LibraryObject
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.values import NONE, Ref, Value, only, unknown
from cudalint.structs import replace

TYPE = "contextvars.ContextVar"
_VALUE, _BEFORE = "<value>", "<before>"
_DEFAULT = "<default>"
# A copied context, and the field that says what each variable is in it.
_CONTEXT, _HELD = "contextvars.Context", "<held>"


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


def copied(machine: Machine, call: Call) -> Results:
    """``copy_context()``: what each variable is now."""
    now: dict[Hashable, Value] = {}
    for address, found in call.state.objects_at().items():
        if isinstance(found, LibraryObject) and found.type == TYPE:
            now[Ref(address)] = found.fields.get(_VALUE, ())
    kept = call.state.new(("variables", call.site), Dict(now))
    made = LibraryObject(_CONTEXT, {_HELD: (kept,)}, call.site)
    return [(call.state, (call.state.new(("context", call.site), made),))]


def run(machine: Machine, call: Call) -> Results:
    """``context.run(f, *args)``: each variable is what it was when the context was copied, until that is done."""
    obj = library_object(call)
    atom = only(obj.fields.get(_HELD, ())) if obj is not None else None
    kept = call.state.get(atom) if isinstance(atom, Ref) else None
    if not call.args:
        return [(call.state, unknown("context", call.site))]
    then = kept.items if isinstance(kept, Dict) else {}
    outside = _laid(call.state, then)
    made = machine.call_value(call.args[0], call.args[1:], dict(call.kwargs), call.state, call.frame, call.site)
    for state, _ in made:
        inside = _laid(state, outside)
        if isinstance(atom, Ref) and isinstance(kept, Dict):
            state.store(atom, replace(kept, items={**kept.items, **inside}))
    return made


def _laid(state: State, values: Mapping[Hashable, Value]) -> dict[Hashable, Value]:
    """Give variables these values; what they had before."""
    before: dict[Hashable, Value] = {}
    for variable, value in values.items():
        found = state.get(variable) if isinstance(variable, Ref) else None
        if isinstance(variable, Ref) and isinstance(found, LibraryObject):
            before[variable] = found.fields.get(_VALUE, ())
            state.store(variable, replace(found, fields={**found.fields, _VALUE: value}))
    return before


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
