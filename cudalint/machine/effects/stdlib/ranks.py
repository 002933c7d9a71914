"""What puts values in order: plain values, tuples up to what decides, and objects as their class compares them."""

from __future__ import annotations

from collections.abc import Sequence as Row
from itertools import pairwise
from typing import Any

from cudalint.machine import sets
from cudalint.machine.frame import Call
from cudalint.machine.heap import Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.values import Ref, Value, only

# Each is compared with several others, and what the program says of that is run each time.
_MOST_COMPARED = 12


def ranks(machine: Machine, call: Call, items: Row[Value], state: State) -> list[Any] | None:
    """For each value what Python may put in order in its place; None where that is not known of all of them."""
    plain = [sets.plain(item, state) for item in items]
    if ... not in plain:
        return plain
    if len(items) < 2:
        return [0 for _ in items]
    return _places(machine, call, items, state) if len(items) <= _MOST_COMPARED else None


def _places(machine: Machine, call: Call, items: Row[Value], state: State) -> list[Any] | None:
    """The values' places among each other, by comparing them: equal ones have the same."""
    row: list[int] = []
    for number, item in enumerate(items):
        at = len(row)
        while at:
            verdict = _less(machine, call, item, items[row[at - 1]], state)
            if verdict is None:
                return None
            if not verdict:
                break
            at -= 1
        row.insert(at, number)
    places = [0] * len(items)
    for before, after in pairwise(row):
        verdict = _less(machine, call, items[before], items[after], state)
        if verdict is None:
            return None
        places[after] = places[before] + verdict
    return places


def _less(machine: Machine, call: Call, left: Value, right: Value, state: State) -> bool | None:
    """``left < right``; None where that is not known."""
    one, two = sets.plain(left, state), sets.plain(right, state)
    if one is not ... and two is not ...:
        return _less_plain(one, two)
    rows = [_tuple(value, state) for value in (left, right)]
    if rows[0] is not None and rows[1] is not None:
        return _less_row(machine, call, rows[0], rows[1], state)
    compared = machine.compare_by_class("<", left, right, state, call.frame, call.site)
    if compared is None or len(compared) != 1:
        return None
    return machine.truth(compared[0][1], compared[0][0])[0]


def _less_row(machine: Machine, call: Call, one: Row[Value], two: Row[Value], state: State) -> bool | None:
    for left, right in zip(one, two, strict=False):
        held = sets.plain(left, state)
        if held is ... or held != sets.plain(right, state):
            return _less(machine, call, left, right, state)
    return len(one) < len(two)


def _less_plain(one: Any, two: Any) -> bool | None:
    try:
        return bool(one < two)
    except TypeError:
        return None


def _tuple(value: Value, state: State) -> Row[Value] | None:
    found = state.get(atom) if isinstance(atom := only(value), Ref) else None
    is_known = isinstance(found, Sequence) and found.kind == "tuple" and not found.open
    return found.items if is_known and isinstance(found, Sequence) else None
