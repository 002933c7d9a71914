"""Classes of enum: what their members are, and which of them a value or a name means."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterable, Mapping

from cudalint.machine import questions
from cudalint.machine.classes import Order, defines
from cudalint.machine.heap import Class, Closure, Scope
from cudalint.machine.state import State
from cudalint.machine.values import MOST_ALTERNATIVES, Const, Member, Ref, Unknown, Value, const, constant, only, union
from cudalint.models.library import Library
from cudalint.structs import replace

_ENUM = "cudalint.enum"
# Whose members can be put together, and what makes members in a way of its own.
_FLAGS = "enum.Flag"
_MAKING = ("__new__", "__init__")
_TEXT, _NUMBER = "builtins.str", "builtins.int"


def give_members(cls: Ref, names: Iterable[str], bases: Iterable[str], library: Library, state: State) -> None:
    """Make what the body of a class assigns its members, where it is an Enum.

    Members of strings and of numbers are these: they are used as such.
    """
    kinds = list(bases)
    found = state.get(cls)
    if not isinstance(found, Class) or not any(library.is_a(kind, _ENUM) for kind in kinds):
        return
    scope = state.get(found.scope)
    variables = dict(scope.variables) if isinstance(scope, Scope) else {}
    known = [n for n in dict.fromkeys(names) if _is_member(n, variables.get(n), state)]
    text = any(library.is_a(kind, _TEXT) for kind in kinds)
    number = any(library.is_a(kind, _NUMBER) for kind in kinds)
    made: dict[Hashable, Value] = {}
    bits = _bits([variables[name] for name in known]) if any(library.is_a(kind, _FLAGS) for kind in kinds) else None
    for place, name in enumerate(known, 1):
        given = variables[name]
        if bits is not None:
            given = const(bits[place - 1])
        elif isinstance(only(given), Unknown):
            given = const(name.lower()) if text else const(place)
        member = Member(found.module, found.qualname, name, given, cls)
        own: Value = (Const(member),)
        if text or number:
            own = tuple(replace(atom, member=member) if isinstance(atom, Const) else atom for atom in given)
        # A second name for one value stands for the first member of it.
        key = constant(given)
        variables[name] = own if key is ... else made.setdefault((type(key), key), own)
    if isinstance(scope, Scope):
        state.store(found.scope, replace(scope, variables=variables))
    state.store(cls, replace(found, members=tuple(known)))


def _bits(values: list[Value]) -> list[int] | None:
    """The numbers of flags: of what ``auto()`` makes the next power of two, of others what they are put together of."""
    known: dict[Value, int] = {}
    found: list[int] = []
    for value in values:
        number = _number_of(value, known)
        if number is None and not _is_combination(value):
            number = 1 << max((each.bit_length() for each in found), default=0)
        if number is None:
            return None
        known[value] = number
        found.append(number)
    return found


def _is_combination(value: Value) -> bool:
    match only(value):
        case Unknown(sym=(_, "|" | "&" | "^" | "+" | "<<" | "-", _, _)):
            return True
    return False


def _number_of(value: Value, known: dict[Value, int]) -> int | None:
    match only(value):
        case Const(value=int(number)):
            return number
        case Unknown(sym=(_, "|", left, right)) if value not in known:
            parts = [_number_of(part, known) if isinstance(part, tuple) else None for part in (left, right)]
            return None if parts[0] is None or parts[1] is None else parts[0] | parts[1]
    return known.get(value)


def is_flag(order: Order, library: Library) -> bool:
    """Whether the members of a class can be put together."""
    return any(isinstance(entry, str) and library.is_a(entry, _FLAGS) for entry in order)


def flag_of(value: Value) -> tuple[Member, int] | None:
    """A member with its number."""
    found = constant(value)
    number = constant(found.value) if isinstance(found, Member) else None
    return (found, number) if isinstance(found, Member) and isinstance(number, int) else None


_COMBINED: Mapping[str, Callable[[int, int], int]] = {"|": operator.or_, "&": operator.and_, "^": operator.xor}


def put_together(op: str, left: Value, right: Value, state: State) -> Value | None:
    """``A | B``, ``A & B``, ``A ^ B`` of two flags of one class."""
    one, two = flag_of(left), flag_of(right)
    combined = _COMBINED.get(op)
    if one is None or two is None or one[0].cls != two[0].cls or combined is None:
        return None
    return _flags(one[0], combined(one[1], two[1]), state)


def without(flags: Value, state: State) -> Value | None:
    """``~A``: all flags of its class but these."""
    own = flag_of(flags)
    cls = None if own is None else state.get(own[0].cls)
    if own is None or not isinstance(cls, Class):
        return None
    every = 0
    for each in members(cls, state):
        found = flag_of(each)
        every |= 0 if found is None else found[1]
    return _flags(own[0], every & ~own[1], state)


def _flags(like: Member, number: int, state: State) -> Value:
    cls = state.get(like.cls)
    for each in members(cls, state) if isinstance(cls, Class) else ():
        found = flag_of(each)
        if found is not None and found[1] == number:
            return each
    return (Const(replace(like, name=f"{number}", value=const(number))),)


def _is_member(name: str, value: Value | None, state: State) -> bool:
    atom = only(value) if value else None
    is_method = isinstance(atom, Ref) and isinstance(state.get(atom), Closure)
    return value is not None and not name.startswith("_") and not is_method


def member_of(value: Value) -> Member | None:
    """The member that a value is."""
    atom = only(value)
    if not isinstance(atom, Const):
        return None
    return atom.value if isinstance(atom.value, Member) else atom.member


def members(cls: Class, state: State) -> list[Value]:
    """The members in the order of their definition; none of a class that is no Enum."""
    scope = state.get(cls.scope)
    return [scope.variables[name] for name in cls.members] if isinstance(scope, Scope) else []


def _by_value(known: list[Value], value: Value) -> Value:
    """One member, or any of them where the value is not known; empty where there is none."""
    wanted = constant(value)
    if wanted is ...:
        return union(known)
    return next((m for m in known if wanted in (constant(m), _value(m))), ())


def by_value(cls: Class, value: Value, state: State) -> list[tuple[State, Value]]:
    """``Enum(value)``: a path for each member that a value may mean which is asked about again, else one value."""
    subject, known = questions.identity(value), members(cls, state)
    if constant(value) is not ... or subject is None or not 1 < len(known) <= MOST_ALTERNATIVES:
        return [(state, _by_value(known, value))]
    results: list[tuple[State, Value]] = []
    for member in known:
        meant = _value(member)
        answer = only(questions.comparison("==", subject, Const(meant)))
        if meant is ... or not isinstance(answer, Unknown):
            return [(state, _by_value(known, value))]
        holds = state.fact(answer.sym)
        if holds is True:
            return [(state, member)]
        if holds is None:
            other = state.split(answer.sym)
            results.append((state, member))
            state = other
    return results or [(state, ())]


def by_name(cls: Class, name: Value, state: State) -> Value:
    """``Enum[name]``."""
    wanted = constant(name)
    known = named(cls, state)
    if wanted is ...:
        return union(known.values())
    return known.get(str(wanted), ())


def named(cls: Class, state: State) -> dict[str, Value]:
    """The members by their names."""
    return dict(zip(cls.members, members(cls, state), strict=False))


def is_whole(cls: Class, state: State) -> bool:
    """Whether all that the body of an Enum binds, and is no method, is known to be a member."""
    scope = state.get(cls.scope)
    bound = scope.variables if isinstance(scope, Scope) else {}
    return all(name in cls.members or not _is_member(name, value, state) for name, value in bound.items())


def lacks_value(cls: Class, order: Order, value: Value, library: Library, state: State) -> bool:
    """Whether no member of an Enum has a value: all are known, and none is made of others or in a way of its own."""
    wanted = constant(value)
    known = [_value(member) for member in members(cls, state)]
    if (
        not is_whole(cls, state)
        or wanted is ...
        or ... in known
        or wanted in known
        or any(member == value for member in members(cls, state))
    ):
        return False
    return not any(
        library.is_a(entry, _FLAGS) if isinstance(entry, str) else defines(entry, _MAKING, state) for entry in order
    )


def _value(member: Value) -> Hashable:
    found = constant(member)
    return constant(found.value) if isinstance(found, Member) else found
