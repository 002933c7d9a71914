"""Names that a program found in a folder: of files, or of the modules of a package."""

from __future__ import annotations

from collections.abc import Hashable

from cudalint.machine.values import Atom, Unknown, Value, only
from cudalint.models.library import Library


def is_listed(library: Library, name: Value) -> bool:
    """Whether a name was made of what a listing of files gave."""
    match only(name):
        case Unknown(sym=sym):
            return _mentions_listing(library, sym)
    return False


def rows_of(atom: Atom) -> Hashable | None:
    """What something is an item of, whichever; None of what is no item of something that the code does not show."""
    match atom:
        case Unknown(sym=(tuple(rows), "each", int())):
            return rows
    return None


def _mentions_listing(library: Library, sym: Hashable) -> bool:
    match sym:
        case str(path):
            return library.traits.has(path, "lists-files")
        case Unknown(sym=inner):
            return _mentions_listing(library, inner)
        case tuple(parts):
            return any(_mentions_listing(library, part) for part in parts)
    return False
