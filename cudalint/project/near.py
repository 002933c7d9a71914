"""Which modules of a project can have to do with some of them: those that import them, however far.

A path of a finding runs along imports, so an entry that never imports a file has no step in it, but for one: a class
that leaves something open is run as those below it, which import it. What an entry imports beside the file it reads
when it runs.
"""

from __future__ import annotations

import keyword
import os
import re
from collections.abc import Iterable, Iterator, Mapping

from cudalint.project.applications import made_above
from cudalint.project.program import FileProgram
from cudalint.project.pytest_files import is_test_module
from cudalint.text.words import words

_KEYWORDS = frozenset(word.encode() for word in keyword.kwlist)
_WORD = re.compile(rb"\w+")
_BOUND = re.compile(rb"^(?:(?:async[ \t]+)?def[ \t]+|class[ \t]+)?([A-Za-z_]\w*)", re.MULTILINE)


def near(files: FileProgram, paths: Iterable[str]) -> frozenset[str]:
    """The modules whose entries may have a step in one of these files."""
    selected = {files.names[path] for path in paths if path in files.names}
    users = set(selected).union(_leading(files, selected), *(files.graph.above(name) for name in selected))
    users.update(_served(files, frozenset(selected), files.sources))
    users.update(_under_conftests(files, users))
    # A server's configuration names its application without importing it, and Django's program what it makes ready.
    facts = ((name, files.facts(name)) for name in files.sources)
    users.update(name for name, one in facts if one.names_modules)
    return frozenset(users)


def distances(files: FileProgram, selected: Iterable[str]) -> dict[str, int]:
    """How many imports lead from each module to the nearest of some."""
    found = dict.fromkeys(selected, 0)
    for name in (queue := list(found)):
        for user in sorted(files.graph.importers.get(name, ())):
            if user not in found:
                found[user] = found[name] + 1
                queue.append(user)
    return found


def naming(files: FileProgram, selected: frozenset[str], among: Iterable[str]) -> frozenset[str]:
    """Of the modules ``among``, those that are selected, or import a selected one and mention a name of its top level.

    Their launchers may run what these define, also where no entry reaches them. What leads there through a further
    module is left to a check of the whole project: following names that far leads everywhere.
    """
    others = [name for name in among if name not in selected]
    bound = {name: _bound(files, name) for name in selected} if others else {}
    leading = {*_leading(files, selected), *_served(files, selected, others)} if others else set()
    return selected.union(name for name in others if name in leading or _mentions(files, name, bound))


def _leading(files: FileProgram, selected: Iterable[str]) -> Iterator[str]:
    """The modules that run what selected ones define, though they need not import these."""
    yield from _routed(files, selected)
    for name in selected:
        yield from _founding(files, name)


def _served(files: FileProgram, selected: frozenset[str], others: Iterable[str]) -> Iterator[str]:
    """The modules whose handlers answer requests of an application that leads to a selected module."""
    for name in others:
        above = made_above(files, name)
        if above is not None and not selected.isdisjoint((above, *files.graph.reach(above))):
            yield name


def _founding(files: FileProgram, name: str) -> Iterator[str]:
    """The modules whose classes may start something and leave to classes of a module what that does."""
    bases = {word for _, named in files.facts(name).classes for word in _WORD.findall(named)}
    direct = files.graph.imports(name) if bases else ()
    for home in dict.fromkeys((*direct, *(one for package in direct for one in files.graph.imports(package)))):
        facts = files.facts(home)
        if facts.may_launch and any(found in bases for found, _ in facts.classes):
            yield home


def _routed(files: FileProgram, selected: Iterable[str]) -> Iterator[str]:
    """The modules whose handlers answer the requests of an application that a selected module makes."""
    for name in selected:
        if files.facts(name).may_answer:
            yield from (home for home in files.graph.imports(name) if files.facts(home).may_route)


def _mentions(files: FileProgram, name: str, bound: Mapping[str, frozenset[bytes]]) -> bool:
    """Whether a module mentions a name that a module which it imports binds, and that it does not bind itself."""
    mentioned = words(files.sources[name].data) - _bound(files, name)
    return any(not mentioned.isdisjoint(bound[home]) for home in files.graph.below((name,)) & bound.keys())


def _bound(files: FileProgram, name: str) -> frozenset[bytes]:
    """The names that the rows of a module's top level begin with."""
    return frozenset(_BOUND.findall(files.sources[name].data)) - _KEYWORDS


def _under_conftests(files: FileProgram, users: Iterable[str]) -> Iterator[str]:
    """The test modules that fixtures of a conftest among ``users`` may run around, without an import."""
    homes = {os.path.dirname(path) for name in users if (path := files.sources[name].path).endswith("conftest.py")}
    for path, name in files.names.items() if homes else ():
        if is_test_module(path) and any(path.startswith(home + os.sep) for home in homes):
            yield name
