"""Names that a program found in a folder: of files, or of the modules of a package."""

from __future__ import annotations

from collections.abc import Hashable

from cudalint.machine.trace import Site
from cudalint.machine.values import Atom, Unknown, Value, only
from cudalint.models.library import Library

# How deep it is looked for an item in what something was made of.
_DEEPEST = 12


def is_listed(library: Library, name: Value) -> bool:
    """Whether a name was made of what a listing of files gave."""
    match only(name):
        case Unknown(sym=sym):
            return _mentions_listing(library, sym)
    return False


def whichever(atom: Atom) -> Hashable | None:
    """What is left of an item, or of what was made of one, if it does not count which of its rows that is.

    None of what is no such thing.
    """
    if not isinstance(atom, Unknown):
        return None
    left = _of_any_row(atom.sym, 0)
    return None if left == atom.sym else left


def _of_any_row(sym: Hashable, depth: int) -> Hashable:
    if depth > _DEEPEST:
        return sym
    match sym:
        case (tuple(rows), "each", int()):
            return (_of_any_row(rows, depth + 1), "each")
        case Unknown(sym=inner):
            return Unknown(_of_any_row(inner, depth + 1))
        # Where it stands in the program says nothing of what it is.
        case Site():
            return sym
        case tuple(parts):
            return tuple(_of_any_row(part, depth + 1) for part in parts)
    return sym


def _mentions_listing(library: Library, sym: Hashable) -> bool:
    match sym:
        case str(path):
            return library.traits.has(path, "lists-files")
        case Unknown(sym=inner):
            return _mentions_listing(library, inner)
        case tuple(parts):
            return any(_mentions_listing(library, part) for part in parts)
    return False
