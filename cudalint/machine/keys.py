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
            if depth > MOST_NESTED or not isinstance(found, Sequence) or found.open or found.items is None:
                return value
            if found.kind != "tuple" and not is_frozen(atom):
                return value
            parts = tuple(constant(as_key(item, state, depth + 1)) for item in found.items)
            if ... in parts:
                return value
            return (Const(parts if found.kind == "tuple" else frozenset(parts)),)
    return value


# Parts of the addresses of what a program writes out, and of a set that never changes.
_DISPLAYS = frozenset({"comp", "display"})
FROZEN = "frozenset"


def is_display(ref: Ref) -> bool:
    """Whether a list or a set is one that the program wrote out, and nothing that is only like one."""
    return _made_by(ref) in _DISPLAYS


def is_frozen(ref: Ref) -> bool:
    """Whether a set is one that never changes."""
    return _made_by(ref) == FROZEN


def _made_by(ref: Ref) -> str:
    match ref.address:
        case ((str(made), *_), _, _):
            return made
    return ""


def of_key(key: Hashable) -> Value:
    """The value that a dict keeps under a key."""
    match key:
        case Ref() | Lib() | Dev() | Rank():
            return (key,)
        case tuple() | frozenset():
            return unknown("key", key)
    return const(key)
