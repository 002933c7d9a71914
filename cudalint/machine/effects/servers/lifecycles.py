"""Objects that someone makes ready by one method before another one is called: what that reads, this one sets."""

from __future__ import annotations

from collections.abc import Set

from cudalint.ir import own_attributes
from cudalint.machine.frame import Frame
from cudalint.machine.heap import Class, Closure, Instance, Scope
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Bound, Ref, Value, only

# A method that asks by these whether it is ready does not rest on another one.
_ASKS = frozenset({"hasattr", "getattr", "AttributeError"})


def made_ready(machine: Machine, ref: Ref, instance: Instance, method: str, state: State, frame: Frame) -> list[State]:
    """The states after the one method that sets what another one reads whenever it is called, and nothing else sets.

    ``open_spider()`` makes the pool that ``process_item()`` uses: whoever calls this has called that.
    """
    atom = machine.user_method(instance, method, state)
    called = state.get(atom) if isinstance(atom, Ref) else None
    if not isinstance(called, Closure) or called.function.mentions(_ASKS):
        return [state]
    asked = own_attributes.read(called.function) - own_attributes.written(called.function)
    missing = {
        name for name in asked - instance.attributes.keys() if machine.user_method(instance, name, state) is None
    }
    # Most methods lack nothing: only for those that do, the whole class is gone through.
    named = _of_class(machine, instance.cls, state) if missing else {}
    named.pop(method, None)
    setter = _setter(missing - named.keys(), named, state)
    if setter is None:
        return [state]
    first, closure = setter
    if called.function.mentions({closure.function.name}) or closure.function.mentions({method}):
        return [state]
    site = Site(closure.module, closure.function.ordinal)
    results = machine.call_value((Bound(first, ref),), [], {}, state, frame, site)
    return [after for after, _ in results] or [state]


def _of_class(machine: Machine, cls: Ref, state: State) -> dict[str, Value]:
    """What a class and those above it define; nothing where one of a library is among them, which may do more."""
    entries = machine.mro(cls, state)
    if not all(isinstance(entry, Class) for entry in entries):
        return {}
    scopes = [state.get(entry.scope) for entry in reversed(entries) if isinstance(entry, Class)]
    return {name: value for scope in scopes if isinstance(scope, Scope) for name, value in scope.variables.items()}


def _setter(missing: Set[str], named: dict[str, Value], state: State) -> tuple[Ref, Closure] | None:
    """The one method that sets some of these attributes."""
    if not missing:
        return None
    atoms = [atom for value in named.values() if isinstance(atom := only(value), Ref)]
    methods = [(atom, found) for atom in atoms if isinstance(found := state.get(atom), Closure)]
    setters = [(atom, found) for atom, found in methods if found.kind == "function" and _sets(found, missing)]
    return setters[0] if len(setters) == 1 else None


def _sets(closure: Closure, missing: Set[str]) -> bool:
    """Whether a method may set one of these; asking costs less than its body."""
    function = closure.function
    return (
        function.name != "__init__"
        and function.mentions(missing)
        and not missing.isdisjoint(own_attributes.written(function))
    )
