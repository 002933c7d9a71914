"""Names that a module sets only where it is the main module, or where its functions are called."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from cudalint.ir import nodes as ir
from cudalint.ir.walk import inner_statements, names_bound_by


def set_by_main(body: Iterable[ir.Stmt]) -> Mapping[str, bool]:
    """Names that are set under the main guard or by functions, and whether other statements bind them, too."""
    always: set[str] = set()
    by_main: set[str] = set()
    stack: list[tuple[ir.Stmt, set[str]]] = [(s, always) for s in body]
    while stack:
        statement, names = stack.pop()
        names.update(names_bound_by(statement))
        if isinstance(statement, ir.If) and names is always and _asks_for_main(statement.test):
            stack.extend((s, by_main) for s in statement.body)
            stack.extend((s, always) for s in statement.orelse)
        else:
            stack.extend((s, names) for s in inner_statements(statement))
        if isinstance(statement, ir.FunctionDef):
            by_main.update(_globals_of(statement.function))
    return {name: name in always for name in by_main}


def functions_defined(body: Iterable[ir.Stmt]) -> Iterator[str]:
    """The names of the functions and methods that a top level defines."""
    for statement in body:
        match statement:
            case ir.FunctionDef(function=function):
                yield function.name
            case ir.ClassDef(body=inner):
                yield from functions_defined(inner)
            case _:
                yield from functions_defined(inner_statements(statement))


def _asks_for_main(test: ir.Expr) -> bool:
    match test:
        case ir.Compare(left=left, op="==", right=right):
            return any(isinstance(e, ir.Name) and e.id == "__name__" for e in (left, right))
        case ir.Bool(op="and", values=values):
            return any(_asks_for_main(value) for value in values)
    return False


def _globals_of(function: ir.Function) -> Iterable[str]:
    return _globals(function.body) if function.binds_globals else ()


def _globals(body: Iterable[ir.Stmt]) -> Iterable[str]:
    for statement in body:
        match statement:
            case ir.Scoping(kind="global", names=names):
                yield from names
            case ir.FunctionDef(function=function):
                yield from _globals_of(function)
            case _:
                yield from _globals(inner_statements(statement))
