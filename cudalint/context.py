"""Which files of a project can have to do with the selected ones: those that import them, and what these import.

A path of a finding runs along imports, so an entry that never imports a selected file has no step in it. Files
are matched by the last part of their module name, wherever it lies: a superset that is cheap and needs no roots.

Where nothing tells how far the project reaches, it is what the selected files import from beside them.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from cudalint.text.source import SourceFile

_PACKAGE = "__init__"
_IMPORT = re.compile(
    rb"\b(?:from[ \t]+[.\w]+[ \t]+import\b[ \t]*(?:\\\r?\n[ \t]*)?(?:\([^)]*\)|[^\r\n]*)"
    rb"|import[ \t]+[\w., \t]+|import_module\([^)\r\n]*\))"
)
_WORD = re.compile(rb"\w+")
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


def connected(selected: Sequence[SourceFile], others: Sequence[SourceFile]) -> tuple[SourceFile, ...]:
    """Those of ``others`` that a run over ``selected`` has to know, in their order."""
    homes: dict[str, list[str]] = defaultdict(list)
    for source in (*selected, *others):
        homes[_name(source.path)].append(source.path)
    imports = {source.path: frozenset(_imported(source, homes)) for source in (*selected, *others)}
    importers: dict[str, set[str]] = defaultdict(set)
    for path, imported in imports.items():
        for home in imported:
            importers[home].add(path)
    users = _closure((source.path for source in selected), importers)
    known = _closure(users, imports)
    return tuple(source for source in others if source.path in known)


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


def _imported(source: SourceFile, homes: Mapping[str, Iterable[str]]) -> Iterable[str]:
    """The files that the import statements of ``source`` could mean, and the packages it lies in."""
    for word in _words(source):
        yield from homes.get(word.decode("utf-8", "replace"), ())
    package = os.path.join(os.path.dirname(source.path), f"{_PACKAGE}.py")
    if package in homes.get(_name(package), ()):
        yield package


def _closure(start: Iterable[str], steps: Mapping[str, Collection[str]]) -> set[str]:
    reached = set(start)
    pending = list(reached)
    while pending:
        fresh = set(steps.get(pending.pop(), ())) - reached
        reached |= fresh
        pending.extend(fresh)
    return reached


def _name(path: str) -> str:
    """The last part of a file's module name."""
    directory, base = os.path.split(path)
    stem = base.removesuffix(".py")
    return os.path.basename(directory) if stem == _PACKAGE else stem
