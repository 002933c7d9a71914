"""Classes of a program that derive from what starts processes: making one of them starts something as well."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cudalint.project.program import FileProgram

_CLASS = re.compile(rb"^[ \t]*class[ \t]+(\w+)[ \t]*\(([^()]*)\)", re.MULTILINE)
_WORD = re.compile(rb"\w+")


def launchers(files: FileProgram) -> frozenset[str]:
    """The names of what may start something, of libraries and of classes in any file of the program."""
    if files.launchers is None:
        own = files.library.vocabulary.launchers
        files.launchers = frozenset(own).union(_derived(files, {name.encode() for name in own}))
    return files.launchers


def derived_in(files: FileProgram, name: str) -> list[str]:
    """The classes of the program that start something and that a module names, wherever they are defined."""
    derived = launchers(files) - files.library.vocabulary.launchers
    return sorted(one for one in derived if one.encode() in files.sources[name].data)


def _derived(files: FileProgram, known: set[bytes]) -> Iterable[str]:
    """The classes below these, those of one file after the other until no more are found."""
    bases = dict(_bases(files, [n for n in files.sources if files.facts(n).may_launch]))
    found: set[bytes] = set()
    while new := {name for name, above in bases.items() if name not in found and not above.isdisjoint(known | found)}:
        found |= new
        bases.update(_bases(files, [n for n in files.sources if any(b in files.sources[n].data for b in new)]))
    return (name.decode() for name in found)


def _bases(files: FileProgram, names: Iterable[str]) -> Iterable[tuple[bytes, frozenset[bytes]]]:
    for name in names:
        for found in _CLASS.finditer(files.sources[name].data):
            yield found[1], frozenset(_WORD.findall(found[2]))
