"""Which module, or function, makes the web application that answers requests by what a file holds."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cudalint.ir import nodes as ir
from cudalint.ir.walk import functions
from cudalint.project.callers import Caller
from cudalint.project.program import FileProgram
from cudalint.project.pytest_files import is_test_module

# How many modules lie at most between one with handlers and the application that takes them.
_MOST_LEVELS = 5


def made_above(files: FileProgram, name: str, function: str = "") -> str | None:
    """The nearest module that imports one with handlers, however far, and makes an application where it is imported.

    None where several do, or none. Where nothing in the module gathers handlers, whoever imports it names them.
    """
    if not files.facts(name).may_route:
        return _naming(files, name, function) if function else None
    for level in _levels(files, name):
        found = [above for above in level if files.facts(above).application]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _naming(files: FileProgram, name: str, function: str) -> str | None:
    """The one module that imports a module, makes an application where it is imported, and names a function."""
    users = next(_levels(files, name), [])
    files.reads.searched.update(users)
    word = re.compile(rb"\b%s\b" % function.encode())
    found = [user for user in users if files.facts(user).application and word.search(files.sources[user].data)]
    return found[0] if len(found) == 1 else None


def factory_of(files: FileProgram, module: ir.Module, entry: ir.Function) -> Caller | None:
    """The one function that makes the application which a function of a module may answer requests of.

    Servers call such a function themselves, where they are told its name.
    """
    if not files.facts(module.name).may_answer:
        return None
    made = frozenset(word.decode() for word in files.library.vocabulary.applications)
    for level in ([module.name], *(_levels(files, module.name) if files.facts(module.name).may_route else ())):
        homes = [found for name in level if (found := _home(files, name)) is not None]
        makers = [Caller(home.name, f) for home in homes for f in functions(home.body) if _makes(f, made)]
        if makers:
            return makers[0] if len(makers) == 1 and makers[0].function is not entry else None
    return None


def _home(files: FileProgram, name: str) -> ir.Module | None:
    return files.module(name) if files.facts(name).may_answer else None


def _makes(function: ir.Function, made: frozenset[str]) -> bool:
    """Whether a function outside of classes makes an application, as far as its words say."""
    return "." not in function.qualname and function.mentions(made)


def _levels(files: FileProgram, name: str) -> Iterator[list[str]]:
    """The modules that import a module, the nearest first, without tests."""
    seen, level = {name}, {name}
    for _ in range(_MOST_LEVELS):
        level = {above for below in level for above in files.graph.importers.get(below, ())} - seen
        level = {above for above in level if not is_test_module(files.sources[above].path)}
        if not level:
            return
        files.reads.asked.update(level)
        seen |= level
        yield sorted(level)
