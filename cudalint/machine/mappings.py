"""Instances of the program's own classes that derive from dict or list, and those whose attributes lie in one."""

from __future__ import annotations

from collections.abc import Iterable

from cudalint.machine.heap import Class, Dict, Instance, LibraryObject, Sequence
from cudalint.machine.state import State
from cudalint.machine.values import Atom, Ref, Value, only
from cudalint.structs import replace

# Classes of Python whose instances are dicts or lists, or hold one as their attribute ``data``.
DICTS = frozenset({"builtins.dict", "collections.UserDict"})
LISTS = frozenset({"builtins.list", "collections.UserList"})
_WRAPPERS = frozenset({"collections.UserDict", "collections.UserList"})
_DATA = "data"
# Methods of a wrapper that ask its class for items, or have it put them, by this method.
WRITTEN_BY = {
    "update": "__setitem__", "setdefault": "__setitem__", "get": "__getitem__", "items": "__getitem__",
    "values": "__getitem__",
}  # fmt: skip
# Under this name an instance keeps the library's object that it is as well.
SELF = "<self>"
# What a class gets from these; what it is asked for by another name is its own affair.
_OF_OBJECTS = frozenset(dir(object))
_METHODS = {
    "builtins.dict": frozenset(dir(dict)) - _OF_OBJECTS | {"__getitem__", "__setitem__"},
    "builtins.list": frozenset(dir(list)) - _OF_OBJECTS,
}


def empty(order: Iterable[Class | str]) -> Dict | Sequence | None:
    """What a new instance holds whose classes these are; None where it is no dict and no list."""
    for entry in order:
        if entry in DICTS:
            return Dict({})
        if entry in LISTS:
            return Sequence("list", ())
    return None


def is_wrapper(order: Iterable[Class | str]) -> bool:
    """Whether instances of classes hold what they are as their attribute ``data``."""
    return any(entry in _WRAPPERS for entry in order)


def dict_of(atom: Atom | None, state: State) -> Ref | None:
    """The dict that a value is: itself, or what an instance of a class below dict, or a library's mapping, holds."""
    return atom if isinstance(atom, Ref) and _is(atom, Dict, state) else _held(atom, Dict, state)


def list_of(atom: Atom | None, state: State) -> Ref | None:
    """The list that an instance of a class below list holds."""
    return _held(atom, Sequence, state)


def content_of(atom: Atom | None, state: State) -> Ref | None:
    """What an instance of a class below dict or list holds."""
    return _held(atom, Dict, state) or _held(atom, Sequence, state)


def _is(atom: Atom | None, kind: type, state: State) -> bool:
    return isinstance(atom, Ref) and isinstance(state.get(atom), kind)


def _held(atom: Atom | None, kind: type, state: State) -> Ref | None:
    found = state.get(atom) if isinstance(atom, Ref) else None
    kept = None
    if isinstance(found, Instance):
        kept = only(found.attributes.get(SELF, ()))
    elif isinstance(found, LibraryObject):
        kept = only(found.fields.get(SELF, ()))
    return kept if isinstance(kept, Ref) and _is(kept, kind, state) else None


def method(content: Ref, name: str, state: State) -> str | None:
    """The path of a method that what an instance holds has by this name."""
    kind = "builtins.dict" if _is(content, Dict, state) else "builtins.list"
    return f"{kind}.{name}" if name in _METHODS[kind] else None


def attributes_of(instance: Instance, state: State) -> Ref | None:
    """The dict in which an instance keeps its attributes since it was given one: ``self.__dict__ = d``."""
    given = (dict_of(atom, state) for atom in instance.attributes.get("__dict__", ()))
    return next((found for found in given if found is not None), None)


def hold(instance: Ref, content: Value, state: State, wraps: bool = False) -> None:
    """Have an instance be this dict or list as well; a wrapper has it as an attribute, too."""
    found = state.get(instance)
    if not isinstance(found, Instance):
        return
    attributes = {**found.attributes, SELF: content}
    before = found.attributes.get(_DATA)
    if wraps or (before is not None and before == found.attributes.get(SELF)):
        attributes[_DATA] = content
    state.store(instance, replace(found, attributes=attributes))
