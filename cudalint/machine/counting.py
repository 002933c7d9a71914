"""What loops leave in variables that make more rounds than are run: a number that grew in these grows on in others."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from cudalint.machine import operators
from cudalint.machine.trace import Site
from cudalint.machine.values import Atom, Const, Member, Unknown, Value, only, unknown

_COUNTED = "counted"
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!=", "is": "is", "is not": "is not"}


def after_more(before: Value, now: Value, name: str, site: Site) -> Value:
    """What a variable holds after rounds that are not run, by what the last two that are run left in it."""
    one, two = only(before), only(now)
    if not isinstance(one, Const) or not isinstance(two, Const) or one == two or _is_kept(two):
        return now
    first, second = one.value, two.value
    are_numbers = isinstance(first, int) and isinstance(second, int) and bool not in (one.kind, two.kind)
    if not are_numbers or not isinstance(first, int) or not isinstance(second, int):
        return unknown("later", site, name)
    return unknown(_COUNTED, "up" if second > first else "down", second, site, name)


def _is_kept(now: Const) -> bool:
    """Whether something stands for others of its kind: the text of a device, a member, nothing at all."""
    if now.value is None or isinstance(now.value, Member):
        return True
    return isinstance(now.value, str) and operators.parse_device(now.value) is not None


def compared(op: str, left: Atom | None, right: Atom | None) -> bool | None:
    """What is known of a comparison of a number that a loop counts up or down with another one."""
    match left, right:
        case Unknown(sym=(str(kind), str(way), int(reached), *_)), Const(value=int(other)) if kind == _COUNTED:
            return _at_least(op, reached, other) if way == "up" else _at_most(op, reached, other)
        case Const(), Unknown(sym=(str(kind), *_)) if kind == _COUNTED and op in _TURNED:
            return compared(_TURNED[op], right, left)
    return None


def truth(sym: Hashable) -> bool | None:
    """Whether a number that a loop counts is another one than 0."""
    return compared("!=", Unknown(sym), Const(0))


def _at_least(op: str, least: int, other: int) -> bool | None:
    return _AT_LEAST[op](least, other) if op in _AT_LEAST else None


def _at_most(op: str, most: int, other: int) -> bool | None:
    return _AT_LEAST[_TURNED[op]](-most, -other) if op in _AT_LEAST else None


def _when(holds: bool, answer: bool) -> bool | None:
    return answer if holds else None


_AT_LEAST: dict[str, Callable[[int, int], bool | None]] = {
    ">": lambda least, other: _when(least > other, True),
    ">=": lambda least, other: _when(least >= other, True),
    "<": lambda least, other: _when(least >= other, False),
    "<=": lambda least, other: _when(least > other, False),
    "==": lambda least, other: _when(least > other, False),
    "!=": lambda least, other: _when(least > other, True),
}
