"""User classes and those they derive from: the order in which Python looks at them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable

from cudalint.machine.heap import Class, Scope
from cudalint.machine.state import State
from cudalint.machine.values import Atom, Bound, Lib, Ref, Unknown, Value
from cudalint.structs import Frozen

# An order keeps at most so many classes: it costs its length, and those of a chain of classes the square of that.
MOST_BASES = 256

# Bases that say something to type checkers only.
_GENERIC = frozenset({"typing.Generic", "typing.Protocol", "typing_extensions.Generic", "typing_extensions.Protocol"})
_PROTOCOL = frozenset({"typing.Protocol", "typing_extensions.Protocol"})
# What classes that are abstract are made by, and where those lie that Python has.
ABSTRACT_META = "abc.ABCMeta"
ABSTRACT = frozenset({"abc", "collections.abc", "numbers"})

# A class and those it derives from, the nearest first; of libraries, their dotted names.
Order = tuple[Class | str, ...]


class _Known(Frozen):
    """An order, and the user classes that it was made of where they lay."""

    order: Order
    parts: tuple[tuple[Ref, Class], ...]

    def holds(self, state: State) -> bool:
        """Whether all classes that it was made of are those of a path."""
        return all(state.get(ref) is cls for ref, cls in self.parts)


class Orders:
    """The orders in which Python looks at classes (C3), each made once.

    A class is known by its address and the object there, so that a path on which it has other bases has an order of
    its own. ``made`` counts the orders that were made.
    """

    def __init__(self, canonical: Callable[[str], str]) -> None:
        self.made = 0
        self._canonical = canonical
        self._known: dict[tuple[Hashable, int], _Known] = {}
        # Addresses are used again in loops: a class may come to lie where one of its bases lay.
        self._making: set[Hashable] = set()

    def of(self, cls: Ref, state: State) -> Order:
        """A class and its bases; empty where no user class is known at the reference."""
        found = state.get(cls)
        return self._of(cls, found, state).order if isinstance(found, Class) else ()

    def _of(self, ref: Ref, cls: Class, state: State) -> _Known:
        # What is kept holds the object, so that no other one gets its identity.
        key = (ref.address, id(cls))
        known = self._known.get(key)
        if known is None or not known.holds(state):
            self._making.add(ref.address)
            known = self._known[key] = self._make(ref, cls, state)
            self._making.discard(ref.address)
        return known

    def _make(self, ref: Ref, cls: Class, state: State) -> _Known:
        self.made += 1
        parts = {ref: cls}
        rows: list[Order] = []
        for base in (atom for bases in cls.bases for atom in bases):
            found = state.get(base) if isinstance(base, Ref) else None
            if not isinstance(base, Ref) or not isinstance(found, Class):
                rows.append(self._of_library(base))
            elif base.address not in self._making:
                known = self._of(base, found, state)
                parts.update(known.parts)
                rows.append(known.order)
        # That of one base is in order.
        above = rows[0] if len(rows) == 1 else _merged([*rows, tuple(row[0] for row in rows if row)])
        return _Known((cls, *above)[:MOST_BASES], tuple(parts.items()))

    def _of_library(self, base: Atom) -> Order:
        match base:
            case Lib(path=path):
                return (path,)
            case Bound(function=Lib(path=path)):
                return (self._canonical(path),)
            case Unknown(sym=(Lib(path=path), "[]", *_)) if path not in _GENERIC:
                return (path,)
        return ()


def _merged(rows: list[Order]) -> Order:
    """Several orders merged into one: each class before its bases, and in the order in which they are named (C3).

    Where the orders contradict each other, which Python refuses, the head of the first one goes ahead.
    """
    names = [[entry if isinstance(entry, str) else id(entry) for entry in row] for row in rows]
    behind: Counter[str | int] = Counter(name for row in names for name in row[1:])
    at = [0] * len(rows)
    taken: set[str | int] = set()
    result: list[Class | str] = []
    while heads := [i for i, row in enumerate(names) if at[i] < len(row)]:
        first = next((i for i in heads if not behind[names[i][at[i]]]), heads[0])
        name = names[first][at[first]]
        result.append(rows[first][at[first]])
        taken.add(name)
        for i in heads:
            while at[i] < len(names[i]) and names[i][at[i]] in taken:
                at[i] += 1
                if at[i] < len(names[i]):
                    behind[names[i][at[i]]] -= 1
    return tuple(result)


def behind(order: Order, cls: Atom, state: State) -> Order:
    """The part of an order after a class; empty where the class is not in it."""
    return next((order[i + 1 :] for i, entry in enumerate(order) if is_class(entry, cls, state)), ())


def is_class(entry: Class | str, cls: Atom, state: State) -> bool:
    """Whether a class in an order is the one meant; a class that was decorated or made again stands for itself.

    A method that a decorator keeps was made before its class was, and knows it by its body.
    """
    if isinstance(entry, str):
        return isinstance(cls, Lib) and cls.path == entry
    found = state.get(cls) if isinstance(cls, Ref) else None
    if isinstance(found, Scope):
        return entry.scope == cls
    return entry is found or (isinstance(found, Class) and entry.site == found.site)


def order_of(cls: Ref, order: Order, state: State) -> tuple[Value, ...]:
    """An order as a program sees it: ``__mro__``."""
    refs: dict[int, Ref] = {}
    pending = [cls]
    while pending:
        ref = pending.pop()
        found = state.get(ref)
        if isinstance(found, Class) and refs.setdefault(id(found), ref) is ref:
            pending.extend(base for bases in found.bases for base in bases if isinstance(base, Ref))
    last = (Lib("builtins.object"),)
    known = ((Lib(entry) if isinstance(entry, str) else refs.get(id(entry)),) for entry in order)
    return (*(((atom,) if atom else last) for (atom,) in known), last)


def lineage(cls: Ref, state: State) -> tuple[Class, ...]:
    """The user classes among a class and its bases, in the order in which Python looks at them."""
    return tuple(entry for entry in Orders(str).of(cls, state) if isinstance(entry, Class))


# What makes a protocol one that objects can be asked for.
RUNTIME = "runtime_checkable"


def is_protocol(cls: Class) -> bool:
    """Whether a class is a protocol itself: those that derive from one are not, unless they say so."""
    return any(_path_of(base) in _PROTOCOL for bases in cls.bases for base in bases)


def is_abstract(order: Order, orders: Callable[[Ref, State], Order], state: State) -> bool:
    """Whether classes can be registered to one, and asked by a hook of it: its metaclass is ``abc.ABCMeta``."""
    for entry in order:
        if isinstance(entry, str):
            if entry in _PROTOCOL or entry.rpartition(".")[0] in ABSTRACT:
                return True
            continue
        for meta in entry.meta:
            kinds = orders(meta, state) if isinstance(meta, Ref) else (_path_of(meta),)
            if ABSTRACT_META in kinds:
                return True
    return any(is_protocol(entry) for entry in order if isinstance(entry, Class))


def _path_of(base: Atom) -> str | None:
    """The dotted name of a class of a library, also of one that is asked for a type (``Protocol[T]``)."""
    match base:
        case Lib(path=path) | Unknown(sym=(Lib(path=path), "[]", *_)):
            return path
    return None


def defines(cls: Class, names: Collection[str], state: State) -> bool:
    """Whether the body of a class binds one of these names."""
    scope = state.get(cls.scope)
    return isinstance(scope, Scope) and any(name in scope.variables for name in names)
