"""The tasks of a launch: one that stands for all, whose arguments differ where theirs do."""

from __future__ import annotations

from cudalint.machine import listings, operators
from cudalint.machine.frame import Call
from cudalint.machine.heap import Generator, Instance, LibraryObject, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import (
    EACH,
    Atom,
    Const,
    Dev,
    Rank,
    Ref,
    Task,
    Tensor,
    Unknown,
    Value,
    only,
    union,
    unknown,
)


def items_of(machine: Machine, call: Call, value: Value) -> list[Value]:
    """What iterating the tasks of a pool gives; a generator runs here, in the parent."""
    atom = only(value)
    found = call.state.get(atom) if isinstance(atom, Ref) else None
    if isinstance(found, Generator | Instance | LibraryObject) or isinstance(atom, Tensor):
        rounds = machine.iterate(value, call.state, call.frame, call.site)
        return rounds[0][1] if rounds else []
    return machine.elements(value, call.state)


def element_of(machine: Machine, call: Call, value: Value, position: int) -> Value:
    """What a worker is given of an iterable of tasks."""
    state = call.state
    exact = machine.exact_items(value, state)
    found = vary(machine, state, items_of(machine, call, value), call.site, is_whole=exact is not None)
    if found:
        return found
    atom = only(value)
    if isinstance(atom, Unknown):
        return unknown(atom.sym, "each", 0) if listings.is_listed(machine.library, value) else EACH
    return unknown("task", call.site, position)


def vary(
    machine: Machine, state: State, values: list[Value], site: Site, depth: int = 0, is_whole: bool = False
) -> Value:
    """One value that stands for the different items of tasks: numbers become one that differs each time.

    ``is_whole``: there are no other items.
    """
    distinct = list(dict.fromkeys(values))
    if len(distinct) <= 1:
        if len(values) > 1:
            machine.is_given_again(distinct[0], state)
        return distinct[0] if distinct else ()
    atoms = [only(v) for v in distinct]
    if all(isinstance(a, Rank) or (isinstance(a, Const) and isinstance(a.value, int)) for a in atoms):
        numbers = frozenset(a.value for a in atoms if isinstance(a, Const) and isinstance(a.value, int))
        return (Rank("each", numbers=numbers),) if is_whole and len(numbers) == len(atoms) else EACH
    devices = [operators.device_of(v) for v in distinct]
    if all(len(d) == 1 and d[0].is_gpu for d in devices) and all(isinstance(a, Const | Dev) for a in atoms):
        return (Dev("cuda", Rank("each"), text=not all(isinstance(a, Dev) and not a.text for a in atoms)),)
    record = _varying_record(machine, state, atoms, site, depth, is_whole) if depth < 3 else ()
    if record:
        return record
    # A record is a row as well, and stays one of its class.
    are_records = any(isinstance(state.get(atom), Instance) for atom in atoms if isinstance(atom, Ref))
    rows = [None if are_records else machine.exact_items(v, state) for v in distinct]
    if depth < 3 and all(r is not None and len(r) == len(rows[0] or []) for r in rows):
        columns = zip(*[r for r in rows if r is not None], strict=True)
        items = tuple(vary(machine, state, list(c), site, depth + 1, is_whole) for c in columns)
        row = state.new(("varying", site, depth), Sequence("tuple", items))
        machine.stands_for(row, atoms)
        return (row,)
    return union(distinct)


def _varying_record(
    machine: Machine, state: State, atoms: list[Atom | None], site: Site, depth: int, is_whole: bool
) -> Value:
    """One record that stands for several of its class; empty where they are none."""
    found = [state.get(atom) if isinstance(atom, Ref) else None for atom in atoms]
    records = [record for record in found if isinstance(record, Instance)]
    first = records[0] if records else None
    if first is None or len(records) < len(found) or any(record.cls != first.cls for record in records):
        return ()
    names = [name for name, _ in machine.record_fields(first.cls, state)]
    if not names or any(name not in record.attributes for record in records for name in names):
        return ()
    columns = {name: [record.attributes[name] for record in records] for name in names}
    varied = {name: vary(machine, state, column, site, depth + 1, is_whole) for name, column in columns.items()}
    made = Instance(first.cls, {**first.attributes, **varied}, first.site, first.origin)
    one = state.new(("varying", site, depth), made)
    machine.stands_for(one, atoms)
    return (one,)


def one_task(machine: Machine, state: State, tasks: list[Task], site: Site) -> Task:
    """One task that stands for all: arguments that differ become ones that differ each time."""
    first = tasks[0]
    if len(tasks) == 1:
        return first
    functions = union([t.function for t in tasks])
    width = min(len(t.args) for t in tasks)
    args = tuple(vary(machine, state, [t.args[i] for t in tasks], site, 1) for i in range(width))
    names = {k for t in tasks for k, _ in t.kwargs}
    kwargs = tuple(
        (k, vary(machine, state, [v for t in tasks for n, v in t.kwargs if n == k], site, 1)) for k in sorted(names)
    )
    return Task(functions, args, kwargs)
