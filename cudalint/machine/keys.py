"""Keys of dicts: constants, tuples of them, numbers of processes, and classes, functions and names of libraries."""

from __future__ import annotations

from collections.abc import Hashable

from cudalint.machine.heap import Class, Closure, Sequence
from cudalint.machine.state import State
from cudalint.machine.values import Const, Dev, Lib, Rank, Ref, Value, const, constant, only, unknown

# How deep tuples in tuples are looked into: one that a loop makes of itself lies where its part lies.
MOST_NESTED = 6


def as_key(value: Value, state: State, depth: int = 0) -> Value:
    """A value as the constant under which a dict keeps it; the value itself where it is none."""
    atom = only(value)
    match atom:
        case Lib() | Dev() | Rank(process=(_, *_), derived=False):
            # The number of a process is one that only this process has.
            return (Const(atom),)
        case Ref():
            found = state.get(atom)
            if isinstance(found, Class | Closure):
                return (Const(atom),)
            if depth > MOST_NESTED or not isinstance(found, Sequence) or found.kind != "tuple" or found.open:
                return value
            if found.items is not None:
                parts = tuple(constant(as_key(item, state, depth + 1)) for item in found.items)
                return value if ... in parts else (Const(parts),)
    return value


def of_key(key: Hashable) -> Value:
    """The value that a dict keeps under a key."""
    match key:
        case Ref() | Lib() | Dev() | Rank():
            return (key,)
        case tuple():
            return unknown("key", key)
    return const(key)
