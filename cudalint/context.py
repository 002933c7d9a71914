"""Which files of a project can have to do with the selected ones: those that import them, and what these import.

A path of a finding runs along imports, so an entry that never imports a selected file has no step in it. Files
are matched by the last part of their module name, wherever it lies: a superset that is cheap and needs no roots.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from cudalint.text.source import SourceFile

_PACKAGE = "__init__"
_IMPORT = re.compile(
    rb"\b(?:from[ \t]+[.\w]+[ \t]+import\b[ \t]*(?:\\\r?\n[ \t]*)?(?:\([^)]*\)|[^\r\n]*)"
    rb"|import[ \t]+[\w., \t]+|import_module\([^)\r\n]*\))"
)
_WORD = re.compile(rb"\w+")


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


def _imported(source: SourceFile, homes: Mapping[str, Iterable[str]]) -> Iterable[str]:
    """The files that the import statements of ``source`` could mean, and the packages it lies in."""
    words = {word for statement in _IMPORT.findall(source.data) for word in _WORD.findall(statement)}
    for word in words:
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
