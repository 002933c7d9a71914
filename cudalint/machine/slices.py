"""``rows[start:stop:step]``: the bounds as a key, and the part of a sequence that lies between them."""

from __future__ import annotations

from cudalint.machine.heap import Sequence
from cudalint.machine.values import Const, Unknown, Value, constant, union, unknown
from cudalint.structs import replace

_SLICE = "slice"
# What has an order of its own, so that a part of it is one of the same kind.
_KINDS = frozenset({"list", "tuple"})


def as_slice(bounds: tuple[Value, ...], otherwise: Value) -> Value:
    """The key that three bounds make, empty ones where none stands; one of its place where they are objects."""
    if all(isinstance(atom, Const | Unknown) for bound in bounds for atom in bound):
        return unknown(_SLICE, *bounds)
    return otherwise


def part(found: Sequence, key: Value) -> Sequence | None:
    """What a slice takes of a sequence; None where the key is none, or the sequence has no parts."""
    bounds = _bounds(key) if found.kind in _KINDS else None
    if bounds is None:
        return None
    if found.items is None or found.open:
        # Which of them, and how many, is not known before either.
        return replace(found, numbers=None)
    taken = _numbers(bounds)
    if taken is None:
        return replace(found, items=None, element=union(found.items), numbers=None)
    return replace(found, items=found.items[taken], numbers=None)


def replaced(found: Sequence, key: Value, given: object) -> Sequence | None:
    """The list after ``rows[:] = given``; None where only a part of it is another one."""
    bounds = _bounds(key)
    if bounds is None or any(bounds) or not isinstance(given, Sequence):
        return None
    return replace(found, items=given.items, element=given.element, open=given.open)


def is_rest(key: Value) -> bool:
    """Whether a slice takes all but the first: ``[1:]``."""
    bounds = _bounds(key)
    return bounds is not None and _numbers(bounds) == slice(1, None, None)


def without(found: Sequence, key: Value) -> Sequence:
    """The list after ``del rows[i]`` or ``del rows[:n]``; of what is not known whole, it may be any."""
    whole = replaced(found, key, Sequence(found.kind, ()))
    if whole is not None:
        return whole
    bounds, place = _bounds(key), constant(key)
    taken = _numbers(bounds) if bounds is not None else place
    if found.items is None or found.open or not isinstance(taken, slice | int):
        return found
    kept = list(found.items)
    if isinstance(taken, int) and not -len(kept) <= taken < len(kept):
        return found
    del kept[taken]
    return replace(found, items=tuple(kept))


def part_of_text(text: Const, key: Value) -> Value | None:
    """What a slice, or a number, takes of a text that is known."""
    bounds, place = _bounds(key), constant(key)
    taken = _numbers(bounds) if bounds is not None else place if isinstance(place, int) else None
    if taken is None or not isinstance(text.value, str | bytes):
        return None
    is_within = isinstance(taken, slice) or -len(text.value) <= taken < len(text.value)
    return (Const(text.value[taken]),) if is_within else None


def is_slice(key: Value) -> bool:
    """Whether a key takes what lies between two bounds."""
    return _bounds(key) is not None


def _bounds(key: Value) -> tuple[object, ...] | None:
    match key:
        case (Unknown(sym=tuple(sym)),) if sym[:1] == (_SLICE,):
            return sym[1:]
    return None


def _numbers(bounds: tuple[object, ...]) -> slice | None:
    """The bounds where all are known numbers."""
    numbers: list[int | None] = []
    for bound in bounds:
        number = (constant(bound) if bound else None) if isinstance(bound, tuple) else ...
        if number is not None and (not isinstance(number, int) or isinstance(number, bool)):
            return None
        numbers.append(number)
    return slice(*numbers) if numbers[2:] != [0] else None
