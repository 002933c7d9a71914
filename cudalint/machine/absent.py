"""Which attributes an object lacks: those that were deleted, and those that no code of its class could set."""

from __future__ import annotations

from cudalint.machine.classes import MOST_BASES, Order, defines
from cudalint.machine.heap import ANY_NAME, Class, Closure, Dict, Scope, Sequence
from cudalint.machine.state import State
from cudalint.machine.values import TRUE, Const, Lib, Ref, Value, only
from cudalint.models.library import Library

_DYNAMIC = frozenset({"__getattr__", "__setattr__"})
_ASKED_FIRST = ("__getattribute__",)
# Words by which a method may set attributes whose names it does not spell out.
_SETS_ANY = frozenset({"setattr", "__dict__", "vars", "locals", "add_module", "register_module", "register_buffer"})


def without(attributes: dict[str, Value], name: str) -> dict[str, Value]:
    """Attributes after ``del x.name``."""
    return {**{k: v for k, v in attributes.items() if k != name}, _gone(name): TRUE}


def with_(attributes: dict[str, Value], name: str, value: Value) -> dict[str, Value]:
    """Attributes after ``x.name = value``."""
    gone = _gone(name)
    return {**{k: v for k, v in attributes.items() if k != gone}, name: value}


def is_deleted(attributes: dict[str, Value], name: str) -> bool:
    """Whether an attribute was deleted, and nothing was seen that may have set it again."""
    return _gone(name) in attributes and name not in attributes and ANY_NAME not in attributes


def _gone(name: str) -> str:
    return f"<no {name}>"


def class_gives(order: Order, name: str, library: Library, state: State, deleted: bool = False) -> bool | None:
    """Whether the instances of a class have an attribute that nothing was seen to set on one of them."""
    if not _is_known(order, state):
        return None
    missing = True
    if any(isinstance(entry, Class) and defines(entry, _ASKED_FIRST, state) for entry in order):
        return None
    for entry in order:
        if isinstance(entry, str):
            missing = missing and library.lacks(entry, name)
            continue
        scope = state.get(entry.scope)
        variables = scope.variables if isinstance(scope, Scope) else {}
        if name in variables:
            return True
        missing = missing and (deleted or not any(_may_set(name, value, state) for value in variables.values()))
        missing = missing and _DYNAMIC.isdisjoint(variables)
    return False if missing else None


def _is_known(order: Order, state: State) -> bool:
    """Whether all bases of a class are known."""
    bases = (only(base) for entry in order if isinstance(entry, Class) for base in entry.bases)
    return 0 < len(order) < MOST_BASES and all(
        isinstance(base, Lib) or (isinstance(base, Ref) and isinstance(state.get(base), Class)) for base in bases
    )


def _may_set(name: str, value: Value, state: State) -> bool:
    """Whether a method mentions an attribute, also where it did not run; an unknown method may."""
    found = state.get(atom) if isinstance(atom := only(value), Ref) else None
    if isinstance(found, Sequence | Dict):
        # No method: ``__slots__``, tables.
        return False
    if not isinstance(found, Closure):
        return not isinstance(only(value), Const)
    return found.function.mentions(_SETS_ANY | {name, _written(name)})


def _written(name: str) -> str:
    """A private name as its class writes it."""
    owner, _, rest = name.partition("__")
    return f"__{rest}" if owner.startswith("_") and rest else name
