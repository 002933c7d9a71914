"""Whether a key tells one thing that comes from all others, as far as the code shows what it is made of.

The items that workers are given are taken to differ, and so are numbers and texts that are made of one item alone. What
several items may come to (a remainder, a rounded number, whatever a function makes of them) does not tell them apart.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator

from cudalint.machine.heap import Dict, Instance, Sequence
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Const, Rank, Ref, Unknown, Value

# What a loop, or a worker, is given one by one.
_ITEMS = frozenset({"each", "next"})
# What operators make of a number and a constant differs where the numbers do.
_KEEPS_APART = frozenset({"+", "-", "*"})
# What workers gave, as their parent sees it.
_OF_WORKERS = frozenset({"result", "received"})
# What a mark stands for: something of its own, or something that others may have too. Constants stand for themselves.
_FIRST = ("part", "", 0, 0)
_OWN, _SHARED = "its own", "of several"


class Apart:
    """What is known of keys: what workers have given, and the calls that give their parent what one of them gave."""

    def __init__(self, given: Collection[tuple[State, Value]], asked: Collection[Site]) -> None:
        self._given = given
        self._asked = asked
        self._is_at_workers = False

    def tells_apart(self, key: Value) -> bool:
        """Whether a key is another one for each thing that comes."""
        return self._is_own({mark for atom in key for mark in self._of_atom(atom)})

    def first_parts_tell_apart(self, pair: Value, state: State) -> bool:
        """Whether the first of two parts of something is."""
        return self._is_own(set(self._of_part(pair, (_FIRST,), state)))

    def _is_own(self, marks: set[Hashable]) -> bool:
        is_one_constant = len(marks) == 1 and marks.isdisjoint({_OWN, _SHARED})
        return bool(marks) and _SHARED not in marks and not is_one_constant

    def _of_atom(self, atom: Hashable) -> Iterator[Hashable]:
        match atom:
            case Const():
                yield atom
            case Rank():
                yield _OWN
            case Unknown(sym=sym):
                yield from self._of_sym(sym, ())
            case _:
                yield _SHARED

    def _of_sym(self, sym: Hashable, parts: tuple[Hashable, ...]) -> Iterator[Hashable]:
        match sym:
            case (tuple(base), "[]", part):
                yield from self._of_sym(base, (part, *parts))
            case (tuple(base), ".", str(name)):
                yield from self._of_sym(base, (name, *parts))
            case (str(kind), *_) if kind in _ITEMS:
                yield _OWN
            case ("str", tuple(inner)):
                yield from self._of_sym(inner, parts)
            case (("joined", *_), tuple(values)):
                yield self._of_any(values)
            case (("bin" | "aug", *_), str(op), tuple(left), tuple(right)) if not parts:
                yield self._of_operation(op, left, right)
            case (str(kind), *_) | ((str(kind), *_),) if kind in _OF_WORKERS:
                yield from self._of_workers(parts)
            case ((str(kind), *_), *_) if kind in _OF_WORKERS:
                yield from self._of_workers(parts)
            case ("call", Site() as site, *_) if site in self._asked:
                yield from self._of_workers(parts)
            case _:
                yield _SHARED

    def _of_any(self, values: Iterable[Value]) -> Hashable:
        """What is made of several values has what one of them tells."""
        return _OWN if any(set(self._of_value(value)) == {_OWN} for value in values) else _SHARED

    def _of_value(self, value: Value) -> Iterator[Hashable]:
        return (mark for atom in value for mark in self._of_atom(atom))

    def _of_operation(self, op: str, left: Value, right: Value) -> Hashable:
        constant = [all(isinstance(atom, Const) for atom in side) for side in (left, right)]
        is_text = op == "%" and all(isinstance(atom, Const) and isinstance(atom.value, str) for atom in left)
        if is_text or (op in _KEEPS_APART and constant[0]):
            return self._of_any([right])
        return self._of_any([left]) if op in _KEEPS_APART and constant[1] else _SHARED

    def _of_workers(self, parts: tuple[Hashable, ...]) -> list[Hashable]:
        """A part of what workers gave: what it was where they made it. What they were sent is not followed."""
        if not self._given or self._is_at_workers:
            return [_SHARED]
        self._is_at_workers = True
        marks = [mark for state, value in self._given for mark in self._of_part(value, parts, state)]
        self._is_at_workers = False
        return marks

    def _of_part(self, value: Value, parts: tuple[Hashable, ...], state: State) -> Iterator[Hashable]:
        for atom in value:
            found = state.get(atom) if isinstance(atom, Ref) else None
            if not parts:
                yield from self._of_whole(atom, found)
                continue
            inner = _inside(found, parts[0])
            if inner is not None:
                yield from self._of_part(inner, parts[1:], state)
            elif isinstance(atom, Unknown):
                yield from self._of_sym(atom.sym, parts)
            else:
                yield _SHARED

    def _of_whole(self, atom: Hashable, found: object) -> Iterator[Hashable]:
        if isinstance(found, Sequence) and found.items is not None and found.kind == "tuple":
            yield self._of_any(found.items)
        else:
            yield from self._of_atom(atom)


def _inside(found: object, part: Hashable) -> Value | None:
    """A part of an object: by its position, its key or its name."""
    match found, part:
        case Sequence(items=tuple(items)), ("part", _, _, int(position)) | (Const(value=int(position)),):
            return items[position] if -len(items) <= position < len(items) else None
        case Dict(items=items), (Const(value=key),):
            return items.get(key)
        case Instance(attributes=attributes), str(name):
            return attributes.get(name)
    return None
