"""Classes of a program that derive from what starts processes: making one of them starts something as well."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cudalint.project.program import FileProgram

_WORD = re.compile(rb"\w+")


def launchers(files: FileProgram) -> frozenset[str]:
    """The names of what may start something, of libraries and of classes in any file of the program."""
    return _own(files) | derived(files)


def derived(files: FileProgram) -> frozenset[str]:
    """Those of classes, looked for once in a run."""
    if files.derived is None:
        own = _own(files)
        files.derived = frozenset(_derived(files, {name.encode() for name in own})) - own
    return files.derived


def _own(files: FileProgram) -> frozenset[str]:
    return frozenset(files.library.vocabulary.launchers)


def derived_in(files: FileProgram, name: str) -> list[str]:
    """The classes of the program that start something and that a module names, wherever they are defined."""
    data = files.sources[name].data
    return sorted(one for one in derived(files) if one.encode() in data)


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
        for found, bases in files.facts(name).classes:
            yield found, frozenset(_WORD.findall(bases))
