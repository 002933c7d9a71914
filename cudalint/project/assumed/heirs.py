"""Classes that define what another leaves open: where no caller is in sight, an object may be one of theirs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cudalint.ir import nodes as ir
from cudalint.ir.walk import functions, last_name
from cudalint.project.callers import Callers
from cudalint.project.program import FileProgram
from cudalint.project.pytest_files import is_test_module
from cudalint.structs import Frozen

MOST_HEIRS = 2
_WORD = re.compile(rb"\w+")
_REFUSALS = frozenset({"NotImplementedError"})


class Heir(Frozen):
    """A class at the top of a module."""

    module: ir.Module
    name: str


def heirs(files: FileProgram, callers: Callers, module: ir.Module, function: ir.Function) -> list[Heir]:
    """The first classes below that of a method which define a method that it leaves open; none where it does not."""
    cls, _, _ = function.qualname.rpartition(".")
    left_open = _left_open(module, cls) if cls and "." not in cls else frozenset()
    if not left_open:
        return []
    homes = callers.homes(module.name, cls)
    files.reads.sought[module.name, cls] = homes
    found: list[Heir] = []
    for home in homes:
        if not is_test_module(files.sources[home].path):
            found.extend(_defining(files, home, cls, left_open))
        if len(found) >= MOST_HEIRS:
            break
    return found[:MOST_HEIRS]


def _left_open(module: ir.Module, cls: str) -> frozenset[str]:
    """The methods of a class that others have to define."""
    return frozenset(
        inner.function.name
        for statement in module.body
        if isinstance(statement, ir.ClassDef) and statement.name == cls
        for inner in statement.body
        if isinstance(inner, ir.FunctionDef) and _is_left_open(inner)
    )


def _is_left_open(method: ir.FunctionDef) -> bool:
    if any(last_name(decorator).startswith("abstract") for decorator in method.decorators):
        return True
    return method.function.mentions(_REFUSALS) and any(map(_refuses, method.function.body))


def _refuses(statement: ir.Stmt) -> bool:
    match statement:
        case ir.Raise(exc=ir.Call(func=raised)) | ir.Raise(exc=ir.Name() as raised):
            return last_name(raised) in _REFUSALS
    return False


def _defining(files: FileProgram, home: str, cls: str, left_open: frozenset[str]) -> Iterator[Heir]:
    below = [n.decode() for n, bases in files.facts(home).classes if cls.encode() in _WORD.findall(bases)]
    module = files.module(home) if below else None
    if module is None:
        return
    methods = {f.qualname for f in functions(module.body)}
    for name in below:
        if any(f"{name}.{method}" in methods for method in left_open):
            yield Heir(module, name)
