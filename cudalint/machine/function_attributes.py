"""Attributes of functions: ``work.model = model``, and what ``functools.wraps`` remembers."""

from __future__ import annotations

from collections.abc import Mapping

from cudalint.machine.heap import NAMESPACE, Closure, LibraryObject
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Ref, Value, union
from cudalint.structs import replace


def attributes_of_function(closure: Closure, state: State) -> Mapping[str, Value]:
    """The attributes that a function was given."""
    held = None if closure.own is None else state.get(closure.own)
    return held.fields if isinstance(held, LibraryObject) else {}


def give_attribute(ref: Ref, closure: Closure, name: str, value: Value, state: State, weak: bool = False) -> None:
    """Keep an attribute of a function; a ``weak`` one may be what it was as well."""
    before = attributes_of_function(closure, state)
    site = Site(closure.module, closure.function.ordinal)
    kept = union([before[name], value]) if weak and name in before else value
    made = LibraryObject(NAMESPACE, {**before, name: kept}, site)
    if closure.own is None:
        closure = replace(closure, own=state.new(("attributes", site), made))
    else:
        state.store(closure.own, made)
    state.store(ref, closure)
