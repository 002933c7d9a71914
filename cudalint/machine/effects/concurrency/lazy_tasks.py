"""Calls of dask that are written down and run later: by the workers of a client, by processes, or by threads here."""

from __future__ import annotations

from collections.abc import Iterator

from cudalint.machine.effects.concurrency import environments
from cudalint.machine.effects.concurrency.pools import pool_apply
from cudalint.machine.effects.concurrency.threads import threaded
from cudalint.machine.effects.receivers import library_object
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import LibraryObject, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch.arguments import task
from cudalint.machine.state import State
from cudalint.machine.values import FALSE, NONE, TRUE, Atom, Ref, Task, Value, const, constant, only, unknown
from cudalint.structs import replace

_DELAYED, _TASK = "dask.Delayed", "<task>"
_SUBMIT = "distributed.Client.submit"
# The client that computes what nothing else is named for.
_CURRENT = Ref("cudalint.client")
# Where the setting lies that says what computes.
_SCHEDULER = "DASK_SCHEDULER"
_IN_PROCESSES = frozenset({"processes", "multiprocessing"})
_HERE = frozenset({"sync", "synchronous", "single-threaded"})
# How deep tasks within the arguments of tasks, and in lists, are looked for, and how many of them are run.
_DEEPEST, _MOST = 3, 8


def cluster(machine: Machine, call: Call) -> Results:
    """``Client()``, ``LocalCluster()``: unless it is told otherwise, a client computes from now on."""
    results = environments.cluster(machine, call)
    for state, made in results:
        if call.path.endswith("Client") and call.kwargs.get("set_as_default", TRUE) == TRUE:
            state.store(_CURRENT, Sequence("list", (made,)))
    return results


def write_down(machine: Machine, call: Call) -> Results:
    """``dask.delayed(f)(x)``: a call that does not run yet."""
    if not call.args:
        return [(call.state, unknown("delayed", call.site))]
    work: Value = (task(call.args[0], call.args[1:], call.kwargs),)
    made = LibraryObject(_DELAYED, {_TASK: work}, call.site)
    return [(call.state, (call.state.new(("delayed", call.site), made),))]


def compute(machine: Machine, call: Call) -> Results:
    """``dask.compute(*tasks)``, ``task.compute()``, ``client.compute(task)``: each runs, those that it needs first."""
    given: list[Value] = [(call.receiver,)] if call.receiver is not None and _is_task(call) else call.args
    tasks = list(dict(one for value in given for one in _tasks(value, call.state, 0)).values())
    if not tasks and call.text("kind"):
        return environments.starts_workers(machine, call)
    states = [call.state]
    for work in tasks[:_MOST]:
        states = [after for state in states for after, _ in _run(machine, replace(call, state=state), work)]
    return [(state, unknown("computed", call.site)) for state in states]


def _is_task(call: Call) -> bool:
    found = library_object(call)
    return found is not None and found.type == _DELAYED


def _tasks(value: Value, state: State, depth: int) -> Iterator[tuple[Atom, Task]]:
    """The tasks in a value, those in their arguments before them: two that are alike are two."""
    for atom in value if depth <= _DEEPEST else ():
        match state.get(atom) if isinstance(atom, Ref) else atom:
            case LibraryObject(type=kind, fields=fields) if kind == _DELAYED:
                work = only(fields[_TASK])
                if isinstance(work, Task):
                    for argument in (*work.args, *(one for _, one in work.kwargs)):
                        yield from _tasks(argument, state, depth + 1)
                    yield atom, work
            case Sequence(items=items, element=element):
                for one in (*(items or ()), element):
                    yield from _tasks(one, state, depth + 1)


def _run(machine: Machine, call: Call, work: Task) -> Results:
    args = [_as_result(value, call) for value in work.args]
    kwargs = {name: _as_result(value, call) for name, value in work.kwargs}
    scheduler = _scheduler(call)
    workers = _workers(call, scheduler)
    if workers is not None:
        spec = machine.library.function(_SUBMIT) or {}
        given = [work.function, *args]
        return pool_apply(machine, replace(call, path=_SUBMIT, spec=spec, receiver=workers, args=given, kwargs=kwargs))
    if scheduler in _HERE:
        return machine.call_value(work.function, args, kwargs, call.state, call.frame, call.site)
    return threaded(machine, call, call.site, work.function, args, kwargs, None)


def _scheduler(call: Call) -> object:
    """What is to compute: as the call says, else dask's settings."""
    given = call.get("scheduler") or NONE
    return environments.told(call, _SCHEDULER) or None if given == NONE else constant(given)


def _as_result(value: Value, call: Call) -> Value:
    """What a task is given that others compute."""
    found = call.state.get(atom) if isinstance(atom := only(value), Ref) else None
    is_task = isinstance(found, LibraryObject) and found.type == _DELAYED
    return unknown("computed", call.site) if is_task else value


def _workers(call: Call, scheduler: object) -> Ref | None:
    """The workers that compute: those of a client, or processes that are made for it; None for threads."""
    found = library_object(call)
    if found is not None and found.type == "distributed.Client" and isinstance(call.receiver, Ref):
        return call.receiver
    if scheduler in _IN_PROCESSES:
        method = environments.told(call, call.text("method-env")) or "spawn"
        fields: dict[str, Value] = {"<library>": const("dask"), "<context>": const(method), "<many>": TRUE}
        fields["<daemon>"] = FALSE
        return call.state.new(("processes", call.site), LibraryObject("dask.compute", fields, call.site))
    current = call.state.get(_CURRENT)
    atom = only(current.items[0]) if isinstance(current, Sequence) and current.items else None
    made = call.state.get(atom) if isinstance(atom, Ref) else None
    is_known = isinstance(made, LibraryObject) and made.type == "distributed.Client"
    return atom if is_known and isinstance(atom, Ref) and scheduler in (..., None) and not _names_other(call) else None


def _names_other(call: Call) -> bool:
    return (call.get("scheduler") or NONE) != NONE
