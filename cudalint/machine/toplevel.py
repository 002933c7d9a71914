"""What most of a module's top level and of its classes is: definitions, imports and constants that only bind names.

Such statements mean the same in every process and on every path, so they are worked out once per program and bound
at once, which is most of what importing costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from cudalint.ir import nodes as ir
from cudalint.machine.heap import Closure
from cudalint.machine.trace import Site
from cudalint.machine.values import Deferred, Lib, Ref, Value, const
from cudalint.models.library import Library
from cudalint.structs import Frozen

_Bound = tuple[str, Value | Closure]


class Imports(Protocol):
    """What has to be known of the project's modules."""

    def resolve(self, importer: str, name: str, level: int) -> str | None:
        """The name of the project's module that an import means; None for libraries."""

    def below_library(self, importer: str, library: str, name: str) -> str | None:
        """The project's module that ``from library import name`` means, in a folder called as the library is."""

    def child(self, package: str, name: str) -> str | None:
        """The submodule of this name in a package of the project."""

    def effectful_imports(self, name: str) -> tuple[str, ...]:
        """The modules whose top level may do something to the process when ``name`` is imported."""


class Bindings(Frozen):
    """Statements in a row that only bind: names, and values or functions without decorators.

    A closure is bound as a new object of each state, the same one every time; in a class it sees the body of that.
    """

    names: tuple[_Bound, ...]
    statements: int


def gathered(
    body: tuple[ir.Stmt, ...], module: str, imports: Imports, library: Library
) -> tuple[Bindings | ir.Stmt, ...]:
    """The body of a module or of one of its classes, with what only binds names gathered."""
    result: list[Bindings | ir.Stmt] = []
    names: list[_Bound] = []
    count = 0
    for statement in body:
        bound = _bound(statement, module, imports, library)
        if bound is not None:
            names.extend(bound)
            count += 1
            continue
        if count:
            result.append(Bindings(tuple(names), count))
            names, count = [], 0
        result.append(statement)
    if count:
        result.append(Bindings(tuple(names), count))
    return tuple(result)


def _bound(statement: ir.Stmt, importer: str, imports: Imports, library: Library) -> list[_Bound] | None:
    """What a statement binds; None where it may do more."""
    match statement:
        case ir.FunctionDef(function=function, decorators=(), bound=name):
            return _function(function, name, importer)
        case ir.Assign(targets=(ir.Name(id=name),), value=value):
            found = _constant(value)
            return None if found is None else [(name, found)]
        case ir.ExprStmt(value=ir.Const()) | ir.Declare():
            return []
        case ir.Import(names=given):
            return _gathered(_imported(dotted, alias, statement, importer, imports, library) for dotted, alias in given)
        case ir.ImportFrom(names=tuple(given)):
            return _imported_from(given, statement, importer, imports, library)
    return None


def _function(function: ir.Function, name: str, module: str) -> list[_Bound] | None:
    defaults: list[tuple[str, Value]] = []
    for param in function.params:
        found = None if param.default is None else _constant(param.default)
        if param.default is not None and found is None:
            return None
        if found is not None:
            defaults.append((param.name, found))
    made = Closure(function, Ref(("module", module)), module, tuple(defaults), bare=True)
    return [(name, made)]


def _constant(node: ir.Expr) -> Value | None:
    return const(node.value) if isinstance(node, ir.Const) else None


def _gathered(parts: Iterable[list[_Bound] | None]) -> list[_Bound] | None:
    result: list[_Bound] = []
    for part in parts:
        if part is None:
            return None
        result.extend(part)
    return result


def _imported(
    dotted: str, alias: str | None, node: ir.Import, importer: str, imports: Imports, library: Library
) -> list[_Bound] | None:
    home = imports.resolve(importer, dotted, 0)
    first = dotted.partition(".")[0]
    if home is None:
        path = library.canonical(dotted) if alias else first
        return None if _does_something(dotted, library) else [(alias or first, (Lib(path),))]
    if (alias is None and "." in dotted) or imports.effectful_imports(home):
        return None
    return [(alias or dotted, (Deferred(home, None, Site(importer, node.ordinal)),))]


def _imported_from(
    names: Iterable[tuple[str, str | None]], node: ir.ImportFrom, importer: str, imports: Imports, library: Library
) -> list[_Bound] | None:
    home = imports.resolve(importer, node.module, node.level)
    if home is None:
        if node.level or _does_something(node.module, library):
            return None
        if any(imports.below_library(importer, node.module, name) is not None for name, _ in names):
            return None
        return _of_library(names, node, library)
    if imports.effectful_imports(home):
        return None
    result: list[_Bound] = []
    for name, alias in names:
        child = imports.child(home, name)
        if child is not None and imports.effectful_imports(child):
            return None
        result.append((alias or name, (Deferred(home, name, Site(importer, node.ordinal)),)))
    return result


def _of_library(names: Iterable[tuple[str, str | None]], node: ir.ImportFrom, library: Library) -> list[_Bound] | None:
    result: list[_Bound] = []
    for name, alias in names:
        path = f"{node.module}.{name}"
        if library.is_imported_module(path):
            return None
        full = library.canonical(path)
        result.append((alias or name, const(library.constants[full]) if full in library.constants else (Lib(full),)))
    return result


def _does_something(dotted: str, library: Library) -> bool:
    """Whether importing a library, or one of the packages it lies in, is modelled."""
    return any(library.is_imported_module(prefix) for prefix in _prefixes(dotted))


def _prefixes(dotted: str) -> Iterator[str]:
    parts = dotted.split(".")
    for end in range(1, len(parts) + 1):
        yield ".".join(parts[:end])
