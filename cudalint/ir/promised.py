"""What a module imports for type checkers only: what its names are where it provides them in ways of its own."""

from __future__ import annotations

from collections.abc import Iterator

from cudalint.ir import nodes as ir


def imported(module: ir.Module, name: str) -> tuple[ir.ImportFrom, str] | None:
    """The import under ``if TYPE_CHECKING:`` that binds a name, and the name that it is imported by."""
    for statement in module.body:
        if isinstance(statement, ir.If) and _is_for_checkers(statement.test):
            for found in _imports(statement.body):
                for given, alias in found.names or ():
                    if (alias or given) == name:
                        return found, given
    return None


def _is_for_checkers(test: ir.Expr) -> bool:
    match test:
        case ir.Name(id="TYPE_CHECKING") | ir.Attr(attr="TYPE_CHECKING"):
            return True
    return False


def _imports(body: tuple[ir.Stmt, ...]) -> Iterator[ir.ImportFrom]:
    """The imports of names in a block and in the blocks of its statements."""
    for statement in body:
        match statement:
            case ir.ImportFrom():
                yield statement
            case ir.If(body=inner, orelse=other):
                yield from _imports((*inner, *other))
            case ir.Try(body=inner, orelse=other):
                yield from _imports((*inner, *other))
