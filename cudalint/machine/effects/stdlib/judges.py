"""Whether something is of a class, also where the class says so by code of its own: hooks, methods of metaclasses."""

from __future__ import annotations

from collections.abc import Callable

from cudalint.machine.classes import RUNTIME, is_protocol
from cudalint.machine.effects.stdlib.types import (
    asks_itself,
    class_of,
    counts_unasked,
    is_instance,
    is_subclass,
)
from cudalint.machine.frame import Call, Raised, Results
from cudalint.machine.heap import Class, Instance
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.values import Atom, Lib, Ref, Value, const, only, unknown

_REFUSED = Lib("builtins.NotImplemented")
Ask = Callable[[Machine, Atom, Atom | None, State], bool | None]


def isinstance_(machine: Machine, call: Call) -> Results:
    """``isinstance``, or a function that asks so of one class (``value``), where the class of the value is known."""
    asked = call.text("value")
    if len(call.args) != (1 if asked else 2):
        return [(call.state, unknown("isinstance", call.site))]
    value, kinds = (call.args[0], (Lib(asked),)) if asked else call.args
    if call.frame.tries and _is_only_static(kinds, call.state):
        return machine.fail(call.state, call.frame, Raised(None, ("TypeError",)))
    found = _judged(machine, value, kinds, is_instance, "__instancecheck__", call)
    return found or [(call.state, unknown("isinstance", value, kinds))]


def _is_only_static(kinds: Value, state: State) -> bool:
    """Whether a class is a protocol that no object can be asked for."""
    atom = only(kinds)
    found = state.get(atom) if isinstance(atom, Ref) else None
    return isinstance(found, Class) and is_protocol(found) and RUNTIME not in found.told


def issubclass_(machine: Machine, call: Call) -> Results:
    """``issubclass``, where both classes are known; else what follows from them, whatever it is."""
    found: Results = []
    if len(call.args) == 2:
        found = _judged(machine, call.args[0], call.args[1], is_subclass, "__subclasscheck__", call)
    return found or [(call.state, unknown("follows", call.path, *call.args))]


def of_type(machine: Machine, call: Call) -> Results:
    """``super().__instancecheck__(x)`` in a metaclass: what holds of a class that says nothing itself."""
    atom = only(call.args[0]) if call.args else None
    verdict = None if atom is None else _unasked(machine, atom, call.receiver, call.state)
    return [(call.state, unknown("follows", call.path, *call.args) if verdict is None else const(verdict))]


def _judged(machine: Machine, value: Value, kinds: Value, ask: Ask, method: str, call: Call) -> Results:
    """What is the same for all that a value may be, or what the class says; nothing where that is not known."""
    rows = machine.exact_items(kinds, call.state)
    wanted = [only(kinds)] if rows is None else [only(row) for row in rows]
    verdicts = {_any_of(machine, atom, wanted, ask, call.state) for atom in value}
    verdict = verdicts.pop() if len(verdicts) == 1 else None
    if verdict is not None:
        return [(call.state, const(verdict))]
    atom = only(value)
    open_ = [] if atom is None else [kind for kind in wanted if ask(machine, atom, kind, call.state) is None]
    if (
        atom is None
        or len(open_) != 1
        or not isinstance(kind := open_[0], Ref)
        or not asks_itself(machine, kind, call.state)
    ):
        return []
    return _said(machine, atom, kind, method, call)


def _any_of(machine: Machine, atom: Atom, wanted: list[Atom | None], ask: Ask, state: State) -> bool | None:
    verdicts = {ask(machine, atom, kind, state) for kind in wanted}
    if True in verdicts:
        return True
    return None if None in verdicts else False


def _said(machine: Machine, atom: Atom, kind: Ref, method: str, call: Call) -> Results:
    """What the metaclass of a class says of a value or another class, else its hook."""
    state = call.state
    meta = machine.metaclass_method(kind, method, state)
    if meta is not None:
        args: list[Value] = [(kind,), (atom,)]
        return _answered(machine, machine.call_value((meta,), args, {}, state, call.frame, call.site), atom, kind)
    cls = class_of(atom, state) if method == "__instancecheck__" else atom
    hooks = machine.attribute((kind,), "__subclasshook__", state, call.frame, call.site)
    if not isinstance(cls, Ref) or len(hooks) != 1:
        return []
    said = machine.call_value(hooks[0][1], [(cls,)], {}, hooks[0][0], call.frame, call.site)
    return _answered(machine, said, atom, kind)


def _answered(machine: Machine, said: Results, atom: Atom, kind: Ref) -> Results:
    """The truth of what was said; where it is that this class does not know, what holds of others."""
    done: Results = []
    for state, value in said:
        verdict = _unasked(machine, atom, kind, state) if value == (_REFUSED,) else machine.truth(value, state)[0]
        done.append((state, value if verdict is None else const(verdict)))
    return done


def _unasked(machine: Machine, atom: Atom, kind: Atom | None, state: State) -> bool | None:
    cls = class_of(atom, state) or atom
    if not isinstance(cls, Ref) or not isinstance(kind, Ref):
        return None
    found = state.get(atom) if isinstance(atom, Ref) else None
    attributes = found.attributes if isinstance(found, Instance) else {}
    return counts_unasked(machine, kind, cls, frozenset(attributes), state)
