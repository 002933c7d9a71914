"""What a path assumes about a number, derived from the comparisons that led to it."""

from __future__ import annotations

from cudalint.machine import questions
from cudalint.machine.state import State
from cudalint.machine.values import Const, Value


def is_one(count: Value, state: State) -> bool:
    """Whether a number is certainly one: by itself, or by what this path has asked about it."""
    return count == (Const(1),) or questions.highest(state.facts, count) == 1
