"""Which other files bear on the selected ones where nothing tells how far the project reaches: what they import.

Imports are matched by the last part of a module's name, wherever it lies: a superset that is cheap and needs no roots.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

_PACKAGE = "__init__"
_IMPORT = re.compile(
    rb"\b(?:from[ \t]+[.\w]+[ \t]+import\b[ \t]*(?:\\\r?\n[ \t]*)?(?:\([^)]*\)|[^\r\n]*)"
    rb"|import[ \t]+[\w., \t]+|import_module\([^)\r\n]*\))"
)
_WORD = re.compile(rb"\w+")
_GUARD = b"__main__"
MOST_BESIDE = 2_000


class Bytes(Protocol):
    """A file by its path, with its bytes."""

    @property
    def path(self) -> str:
        """Where it lies."""

    @property
    def data(self) -> bytes:
        """What is in it."""


_File = TypeVar("_File", bound=Bytes)


def beside(selected: Sequence[_File], read: Callable[[str], _File]) -> tuple[_File, ...]:
    """What ``selected`` files import from their own folders and from the packages that they lie in."""
    found: list[_File] = []
    names: set[str] = set()
    folders: dict[str, frozenset[str]] = {}
    known = {source.path for source in selected}
    pending = [folder for source in selected for folder in _search(source.path)]
    sources = list(selected)
    while (pending or sources) and len(found) < MOST_BESIDE:
        if pending:
            folder, wanted = pending.pop(), frozenset(names)
            if folder in folders:
                continue
            folders[folder] = _modules(folder)
            places = [(folder, folders[folder] & wanted)]
        else:
            fresh = {word.decode("utf-8", "replace") for word in _words(sources.pop())} - names
            names |= fresh
            places = [(folder, modules & fresh) for folder, modules in folders.items()]
        for folder, name in sorted((folder, name) for folder, here in places for name in here):
            pending.append(os.path.join(folder, name))
            for path in (os.path.join(folder, f"{name}.py"), os.path.join(folder, name, f"{_PACKAGE}.py")):
                if path in known or not os.path.isfile(path):
                    continue
                known.add(path)
                found.append(made := read(path))
                sources.append(made)
    return tuple(found)


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
