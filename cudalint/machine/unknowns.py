"""What the program puts into things that nobody knows, where that decides on a device or on a way.

A device counts if one path puts it there. A switch, or a whole number (of workers, of GPUs), says which way goes on,
so that it is known where all paths put one there, until something that nobody knows may have changed it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cudalint.machine.heap import OF_UNKNOWN, Dict, Object
from cudalint.machine.state import State
from cudalint.machine.values import Atom, Const, Unknown, Value, union

# Methods that only look at what an object holds.
_LOOKS = frozenset({"copy", "get", "items", "keys", "values"})


def put(atom: Unknown, field: str, value: Value, state: State) -> None:
    """``atom.field = value``."""
    state.store(OF_UNKNOWN, Dict({**_all(state.get(OF_UNKNOWN)).items, (atom, field): value}))


def put_there(atom: Atom, field: str | None, state: State) -> Value:
    """What the program put into something unknown under this name; empty where it put nothing there."""
    found = state.get(OF_UNKNOWN)
    return found.items.get((atom, field), ()) if isinstance(found, Dict) and field is not None else ()


def is_filled(atom: Unknown, state: State) -> bool:
    """Whether the program put anything into something unknown, which is therefore there."""
    return any(True for _ in given_to(atom, state))


def given_to(atom: Unknown, state: State) -> Iterator[Value]:
    """All that the program put into something unknown."""
    found = state.get(OF_UNKNOWN)
    items = found.items if isinstance(found, Dict) else {}
    return (value for at, value in items.items() if isinstance(at, tuple) and atom in at[:1])


def forget(state: State, is_gone: Callable[[Unknown, Value], bool]) -> None:
    """Let go of what was put into things, where it is gone."""
    found = state.get(OF_UNKNOWN)
    if not isinstance(found, Dict):
        return
    kept = {at: value for at, value in found.items.items() if not (isinstance(at, tuple) and is_gone(at[0], value))}
    if len(kept) < len(found.items):
        state.store(OF_UNKNOWN, Dict(kept))


def may_change(atom: Atom, state: State, method: str | None = None) -> None:
    """Something that nobody knows was given this thing, or is a method of it: switches may have another position."""
    if method not in _LOOKS and isinstance(atom, Unknown):
        forget(state, lambda thing, value: thing == atom and _are_switches(value))


def joined(mine: Object | None, theirs: Object | None) -> Dict:
    """What two paths put there, for one that stands for both: of a switch that only one has nothing is known."""
    one, two = _all(mine).items, _all(theirs).items
    shared = {at: value if two[at] == value else union([value, two[at]]) for at, value in one.items() if at in two}
    alone = {at: value for at, value in {**two, **one}.items() if at not in shared and not _are_switches(value)}
    return Dict({**shared, **alone})


def is_switch(atom: Atom) -> bool:
    """Whether something says yes or no, or how many."""
    return isinstance(atom, Const) and isinstance(atom.value, int)


def _are_switches(value: Value) -> bool:
    return any(map(is_switch, value))


def _all(found: Object | None) -> Dict:
    return found if isinstance(found, Dict) else Dict({})
