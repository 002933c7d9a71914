"""What a path assumes about a number, derived from the comparisons that led to it."""

from __future__ import annotations

from collections.abc import Hashable

from cudalint.machine.state import State
from cudalint.machine.values import Const, Value


def is_one(count: Value, state: State) -> bool:
    """Whether a number is certainly one: by itself, or by what this path has asked about it."""
    if count == (Const(1),):
        return True
    return any((*_comparison(sym, count), holds) in _ONE for sym, holds in state.facts)


def _comparison(sym: Hashable, count: Value) -> tuple[str, int]:
    """The operator and the number with which an assumption compares a value."""
    match sym:
        case ("is", str(op), one, Const(value=int(number))) if (one,) == count:
            return op, number
        case ("is", str(op), Const(value=int(number)), one) if (one,) == count:
            return _MIRRORED.get(op, op), number
        case (_, str(op), left, (Const(value=int(number)),)) if left == count:
            return op, number
    return "", 0


_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_ONE = frozenset({(">", 1, False), ("==", 1, True), ("<=", 1, True), (">=", 2, False), ("<", 2, True)})
