"""Where the top level of a module sets a name."""

from __future__ import annotations

from cudalint.ir import nodes as ir
from cudalint.machine.interpreter import Machine
from cudalint.machine.trace import Site


def assignment_of(machine: Machine, module: str, names: tuple[str, ...]) -> Site | None:
    """The first of these names that the top level of a module sets, and where."""
    lowered = machine.program.module(module)
    for name in names:
        for statement in lowered.body if lowered is not None else ():
            match statement:
                case ir.Assign(targets=(ir.Name(id=found),)) if found == name:
                    return Site(module, statement.ordinal)
                case ir.FunctionDef(function=function) if function.name == name:
                    return Site(module, statement.ordinal)
    return None
