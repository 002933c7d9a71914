"""Versions of packages by their numbers: no program runs with a release that is older than its model says."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cudalint.machine.values import Atom, Const, Unknown, Value, integer, unknown

_NUMBERS = re.compile(r"\d+(?:\.\d+)*")
_RELEASE = re.compile(r"v?\d+(?:\.\d+)*")
# A number of a version that is taken out of its text, and how many numbers a release has.
_PART, _PARTS = "version part", 3
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "=="}


def version(text: str) -> Value:
    """A version that a program writes down."""
    return unknown("version", text)


def installed(least: str) -> Value:
    """The version of a package of which only the least is known."""
    return unknown("version at least", least)


def parts(least: str) -> list[Value]:
    """The texts between the dots of the version of a package of which only the least is known."""
    return [unknown(_PART, least, place) for place in range(_PARTS)]


def is_older(text: str, least: str) -> bool:
    """Whether the text of a version begins like one of a release that is older than the least."""
    first, dot, _ = text.partition(".")
    return bool(dot) and first.isdigit() and int(first) < _first(least)


def compared(op: str, one: Atom | None, two: Atom | None) -> bool | None:
    """Whether a comparison of versions holds, where the least that can be installed tells; None where it does not."""
    match one, two:
        case Unknown(sym=("int", (str(kind), str(least), 0))), Const(value=int(wanted)) if kind == _PART:
            return _holds(op, (_first(least),), (wanted,))
        case Unknown(sym=("version", str(left))), Unknown(sym=("version", str(right))):
            return _of_both(op, left, right)
        case Unknown(sym=("version at least", str(least))), Unknown(sym=("version", str(wanted))):
            return _holds(op, _numbers(least), _numbers(wanted))
        case Unknown(sym=("version", str())), Unknown(sym=("version at least", str())):
            return compared(_MIRRORED.get(op, ""), two, one)
    return None


def row_compared(op: str, row: Sequence[Value], wanted: Sequence[Value]) -> bool | None:
    """The same of a row of numbers, such as ``tuple(map(int, __version__.split(".")[:2]))``, and of constants."""
    numbers = [integer(value) for value in wanted]
    match row[0] if row else ():
        case (Unknown(sym=("int", (str(kind), str(least), 0))),) if kind == _PART and None not in numbers:
            asked = ".".join(map(str, numbers))
            # More parts than are compared make it no less.
            return _holds(op, _numbers(least)[: len(row)], _numbers(asked)) if len(row) >= len(numbers) else None
    return None


def _first(least: str) -> int:
    return (*_numbers(least), 0)[0]


def _of_both(op: str, left: str, right: str) -> bool | None:
    """What is known of two releases; of what comes before one, or behind it, nothing is."""
    if _RELEASE.fullmatch(left) is None or _RELEASE.fullmatch(right) is None:
        return None
    one, two = _numbers(left), _numbers(right)
    if op == "==":
        return one == two
    return {"<": one < two, "<=": one <= two, ">": one > two, ">=": one >= two}.get(op)


def _holds(op: str, least: tuple[int, ...], wanted: tuple[int, ...]) -> bool | None:
    if not wanted or wanted > least:
        return None
    match op:
        case ">=":
            return True
        case "<":
            return False
    if wanted == least:
        return None
    return {">": True, "<=": False, "==": False}.get(op)


def _numbers(text: str) -> tuple[int, ...]:
    """The numbers of a release; 2.0 is what 2 is."""
    found = _NUMBERS.match(text.removeprefix("v"))
    numbers = [int(part) for part in found.group().split(".")] if found else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
