"""The types of a value, as ``isinstance`` sees them."""

from __future__ import annotations

import builtins
import collections.abc
from collections.abc import Callable, Iterator

from cudalint.machine import exceptions
from cudalint.machine.classes import Order, defines, is_abstract, is_protocol
from cudalint.machine.effects.stdlib import kinships
from cudalint.machine.heap import Class, Closure, Dict, Instance, LibraryObject, Scope, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.values import (
    DEVICE,
    NONE,
    STATE,
    Atom,
    Bound,
    Const,
    Dev,
    Lib,
    Member,
    Partial,
    Rank,
    Ref,
    Tensor,
    Unknown,
    Value,
    is_device,
    member_of,
    only,
)

# What arrays have the methods of.
_OF_ARRAYS = frozenset(
    {
        collections.abc.Collection, collections.abc.Container, collections.abc.Hashable, collections.abc.Iterable,
        collections.abc.Reversible, collections.abc.Sized,
    }
)  # fmt: skip
# The classes of plain data.
_OF_DATA = frozenset(
    f"builtins.{kind}" for kind in ("bool", "bytes", "dict", "float", "int", "list", "set", "str", "tuple")
)
# What a body may define without asking it of others.
_NO_MEMBERS = frozenset(
    {"__class_getitem__", "__doc__", "__init__", "__match_args__", "__new__", "__slots__", "__subclasshook__"}
)
_ASKED_OF_METACLASSES = ("__instancecheck__", "__subclasscheck__")


def is_instance(machine: Machine, atom: Atom, kind: Atom | None, state: State) -> bool | None:
    """Whether a value is of a type; None where one of the two is not known."""
    held = state.get(atom) if isinstance(atom, Ref) else None
    if isinstance(kind, Ref):
        return _is_of_project(machine, atom, held, kind, state)
    if not isinstance(kind, Lib):
        return None
    if isinstance(atom, Tensor) and atom.type == STATE:
        return None
    abstract = kinships.abstract(kind.path)
    if isinstance(atom, Tensor):
        is_array = abstract is not None and machine.library.is_a(atom.type, "torch.Tensor")
        return (abstract in _OF_ARRAYS) if is_array else machine.library.is_a(atom.type, kind.path)
    if is_device(atom):
        return kind.path == DEVICE or (False if _is_plain(machine, kind) else None)
    if isinstance(atom, Dev):
        return kind.path in ("builtins.str", "builtins.object")
    if _lies_on_the_host(machine, atom) and machine.library.is_a(kind.path, "torch.Tensor"):
        return False
    names = _builtins(atom, held)
    if isinstance(held, Sequence) and held.kind == "set" and kind.path == "builtins.frozenset":
        return None
    if names is not None and abstract is not None:
        return any(issubclass(own, abstract) for own in map(_own_class, names) if own is not None)
    if names is not None:
        return kind.path in names or (False if _is_plain(machine, kind) else None)
    if kind.path in _OF_DATA and _is_code(machine, atom, held):
        return False
    if kind.path == "builtins.type":
        return is_a_class(machine, atom, state)
    if isinstance(held, LibraryObject) and (found := _is_described(machine, held.type, kind)) is not None:
        return found
    if not isinstance(held, Instance):
        return is_callable(machine, atom, state) if kinships.is_callable_kind(abstract) else None
    return _is_below(machine, held.cls, kind, state)


def _is_code(machine: Machine, atom: Atom, held: object) -> bool:
    """Whether something is a function, a class or a module, of the program or of a library."""
    if isinstance(atom, Lib):
        return atom.path in machine.library.roots or machine.library.function(atom.path) is not None
    return isinstance(held, Closure | Class) or (isinstance(held, Scope) and held.kind == "module")


def _is_described(machine: Machine, made: str, kind: Lib) -> bool | None:
    """Whether what a library makes is of a class; None where models do not describe the two as classes."""
    library = machine.library
    own, asked = library.canonical(made), library.canonical(kind.path)
    if own not in library.bases or asked not in library.bases:
        return None
    return library.is_a(own, asked) or (None if library.is_a(asked, own) else False)


def _is_below(machine: Machine, cls: Ref, kind: Lib, state: State) -> bool | None:
    """Whether a class of the program derives from one of a library, or counts as it."""
    bases = [entry for entry in machine.mro(cls, state) if isinstance(entry, str)]
    if kind.path == "builtins.object" or any(machine.library.is_a(base, kind.path) for base in bases):
        return True
    if kinships.is_registered(machine, cls, kind, state):
        return True
    by_python = kinships.by_python(machine, cls, kind.path, state)
    return False if by_python is None and not bases and _is_plain(machine, kind) else by_python


def _own_class(path: str) -> type | None:
    found = getattr(builtins, path.removeprefix("builtins."), None)
    return found if isinstance(found, type) else None


def is_called(machine: Machine, atom: Atom, name: str, state: State) -> bool | None:
    """Whether a value is of a class of this name, of which an annotation says no more; None where that is not known."""
    held = state.get(atom) if isinstance(atom, Ref) else None
    if isinstance(atom, Tensor) and machine.library.is_a(atom.type, "torch.Tensor"):
        found = machine.library.is_called(atom.type, name) if name[:1].isupper() else False
        return True if name == "Tensor" else found
    if _lies_on_the_host(machine, atom):
        return False if name == "Tensor" else None
    if (names := _builtins(atom, held)) is not None:
        is_one = any(own.rpartition(".")[2] == name for own in names)
        return is_one or (False if name == "Tensor" or name.islower() else None)
    if isinstance(held, Instance):
        kinds = [k.name if isinstance(k, Class) else k.rpartition(".")[2] for k in machine.mro(held.cls, state)]
        if name in kinds:
            return True
        # A class with a base of a framework is none of the framework's other ones.
        bases = [k for k in machine.mro(held.cls, state) if isinstance(k, str) and k in machine.library.bases]
        return False if bases and all(machine.library.is_called(base, name) is False for base in bases) else None
    if isinstance(held, LibraryObject) and machine.library.canonical(held.type) in machine.library.bases:
        return machine.library.is_called(held.type, name)
    return None


def _lies_on_the_host(machine: Machine, atom: Atom) -> bool:
    """Whether a value is what a library gave that knows no framework."""
    match atom:
        case Unknown(sym=("call", _, _, _, str(path), *_)):
            return machine.library.traits.has(path, "gives-host-data")
    return False


def _is_of_project(machine: Machine, atom: Atom, held: object, kind: Ref, state: State) -> bool | None:
    """Whether a value is of a class of the project."""
    wanted = state.get(kind)
    cls = class_of(atom, state)
    order = () if cls is None else machine.mro(cls, state)
    if order and order[0] is wanted:
        return True
    if any(entry is wanted for entry in order) and not asks_itself(machine, kind, state):
        return True
    if cls is not None and isinstance(wanted, Class):
        attributes = held.attributes if isinstance(held, Instance) else {}
        return _counts_as(machine, kind, cls, frozenset(attributes), state)
    if cls is not None:
        return False
    if _builtins(atom, held) is None or not isinstance(wanted, Class):
        return None
    return None if any(map(_takes_others, machine.mro(kind, state))) else False


def class_of(atom: Atom, state: State) -> Ref | None:
    """The class of the program that something is an instance of."""
    held = state.get(atom) if isinstance(atom, Ref) else None
    if (member := member_of(atom)) is not None:
        return member.cls
    return held.cls if isinstance(held, Instance) else None


def is_subclass(machine: Machine, atom: Atom, kind: Atom | None, state: State) -> bool | None:
    """Whether a class derives from another one, or is it; None where that is not known."""
    if not isinstance(kind, Lib | Ref):
        return None
    if isinstance(atom, Lib) and isinstance(kind, Lib):
        below, above = _own_class(atom.path), _own_class(kind.path)
        if below is not None and above is not None:
            return issubclass(below, above)
        return True if machine.library.is_a(atom.path, kind.path) else None
    if not isinstance(atom, Ref) or not isinstance(state.get(atom), Class):
        return None
    order = machine.mro(atom, state)
    if isinstance(kind, Lib):
        return _is_below(machine, atom, kind, state)
    wanted = state.get(kind)
    if any(entry is wanted for entry in order) and not asks_itself(machine, kind, state):
        return True
    return _counts_as(machine, kind, atom, frozenset(), state) if isinstance(wanted, Class) else None


def _counts_as(machine: Machine, kind: Ref, cls: Ref, attributes: frozenset[str], state: State) -> bool | None:
    """Whether a class counts as another one that it does not derive from, or an instance of it with attributes."""
    if asks_itself(machine, kind, state):
        return None
    return counts_unasked(machine, kind, cls, attributes, state)


def counts_unasked(machine: Machine, kind: Ref, cls: Ref, attributes: frozenset[str], state: State) -> bool | None:
    """The same, whatever the other class says by code of its own."""
    order, wanted = machine.mro(kind, state), state.get(kind)
    own = machine.mro(cls, state)
    if any(entry is wanted for entry in own) or kinships.is_registered(machine, cls, kind, state):
        return True
    if not isinstance(wanted, Class) or not is_protocol(wanted):
        return False
    above = [entry for entry in own if isinstance(entry, Class)]
    lacking = [n for n in _members(order, state) if n not in attributes and not _gives(above, n, state)]
    if not lacking:
        return True
    others = [entry for entry in own if isinstance(entry, str) and entry not in kinships.BARE]
    is_open = bool(others) or any(defines(c, ("__getattr__",), state) for c in above)
    return None if is_open else False


def _gives(above: list[Class], name: str, state: State) -> bool:
    """Whether classes give their instances what a protocol asks for; None says that there is no such method."""
    scopes = (state.get(entry.scope) for entry in above)
    found = next((s.variables[name] for s in scopes if isinstance(s, Scope) and name in s.variables), None)
    return found is not None and found != NONE


def asks_itself(machine: Machine, kind: Ref, state: State) -> bool:
    """Whether a class says by code of its own what counts as one of it."""
    order = machine.mro(kind, state)
    classes = [entry for entry in order if isinstance(entry, Class)]
    if any(defines(entry, ("__subclasshook__",), state) for entry in classes):
        return is_abstract(order, machine.mro, state)
    metas = (meta for entry in classes for meta in entry.meta if isinstance(meta, Ref))
    kinds = (k for meta in metas for k in machine.mro(meta, state))
    return any(isinstance(k, Class) and defines(k, _ASKED_OF_METACLASSES, state) for k in kinds)


def _members(order: Order, state: State) -> Iterator[str]:
    """The names that a protocol asks for: what its body, and those of protocols above it, define or declare."""
    for entry in order:
        scope = state.get(entry.scope) if isinstance(entry, Class) and is_protocol(entry) else None
        if isinstance(entry, Class) and isinstance(scope, Scope):
            declared = (name for name, _ in entry.fields)
            yield from (name for name in (*scope.variables, *declared) if name not in _NO_MEMBERS)


def _takes_others(entry: Class | str) -> bool:
    """Whether what does not derive from a class may count as an instance of it."""
    if isinstance(entry, Class):
        return bool(entry.meta) or is_protocol(entry)
    return entry.rpartition(".")[2] in ("ABC", "Protocol")


def is_instance_of_any(machine: Machine, atom: Atom, kinds: Value, state: State) -> bool | None:
    """The same of one type, or of any in a tuple of types."""
    return _any_of(machine, kinds, lambda kind: is_instance(machine, atom, kind, state), state)


def _any_of(machine: Machine, kinds: Value, ask: Callable[[Atom | None], bool | None], state: State) -> bool | None:
    rows = machine.exact_items(kinds, state)
    wanted = [only(kinds)] if rows is None else [only(row) for row in rows]
    verdicts = {ask(kind) for kind in wanted}
    if True in verdicts:
        return True
    return None if None in verdicts else False


def _builtins(atom: Atom, held: object) -> set[str] | None:
    """The classes of a constant, a container or an exception of Python's own."""
    match atom, held:
        case Const(value=bool() | int() | float() | str() | bytes() | None as value), _:
            return {f"builtins.{c.__name__}" for c in type(value).__mro__}
        case ((Rank(kind="local" | "global", derived=False) | Unknown(sym=("len", *_))), _):
            return {"builtins.int", "builtins.object"}
        case Rank(derived=False, numbers=numbers), _ if numbers and not any(isinstance(n, bool) for n in numbers):
            return {"builtins.int", "builtins.object"}
        case Unknown(sym=("slice", *_)), _:
            return {"builtins.slice", "builtins.object"}
        case _, Sequence(kind="list" | "tuple" | "set" as own):
            return {f"builtins.{own}", "collections.abc.Iterable"}
        case _, Dict():
            return {"builtins.dict", "collections.abc.Mapping"}
        case _, LibraryObject(type=path) if (cls := exceptions.kind(path)) is not None:
            return {f"builtins.{each.__name__}" for each in cls.__mro__}
    return None


def _is_plain(machine: Machine, kind: Lib) -> bool:
    """Whether only a class and its subclasses are instances of a type, which an abstract class would not promise."""
    if kind.path.startswith("builtins.") or machine.library.is_a(kind.path, "torch.Tensor"):
        return True
    # A class that a model describes as one: its instances are made by its library.
    return machine.library.canonical(kind.path) in machine.library.bases


def is_callable(machine: Machine, atom: Atom, state: State) -> bool | None:
    """Whether a value can be called; None where that is not known."""
    match atom:
        case Const(value=value):
            return None if isinstance(value, Member) else False
        case Bound(may_be_data=may_be_data):
            return None if may_be_data else True
        case Partial():
            return True
        case Lib(path=path):
            return True if machine.library.function(path) is not None else None
        case Ref():
            return _is_callable_object(machine, state.get(atom), state)
    return None


def _is_callable_object(machine: Machine, held: object, state: State) -> bool | None:
    match held:
        case Closure(kind=kind):
            return kind not in ("property", "cached")
        case Class():
            return True
        case Sequence() | Dict() | Scope():
            return False
        case Instance(cls=cls):
            order = machine.mro(cls, state)
            if any(isinstance(entry, Class) and defines(entry, ("__call__",), state) for entry in order):
                return True
            return None if any(isinstance(entry, str) for entry in order) else False
    return None


def is_a_class(machine: Machine, atom: Atom, state: State) -> bool | None:
    """Whether a value is a class; None where that is not known."""
    match atom:
        case Const() | Bound() | Partial() | Tensor() | Dev():
            return False
        case Ref():
            return isinstance(state.get(atom), Class)
    return None
