"""Sets, and views of dicts, of which operators make sets: what two of them have in common, where that is known."""

from __future__ import annotations

from collections.abc import Hashable
from collections.abc import Sequence as Row

from cudalint.machine.heap import Dict, Object, Sequence
from cudalint.machine.keys import as_key, of_key
from cudalint.machine.state import State
from cudalint.machine.values import Member, Ref, Value, constant, union

OPERATORS = frozenset({"|", "&", "-", "^"})
# Methods that do what operators do, with one set or several.
METHODS = {"union": "|", "intersection": "&", "difference": "-", "symmetric_difference": "^"}
IN_PLACE = {
    "update": "|", "intersection_update": "&", "difference_update": "-", "symmetric_difference_update": "^",
}  # fmt: skip
ASKED = {"issubset": "<=", "issuperset": ">=", "isdisjoint": "&"}
# What makes the views of a dict's keys and items.
_VIEWS = ("keys", "items")


def keys(values: Row[Value], state: State) -> dict[Hashable, Value] | None:
    """Values by what sets know them by; None where that of one of them is not known.

    Members of Enums may be equal to texts and numbers, which is not known of each of them.
    """
    found = {constant(as_key(value, state)): value for value in values}
    members = sum(isinstance(key, Member) for key in found)
    return None if ... in found or 0 < members < len(found) else found


def distinct(values: Row[Value], state: State) -> tuple[Value, ...]:
    """The values that a set of these has; as many as there are, where it is not known which are equal."""
    found = keys(values, state) if len(values) > 1 else None
    return tuple(values) if found is None else tuple(found.values())


def is_view(ref: Ref) -> bool:
    """Whether something is what ``keys()`` or ``items()`` of a dict gave."""
    match ref.address:
        case ((str(made), *_), _, _):
            return made in _VIEWS
    return False


def is_like_set(ref: Ref, found: Object | None) -> bool:
    """Whether operators of sets are for this."""
    return isinstance(found, Sequence) and (found.kind == "set" or is_view(ref))


def values_of(found: Object | None) -> list[Value] | None:
    """The elements of a container that is known whole."""
    match found:
        case Dict(items=items, exact=True, element=()):
            return [of_key(key) for key in items]
        case Sequence(items=tuple(items), open=False):
            return list(items)
    return None


def combined(op: str, left: Sequence, others: Row[Row[Value] | None], state: State) -> Sequence:
    """``left op other`` for each of the others; where that is not known, a set of what may be in it."""
    held = keys(values_of(left) or (), state) if values_of(left) is not None else None
    for other in others:
        second = None if other is None else keys(other, state)
        if held is None or second is None:
            return Sequence("set", None, _any_of(op, left, others))
        held = _of_both(op, held, second)
    return Sequence("set", None, _any_of(op, left, others)) if held is None else Sequence("set", tuple(held.values()))


def _of_both(op: str, one: dict[Hashable, Value], two: dict[Hashable, Value]) -> dict[Hashable, Value]:
    if op == "&":
        return {key: value for key, value in one.items() if key in two}
    if op == "-":
        return {key: value for key, value in one.items() if key not in two}
    if op == "|":
        return {**two, **one}
    only_second = {key: value for key, value in two.items() if key not in one}
    return {**{key: value for key, value in one.items() if key not in two}, **only_second}


def _any_of(op: str, left: Sequence, others: Row[Row[Value] | None]) -> Value:
    held = [*(left.items or ()), left.element]
    if op in ("|", "^"):
        held += [value for other in others for value in other or ()]
    return union(held)


def compared(op: str, left: Row[Value] | None, right: Row[Value] | None, state: State) -> bool | None:
    """``left op right`` of sets; ``&`` asks whether they have anything in common."""
    one = None if left is None else keys(left, state)
    two = None if right is None else keys(right, state)
    if one is None or two is None:
        return None
    first, second = one.keys(), two.keys()
    match op:
        case "==":
            return first == second
        case "!=":
            return first != second
        case "<=":
            return first <= second
        case "<":
            return first < second
        case ">=":
            return first >= second
        case ">":
            return first > second
        case "&":
            return bool(first & second)
    return None


def plain(value: Value, state: State) -> Hashable:
    """A number, a text or a tuple of such, as Python puts them in order; an ellipsis for anything else."""
    found = constant(as_key(value, state))
    return found if _is_plain(found) else ...


def _is_plain(found: Hashable) -> bool:
    if isinstance(found, tuple):
        return all(map(_is_plain, found))
    return isinstance(found, int | float | str | bytes)


def in_order(op: str, left: Row[Value], right: Row[Value], state: State) -> bool | None:
    """``left op right`` of two lists or two tuples, by the first items that differ."""
    one, two = ([plain(value, state) for value in row] for row in (left, right))
    if ... in one or ... in two:
        return None
    try:
        verdicts = {"<": one < two, "<=": one <= two, ">": one > two, ">=": one >= two}
    except TypeError:
        return None
    return verdicts.get(op)
