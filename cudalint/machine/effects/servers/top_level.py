"""Where the top level of a module binds a name."""

from __future__ import annotations

from collections.abc import Iterable

from cudalint.ir import nodes as ir
from cudalint.ir.walk import inner_statements, names_bound_by
from cudalint.machine.interpreter import Machine
from cudalint.machine.trace import Site


def binding_of(machine: Machine, module: str, names: tuple[str, ...]) -> Site | None:
    """The first of these names that the top level of a module binds, and where."""
    lowered = machine.program.module(module)
    if lowered is None:
        return None
    for name in names:
        for statement in _when_imported(lowered.body):
            if name in names_bound_by(statement):
                return Site(module, statement.ordinal)
    return None


def _when_imported(body: Iterable[ir.Stmt]) -> Iterable[ir.Stmt]:
    """Statements with those in their blocks; of a condition what it does otherwise first, as a main guard's import."""
    for statement in body:
        yield statement
        if isinstance(statement, ir.If):
            yield from _when_imported(statement.orelse)
            yield from _when_imported(statement.body)
        else:
            yield from _when_imported(inner_statements(statement))
