"""``contextlib.ExitStack``: managers that are entered one by one and left together."""

from __future__ import annotations

from cudalint.machine.effects.receivers import library_object
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import EXPECTED, SUPPRESSED, Closure, LibraryObject, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.joining import merge
from cudalint.machine.values import NONE, Bound, Lib, Partial, Ref, Value, const, only, unknown
from cudalint.structs import replace

_ENTERED = "<entered at "


def suppress(machine: Machine, call: Call) -> Results:
    """``suppress(RuntimeError)``: what its ``with`` statement catches."""
    names = [atom.path.rpartition(".")[2] for value in call.args for atom in value if isinstance(atom, Lib)]
    kinds = Sequence("tuple", tuple(const(name) for name in names))
    field = EXPECTED if call.flag("expected") else SUPPRESSED
    fields: dict[str, Value] = {field: (call.state.new(("kinds", call.site), kinds),)}
    return [(call.state, (call.state.new(("suppress", call.site), LibraryObject(call.path, fields, call.site)),))]


def enter_context(machine: Machine, call: Call) -> Results:
    """``stack.enter_context(manager)``: what the manager gives, kept to be left with the stack."""
    if not call.args:
        return [(call.state, NONE)]
    obj = library_object(call)
    if obj is not None and isinstance(call.receiver, Ref):
        fields = {**obj.fields, f"{_ENTERED}{call.site}>": call.args[0]}
        call.state.store(call.receiver, replace(obj, fields=fields))
    return machine.enter(call.args[0], call.state, call.frame, call.site)


def callback(machine: Machine, call: Call) -> Results:
    """``stack.callback(f, *args)``: called when the stack is left."""
    obj = library_object(call)
    if call.args and obj is not None and isinstance(call.receiver, Ref):
        later = Partial(call.args[0], tuple(call.args[1:]), tuple(sorted(call.kwargs.items())))
        call.state.store(call.receiver, replace(obj, fields={**obj.fields, f"{_ENTERED}{call.site}>": (later,)}))
    return [(call.state, call.args[0] if call.args else NONE)]


def push(machine: Machine, call: Call) -> Results:
    """``stack.push(manager)``: left with the stack, and not entered; a function is told how the stack is left."""
    obj = library_object(call)
    given = call.args[0] if call.args else NONE
    if obj is not None and isinstance(call.receiver, Ref) and given != NONE:
        found = call.state.get(atom) if isinstance(atom := only(given), Ref) else None
        is_function = isinstance(found, Closure) or isinstance(atom, Bound | Partial)
        later: Value = (Partial(given, (NONE, NONE, NONE), ()),) if is_function else given
        call.state.store(call.receiver, replace(obj, fields={**obj.fields, f"{_ENTERED}{call.site}>": later}))
    return [(call.state, given)]


def pop_all(machine: Machine, call: Call) -> Results:
    """``stack.pop_all()``: another stack, which is left instead of this one."""
    obj = library_object(call)
    if obj is None or not isinstance(call.receiver, Ref):
        return [(call.state, unknown("stack", call.site))]
    kept = {name: value for name, value in obj.fields.items() if not name.startswith(_ENTERED)}
    call.state.store(call.receiver, replace(obj, fields=kept))
    return [(call.state, (call.state.new(("stack", call.site), replace(obj, site=call.site)),))]


def closing(machine: Machine, call: Call) -> Results:
    """``closing(x)``: x in a ``with`` statement, at whose end it is closed."""
    made = LibraryObject(call.path, {"<thing>": call.args[0] if call.args else NONE}, call.site)
    return [(call.state, (call.state.new(("closing", call.site), made),))]


def closing_leave(machine: Machine, call: Call) -> Results:
    """``x.close()``."""
    obj = library_object(call)
    thing = NONE if obj is None else obj.fields["<thing>"]
    closed: Results = []
    for state, method in machine.attribute(thing, "close", call.state, call.frame, call.site):
        closed.extend(machine.call_value(method, [], {}, state, call.frame, call.site))
    return [(state, NONE) for state, _ in closed]


def leave(machine: Machine, call: Call) -> Results:
    """``stack.close()`` and the end of ``with stack``: the managers are left, the last one first."""
    states = [call.state]
    obj = library_object(call)
    if obj is not None and isinstance(call.receiver, Ref):
        entered = [value for name, value in obj.fields.items() if name.startswith(_ENTERED)]
        kept = {name: value for name, value in obj.fields.items() if not name.startswith(_ENTERED)}
        call.state.store(call.receiver, replace(obj, fields=kept))
        for manager in reversed(entered):
            if isinstance(only(manager), Partial):
                called = [r for c in states for r in machine.call_value(manager, [], {}, c, call.frame, call.site)]
                states = merge([s for s, _ in called])
                continue
            states = merge([s for c in states for s in machine.leave(manager, c, call.frame, call.site)])
    return [(state, NONE) for state in states]
