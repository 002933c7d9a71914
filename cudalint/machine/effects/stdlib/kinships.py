"""Which classes count as another one that they do not derive from: by registration, or by their methods."""

from __future__ import annotations

import builtins
import collections.abc
import numbers
from collections.abc import Hashable, Iterator
from functools import cache

from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import REGISTERED, Class, Dict, Scope
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.values import NONE, TRUE, Atom, Lib, Ref, Value

# Bases that give their classes nothing that is asked for here.
BARE = frozenset({"abc.ABC", "builtins.object", "typing.Generic", "typing.Protocol"})


def register(machine: Machine, call: Call) -> Results:
    """``Abstract.register(cls)``: from now on that class counts as one below the other, which gives it back."""
    kind, given = call.receiver, call.args[0] if call.args else NONE
    found = call.state.get(REGISTERED)
    known = found.items if isinstance(found, Dict) else {}
    made: dict[Hashable, Value] = {(kind, cls): TRUE for cls in given if isinstance(cls, Ref)}
    call.state.store(REGISTERED, Dict({**known, **made}))
    return [(call.state, given)]


def is_registered(machine: Machine, cls: Ref, kind: Atom, state: State) -> bool:
    """Whether a class, or one above it, was registered to another one, or to one below that."""
    found = state.get(REGISTERED)
    if not isinstance(found, Dict):
        return False
    order = machine.mro(cls, state)
    return any(
        state.get(entered) in order and _is_one_of(machine, told, kind, state) for told, entered in _entries(found)
    )


def _entries(found: Dict) -> Iterator[tuple[Atom, Ref]]:
    for key in found.items:
        match key:
            case (Lib() | Ref() as told, Ref() as entered):
                yield told, entered


def _is_one_of(machine: Machine, told: Atom, kind: Atom, state: State) -> bool:
    """Whether the class to which another was registered is the one meant, or below it."""
    if told == kind:
        return True
    match told, kind:
        case Lib(path=own), Lib(path=path):
            below, above = abstract(own), abstract(path)
            return below is not None and above is not None and issubclass(below, above)
        case Ref(), Ref():
            return state.get(kind) in machine.mro(told, state)
        case Ref(), Lib(path=path):
            return any(isinstance(e, str) and machine.library.is_a(e, path) for e in machine.mro(told, state))
    return False


def abstract(path: str) -> type | None:
    """An abstract class of Python's own, to which its containers and numbers are registered."""
    module, _, name = path.rpartition(".")
    home = {"collections.abc": collections.abc, "typing": collections.abc, "numbers": numbers}.get(module)
    found = getattr(home, name, None)
    return found if isinstance(found, type) else None


def is_callable_kind(kind: type | None) -> bool:
    """Whether this is the abstract class of what can be called."""
    return kind is not None and kind.__name__ == "Callable"


def by_python(machine: Machine, cls: Ref, path: str, state: State) -> bool | None:
    """What Python itself says of a class that has the same methods; None where a base, or the other, is not its own."""
    kind = abstract(path) or _own(path)
    if kind is None or (kind is collections.abc.Hashable and _is_data(machine, cls, state)):
        return None
    alike = _alike(machine, cls, state)
    return None if alike is None else issubclass(alike, kind)


def _own(path: str) -> type | None:
    found = getattr(builtins, path.removeprefix("builtins."), None)
    return found if isinstance(found, type) else None


def _is_data(machine: Machine, cls: Ref, state: State) -> bool:
    """Whether a decorator decides if the instances of a class can be hashed."""
    return any(isinstance(entry, Class) and entry.is_dataclass for entry in machine.mro(cls, state))


def _alike(machine: Machine, cls: Ref, state: State) -> type | None:
    """A class of Python with the methods of a class of the program, of which none does anything."""
    made: type = object
    for entry in reversed(machine.mro(cls, state)):
        scope = state.get(entry.scope) if isinstance(entry, Class) else None
        if isinstance(entry, str):
            base = object if entry in BARE else abstract(entry) or _own(entry)
            if base is None:
                return None
            bases = tuple(dict.fromkeys((base, made) if made is not object else (base,)))
            names: dict[str, object] = {}
        else:
            bases = (made,)
            variables = scope.variables if isinstance(scope, Scope) else {}
            names = {n: None if value == NONE else _nothing for n, value in variables.items() if n in _asked_for()}
        try:
            made = type("Alike", bases, names)
        except TypeError:
            return None
    return made


def _nothing(*_: object) -> None:
    """Stands for a method."""


@cache
def _asked_for() -> frozenset[str]:
    """The methods by which Python tells its abstract classes."""
    kinds = [getattr(collections.abc, name) for name in collections.abc.__all__]
    names = {name for kind in kinds for name in dir(kind) if callable(getattr(kind, name, None))}
    return frozenset((names - set(dir(object))) | {"__eq__", "__hash__"})
