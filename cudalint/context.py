"""Which other files are read with those that a run is about: the nearest, as many as it may take on.

Where nothing tells how far a project reaches, and of folders that hold more than may be read, these are the files that
are imported. Imports are matched by the last part of a module's name, wherever it lies: a superset that is cheap and
needs no roots.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

from cudalint.structs import Frozen, Mutable, field

_PACKAGE = "__init__"
_IMPORT = re.compile(
    rb"\b(?:from[ \t]+[.\w]+[ \t]+import\b[ \t]*(?:\\\r?\n[ \t]*)?(?:\([^)]*\)|[^\r\n]*)"
    rb"|import[ \t]+[\w., \t]+|import_module\([^)\r\n]*\))"
)
_WORD = re.compile(rb"\w+")
_GUARD = b"__main__"
# What lies outside of a project may be this part of what its own context may be.
_OUTSIDE = 10


class Bytes(Protocol):
    """A file by its path, with its bytes."""

    @property
    def path(self) -> str:
        """Where it lies."""

    @property
    def data(self) -> bytes:
        """What is in it."""


_File = TypeVar("_File", bound=Bytes)


class Room(Frozen):
    """How much is read: files, and the bytes of all of them. A file of more than ``largest`` bytes takes none of these.

    What is larger is not looked at, whatever is in it.
    """

    files: int
    size: int
    largest: int

    def outside(self) -> Room:
        """How much is read of what is not the project's own."""
        return Room(max(1, self.files // _OUTSIDE), max(1, self.size // _OUTSIDE), self.largest)


class Context(Frozen, Generic[_File]):
    """What was read around the files that a run is about, and what to say of the rest."""

    files: tuple[_File, ...] = ()
    notes: tuple[str, ...] = ()

    def __add__(self, other: Context[_File]) -> Context[_File]:
        return Context((*self.files, *other.files), (*self.notes, *other.notes))


class Around(Mutable, Generic[_File]):
    """The files around those that a run is about, as far as there is room for them.

    A file may hold several programs. ``known`` are the paths that need not be read.
    """

    read: Callable[[str], tuple[_File, ...]]
    room: Room
    known: set[str]
    _found: dict[str, tuple[_File, ...]] = field(default_factory=dict)
    _size: int = 0
    is_full: bool = False

    def add(self, path: str) -> tuple[_File, ...]:
        """Read a file, unless it is known or there is no room for it."""
        if path in self.known or self.is_full:
            return ()
        if len(self._found) >= self.room.files:
            self.is_full = True
            return ()
        made = self.read(path)
        size = sum(len(file.data) for file in made if len(file.data) <= self.room.largest)
        if self._size + size > self.room.size:
            self.is_full = True
            return ()
        self.known.add(path)
        self._found[path] = made
        self._size += size
        return made

    def fill(self, paths: Iterable[str]) -> None:
        """Read files until there is no room for more."""
        for path in paths:
            self.add(path)
            if self.is_full:
                return

    def context(self, where: str) -> Context[_File]:
        """What was read, in the order of paths; and what to say where there was no room for all."""
        files = tuple(file for path in sorted(self._found) for file in self._found[path])
        if not self.is_full:
            return Context(files)
        some = f"the nearest {len(self._found):,} files of {self._size:,} bytes"
        return Context(files, (f"{where} lies more than is read as context: {some} were (limits.context-files)",))


def fits(paths: Sequence[str], room: Room) -> bool:
    """Whether there is room for all of these files."""
    return len(paths) <= room.files and sum(map(_size, paths)) <= room.size


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except (OSError, ValueError):
        return 0


def nearest_first(paths: Iterable[str], selected: Iterable[str]) -> list[str]:
    """Paths by how many folders lie between them and the nearest of the selected ones."""
    up: dict[str, int] = {}
    for folder in {os.path.dirname(path) for path in selected}:
        for distance, above in enumerate(_upwards(folder)):
            if above in up and up[above] <= distance:
                break
            up[above] = distance
    distances: dict[str, int] = {}

    def distance_to(path: str) -> int:
        folder = os.path.dirname(path)
        if folder not in distances:
            found = (down + up[above] for down, above in enumerate(_upwards(folder)) if above in up)
            distances[folder] = min(found, default=len(folder))
        return distances[folder]

    return sorted(paths, key=lambda path: (distance_to(path), path))


def _upwards(folder: str) -> Iterator[str]:
    while True:
        yield folder
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above


def add_imported(around: Around[_File], selected: Sequence[_File], folders: Iterable[str] = ()) -> None:
    """Read what files import from their own folders, from the packages that they lie in and from ``folders``."""
    names: set[str] = set()
    modules: dict[str, frozenset[str]] = {}
    pending = deque([*folders, *(folder for source in selected for folder in _search(source.path))])
    sources = deque(selected)
    while (pending or sources) and not around.is_full:
        if pending:
            folder, wanted = pending.popleft(), frozenset(names)
            if folder in modules:
                continue
            modules[folder] = _modules(folder)
            places = [(folder, modules[folder] & wanted)]
        else:
            fresh = {word.decode("utf-8", "replace") for word in _words(sources.popleft())} - names
            names |= fresh
            places = [(folder, here & fresh) for folder, here in modules.items()]
        for folder, name in sorted((folder, name) for folder, here in places for name in here):
            pending.append(os.path.join(folder, name))
            for path in (os.path.join(folder, f"{name}.py"), os.path.join(folder, name, f"{_PACKAGE}.py")):
                if path not in around.known and os.path.isfile(path):
                    sources.extend(around.add(path))


def leads_to(files: Iterable[Bytes], folders: Iterable[str]) -> bool:
    """Whether a file imports by name what lies in one of some folders."""
    names = {name.encode() for folder in folders for name in _modules(folder)}
    return bool(names) and any(not names.isdisjoint(_words(file)) for file in files)


def programs_lead_to(files: Iterable[Bytes], paths: Callable[[], Iterable[str]]) -> bool:
    """Whether a file that says what it does as a program imports by name what lies at one of some paths.

    ``paths`` is asked where there is such a file: to list a project takes longer than to look into a file.
    """
    wanted = [words for file in files if _GUARD in file.data and (words := _words(file))]
    if not wanted:
        return False
    names = {part.removesuffix(".py").encode() for path in paths() for part in path.split(os.sep)}
    return any(not names.isdisjoint(words) for words in wanted)


def _search(path: str) -> Iterable[str]:
    """The folder of a file, and those of the packages around it up to the one that holds them all."""
    folder = os.path.dirname(path)
    yield folder
    while os.path.isfile(os.path.join(folder, f"{_PACKAGE}.py")) and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
        yield folder


def _modules(folder: str) -> frozenset[str]:
    """The names of what may be imported from a folder."""
    try:
        entries = os.listdir(folder)
    except OSError:
        return frozenset()
    return frozenset(entry.removesuffix(".py") for entry in entries if entry.endswith(".py") or "." not in entry)


def _words(source: Bytes) -> set[bytes]:
    """The names in the import statements of a file."""
    return {word for statement in _IMPORT.findall(source.data) for word in _WORD.findall(statement)}
