"""Instances of the program's own classes that derive from dict, and those whose attributes lie in one."""

from __future__ import annotations

from dataclasses import replace

from cudalint.machine.heap import Dict, Instance
from cudalint.machine.state import State
from cudalint.machine.values import Atom, Ref, Value, only

DICT = "builtins.dict"
# Under this name an instance keeps the library's object that it is as well.
SELF = "<self>"
# What a class gets from dict; what it is asked for by another name is its own affair.
METHODS = frozenset(dir(dict)) - frozenset(dir(object)) | {"__getitem__", "__setitem__"}


def dict_of(atom: Atom | None, state: State) -> Ref | None:
    """The dict that a value is: itself, or what an instance of a class below dict holds."""
    found = state.get(atom) if isinstance(atom, Ref) else None
    if isinstance(atom, Ref) and isinstance(found, Dict):
        return atom
    kept = only(found.attributes.get(SELF, ())) if isinstance(found, Instance) else None
    return kept if isinstance(kept, Ref) and isinstance(state.get(kept), Dict) else None


def attributes_of(instance: Instance, state: State) -> Ref | None:
    """The dict in which an instance keeps its attributes since it was given one: ``self.__dict__ = d``."""
    given = (dict_of(atom, state) for atom in instance.attributes.get("__dict__", ()))
    return next((found for found in given if found is not None), None)


def hold(instance: Ref, content: Value, state: State) -> None:
    """Have an instance be this dict as well."""
    found = state.get(instance)
    if isinstance(found, Instance):
        state.store(instance, replace(found, attributes={**found.attributes, SELF: content}))
