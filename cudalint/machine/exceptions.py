"""Exceptions as objects: what they are made with, what they keep of it, and what they say as texts."""

from __future__ import annotations

import builtins
from collections.abc import Hashable, Iterable, Iterator

from cudalint.machine.classes import Order
from cudalint.machine.heap import Dict, Instance, LibraryObject, Sequence
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import NONE, Lib, Ref, Unknown, Value, const, constant, only, unknown
from cudalint.structs import replace

ARGS, CAUSE, PARTS = "args", "__cause__", "exceptions"
_GROUPS = frozenset({"builtins.BaseExceptionGroup", "builtins.ExceptionGroup"})


# What a handler calls to have its exception as text.
_AS_TEXT = frozenset({"traceback.format_exc", "sys.exc_info"})
_DEEPEST = 6


def caught(module: str, ordinal: int) -> Value:
    """What a handler is for, where nobody knows what it says."""
    return unknown("exception", module, ordinal)


def spoken_of(value: Value, state: State, depth: int = 0) -> Iterator[Hashable]:
    """The exceptions of handlers that a value is, has in itself, or is a text of; a name for what some text is of."""
    if depth > _DEEPEST:
        return
    for atom in value:
        if isinstance(atom, Unknown):
            yield from _made_of(atom.sym, depth)
        parts: Iterable[Value] = ()
        match state.get(atom) if isinstance(atom, Ref) else None:
            case Sequence(items=items, element=element):
                parts = (*(items or ()), element)
            case Dict(items=held, element=element):
                parts = (*held.values(), element)
            case Instance(attributes=held) | LibraryObject(fields=held):
                parts = held.values()
        for part in parts:
            yield from spoken_of(part, state, depth + 1)


def _made_of(sym: Hashable, depth: int) -> Iterator[Hashable]:
    if isinstance(sym, Unknown):
        yield from _made_of(sym.sym, depth)
    elif sym in _AS_TEXT or (isinstance(sym, tuple) and sym[:1] == ("exception",)):
        yield sym
    elif isinstance(sym, tuple) and depth <= _DEEPEST:
        for part in sym:
            yield from _made_of(part, depth + 1)


def kind(path: str) -> type[BaseException] | None:
    """The class of an exception of Python's own."""
    home, _, name = path.rpartition(".")
    found = getattr(builtins, name, None) if home == "builtins" else None
    return found if isinstance(found, type) and issubclass(found, BaseException) else None


def ends_process(names: tuple[str, ...]) -> bool:
    """Whether something that is raised ends a program on purpose: ``except Exception`` lets it through."""
    kinds = [known for name in names if (known := kind(f"builtins.{name}")) is not None]
    return bool(kinds) and not any(issubclass(known, Exception) for known in kinds)


def is_below(order: Order) -> bool:
    """Whether a class of the program derives from an exception of Python's own."""
    return any(isinstance(entry, str) and kind(entry) is not None for entry in order)


def row(args: list[Value], site: Site, state: State) -> Value:
    """What an exception keeps of what it is made with."""
    return (state.new(("exception args", site), Sequence("tuple", tuple(args))),)


def made(path: str, args: list[Value] | None, site: Site, state: State) -> Value | None:
    """An exception of Python's own, of these arguments where they are known; None of what is no such class."""
    cls = kind(path)
    if cls is None:
        return None
    own = (name for name, part in vars(cls).items() if not name.startswith("_") and not callable(part))
    fields: dict[str, Value] = {name: unknown("exception", site, name) for name in own}
    fields[ARGS] = unknown("exception", site, ARGS)
    fields[CAUSE] = NONE if args is not None else unknown("exception", site, CAUSE)
    if is_group(path):
        fields[PARTS] = unknown("exception", site, PARTS)
    if args is not None:
        fields[ARGS] = row(args, site, state)
        fields.update(_kept(cls, args))
        if is_group(path) and len(args) == 2:
            fields.update({"message": args[0], PARTS: args[1]})
    return (state.new(("exception", site), LibraryObject(path, fields, site)),)


def _kept(cls: type[BaseException], args: list[Value]) -> dict[str, Value]:
    """What a class keeps under a name of its own."""
    if issubclass(cls, SystemExit) and len(args) < 2:
        return {"code": args[0] if args else NONE}
    if issubclass(cls, StopIteration):
        return {"value": args[0] if args else NONE}
    if issubclass(cls, ImportError):
        return {"msg": args[0] if len(args) == 1 else NONE}
    return {"errno": args[0], "strerror": args[1]} if issubclass(cls, OSError) and len(args) > 1 else {}


def is_group(path: str) -> bool:
    """Whether a class is one of several exceptions as one."""
    return path in _GROUPS


def group_of(parts: list[Value], site: Site, state: State) -> Value:
    """What a handler of ``except*`` gets: its part of the exceptions, as a group."""
    held: Value = (state.new(("exceptions", site), Sequence("tuple", tuple(parts))),)
    return (state.new(("group", site), LibraryObject("builtins.ExceptionGroup", {PARTS: held, ARGS: held}, site)),)


def given_args(ref: Ref, args: list[Value], site: Site, state: State) -> None:
    """``super().__init__(message)`` of a class of the program."""
    found = state.get(ref)
    if isinstance(found, Instance):
        state.store(ref, replace(found, attributes={**found.attributes, ARGS: row(args, site, state)}))


def with_cause(value: Value, cause: Value, state: State) -> None:
    """``raise error from cause``."""
    atom = only(value)
    match state.get(atom) if isinstance(atom, Ref) else None:
        case Instance() as instance if isinstance(atom, Ref):
            state.store(atom, replace(instance, attributes={**instance.attributes, CAUSE: cause}))
        case LibraryObject() as obj if isinstance(atom, Ref):
            state.store(atom, replace(obj, fields={**obj.fields, CAUSE: cause}))


def is_one(value: Value, state: State) -> bool:
    """Whether something is an exception whose class is known."""
    atom = only(value)
    match state.get(atom) if isinstance(atom, Ref) else None:
        case LibraryObject(type=path):
            return kind(path) is not None
        case Instance(attributes=attributes):
            return ARGS in attributes
    return False


def text(value: Value, state: State) -> Value | None:
    """``str(error)``: its only argument as a text; None where that is not known, or something is no exception."""
    atom = only(value)
    match state.get(atom) if isinstance(atom, Ref) else None:
        case Instance(attributes=attributes) if ARGS in attributes:
            is_key, args = False, attributes[ARGS]
        case LibraryObject(type=path, fields=fields) if kind(path) is not None:
            is_key, args = path == "builtins.KeyError", fields[ARGS]
        case _:
            return None
    held = state.get(ref) if isinstance(ref := only(args), Ref) else None
    items = held.items if isinstance(held, Sequence) else None
    if items is None or len(items) > 1 or is_key:
        return unknown("str", "exception", args)
    said = constant(items[0]) if items else ""
    return items[0] if said is ... else const(str(said))


def exit_code(value: Value, state: State) -> Value:
    """The code of a ``SystemExit``; empty where nothing is known of it."""
    atom = only(value)
    found = state.get(atom) if isinstance(atom, Ref) else None
    return found.fields.get("code", ()) if isinstance(found, LibraryObject) else ()


def names(atom: Lib | Ref, state: State) -> list[str]:
    """The names of the class of an exception of Python's own, and of those above it."""
    held = state.get(atom) if isinstance(atom, Ref) else None
    path = held.type if isinstance(held, LibraryObject) else atom.path if isinstance(atom, Lib) else ""
    cls = kind(path)
    return [] if cls is None else [each.__name__ for each in cls.__mro__]
