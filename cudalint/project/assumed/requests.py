"""Handlers of requests: the server made their application before one answers."""

from __future__ import annotations

from collections.abc import Iterator

from cudalint.ir import nodes as ir
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import Process, State
from cudalint.machine.trace import Site
from cudalint.project import calling
from cudalint.project.applications import factory_of, made_above
from cudalint.project.program import FileProgram


def served(files: FileProgram, machine: Machine, module: ir.Module, function: ir.Function) -> Iterator[State]:
    """The states in which a server has made the application that a function of a module may answer requests of."""
    first = _application_over(files, module, function)
    factory = None if files.facts(first.name).application else factory_of(files, module, function)
    if factory is not None:
        first = files.module(factory.module) or module
    # A server imports the module of an application, and does nothing else before.
    imported = State(Process(unseen=not files.facts(first.name).may_answer), {})
    for state in calling.ways(machine, first, assumed=True, state=imported):
        made = (
            [state]
            if factory is None
            else calling.called(machine, first, factory.function, state, {}, calling.top_of(first.name))
        )
        for begun in made:
            yield from _imported_by(machine, first, module, begun)


def _application_over(files: FileProgram, module: ir.Module, function: ir.Function) -> ir.Module:
    """The one module that makes an application of a file of handlers, or the file itself."""
    above = made_above(files, module.name, function.name)
    found = None if above is None else files.module(above)
    return module if found is None else found


def _imported_by(machine: Machine, first: ir.Module, module: ir.Module, state: State) -> list[State]:
    """The states in which a module is imported that another one has imported, or that is this one."""
    if first is module:
        return [state]
    loaded = machine.load(module.name, state, calling.top_of(module.name), Site(module.name, 0))
    return [loaded[-1][0]] if loaded else [state]
