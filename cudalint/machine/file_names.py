"""Files by their names, however these are put together: one file, a series of them, and what a folder was asked for."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator
from fnmatch import fnmatchcase

from cudalint.machine.paths import JOINS
from cudalint.machine.trace import Site
from cudalint.machine.values import EACH, Const, Unknown, Value, only, rest_of
from cudalint.structs import Frozen

# What stands for a number in the names of a series of files.
_NUMBERS, _ANY = re.compile(r"[0-9#]+"), "#"
# What lists the files of a folder, or those that a pattern names in it; a method of a path is asked of the folder.
_FOLDERS = frozenset({"os.listdir", "os.scandir", "os.walk", "?.iterdir"})
_PATTERNS = frozenset({"glob.glob", "glob.iglob"})
_IN_FOLDER = frozenset({"?.glob", "?.rglob"})
_DEEPER = frozenset({"os.walk", "?.rglob"})
_ALL = "*"
_SERIES, _ROOT = "series", "/"
# How deep the parts of a name are looked into for a listing.
_DEEPEST = 12


class Listing(Frozen):
    """The files that a program asked a folder for: ``pattern`` names them; ``deep``: those in its folders count too."""

    folder: tuple[Hashable, ...]
    pattern: str
    deep: bool

    def has(self, place: Const | Unknown) -> bool:
        """Whether a file is one of them."""
        if is_series(place):
            return False
        folder, pieces = _split(place)
        inside = folder[: len(self.folder)] == self.folder if self.deep else folder == self.folder
        name = "".join(piece if isinstance(piece, str) else _ANY for piece in pieces)
        return inside and fnmatchcase(name, self.pattern)


def named(value: Value) -> Const | Unknown | None:
    """A file by its name, however and wherever that is put together."""
    atom = only(value)
    if isinstance(atom, Const):
        return atom
    made = _named(atom) if isinstance(atom, Unknown) else None
    return made if made is None or isinstance(made, Const | Unknown) else Unknown(made)


def _named(part: Hashable) -> Hashable:
    """What a name is put together from, without the places where that was written."""
    match part:
        case Unknown(sym=("str", tuple(inner))):
            return _named(Unknown(inner))
        case Unknown(sym=(("bin", *_), str(operator), (left,), (right,))):
            return Unknown(("path" if operator == "/" else operator, _named(left), _named(right)))
        case Unknown(sym=(("bin" | "joined", *_), tuple(texts))):
            return Unknown(("joined", *(tuple(map(_named, text)) for text in texts)))
        case Unknown(sym=("call", Site(), tuple(), int(), str(function), first, *_)):
            given = rest_of(part.sym, 5)
            if function not in JOINS:
                return Unknown((function, *map(_named, given)))
            return Unknown(("path", *map(_named, given))) if len(given) > 1 else _named(first)
    return part


def series(place: Const | Unknown) -> Unknown | None:
    """The files of one folder whose names differ in their numbers, or in what the code does not show of them."""
    folder, pieces = _split(place)
    name = _NUMBERS.sub(_ANY, "".join(piece if isinstance(piece, str) else _ANY for piece in pieces))
    is_number = bool(folder) and all(isinstance(piece, str) or _is_index(piece) for piece in pieces)
    return Unknown((_SERIES, *folder, name)) if (is_number or name[:1].isalpha()) and _ANY in name else None


def _is_index(piece: Hashable) -> bool:
    """Whether a part of a name is the number by which a dataset is asked for a sample."""
    return piece == only(EACH)


def is_series(place: Const | Unknown) -> bool:
    """Whether this stands for a series of files."""
    match place:
        case Unknown(sym=(str(kind), *_)):
            return kind == _SERIES
    return False


def _split(place: Hashable) -> tuple[tuple[Hashable, ...], list[Hashable]]:
    """The folders of a path, from the outermost on, and what the name in it is put together from."""
    *folders, last = _parts(place)
    pieces = _pieces(last)
    at = max((i for i, piece in enumerate(pieces) if isinstance(piece, str) and "/" in piece), default=None)
    if at is not None:
        folder, _, rest = str(pieces[at]).rpartition("/")
        folders.extend(piece for piece in (*pieces[:at], folder) if piece)
        pieces = [rest, *pieces[at + 1 :]]
    return tuple(_plain(folders)), pieces


def _plain(folders: Iterable[Hashable]) -> Iterator[Hashable]:
    """Folders one by one, those whose names are known as texts."""
    for folder in folders:
        text = folder.value if isinstance(folder, Const) else folder
        if isinstance(text, str):
            yield from (_ROOT,) if text.startswith(_ROOT) else ()
            yield from (part for part in text.split("/") if part not in ("", "."))
        else:
            yield folder


def _parts(place: Hashable) -> list[Hashable]:
    """The folders of a path, and the name in it."""
    match place:
        case Unknown(sym=("path", first, *_)):
            return [*_parts(first), *rest_of(place.sym, 2)]
    return [place]


def _pieces(name: Hashable) -> list[Hashable]:
    """The texts that a name is put together from, and what stands between them."""
    match name:
        case Unknown(sym=("joined", *_)):
            texts = rest_of(name.sym, 1)
            return [_pieces(text[0])[0] if isinstance(text, tuple) and len(text) == 1 else text for text in texts]
        case Const(value=str(text)):
            return [text]
    return [name]


def listing_of(value: Value) -> Listing | None:
    """What a folder was asked for, where a name is one that it gave; None where that was none, or several."""
    found = {listing for atom in value for listing in _listings(atom, 0)}
    return found.pop() if len(found) == 1 else None


def _listings(part: Hashable, depth: int) -> Iterator[Listing]:
    if depth > _DEEPEST:
        return
    match part:
        case Unknown(sym=sym):
            yield from _listings(sym, depth + 1)
        case ("call", Site(), tuple(), int(), str(function), Const() | Unknown() as first, *_):
            listing = _listed(function, first, rest_of(part, 6))
            if listing is not None:
                yield listing
            else:
                for one in rest_of(part, 5):
                    yield from _listings(one, depth + 1)
        case tuple():
            for one in part:
                yield from _listings(one, depth + 1)


def _listed(function: str, first: Const | Unknown, others: tuple[Hashable, ...]) -> Listing | None:
    """What a listing gives of what it was given: a folder, a pattern with its folder, or a folder and a pattern."""
    deep = function in _DEEPER
    place = named((first,))
    if place is None:
        return None
    if function in _PATTERNS:
        folder, pieces = _split(place)
        return Listing(folder, "".join(map(str, pieces)), deep) if all(isinstance(p, str) for p in pieces) else None
    folder = tuple(_plain(_parts(place)))
    if function in _FOLDERS:
        return Listing(folder, _ALL, deep)
    asked = others[0] if len(others) == 1 else None
    pattern = asked.value if isinstance(asked, Const) else None
    if function not in _IN_FOLDER or not isinstance(pattern, str):
        return None
    above, _, name = pattern.rpartition("/")
    inner = [part for part in above.split("/") if part not in ("", "**")]
    return Listing((*folder, *inner), name, deep or "**" in above)
