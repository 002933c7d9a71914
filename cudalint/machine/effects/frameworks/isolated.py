"""Libraries that make of a function one that runs in a process of its own each time that it is called."""

from __future__ import annotations

from cudalint.machine.effects.gpu import choices
from cudalint.machine.frame import Call, Results
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch import launching, workers
from cudalint.machine.launch.arguments import failures, task
from cudalint.machine.launch.crossing import Pickler
from cudalint.machine.launch.launching import Start
from cudalint.machine.values import ISOLATED, NONE, Lib, Partial, Value, const, constant, unknown
from cudalint.structs import replace


def isolating(machine: Machine, call: Call) -> Results:
    """``limit(f, memory=...)``, ``@process(timeout=5)``: what is made of the function, now or as a decorator."""
    function = call.get(call.text("function")) if call.text("function") else None
    if not choices.is_asked(call):
        return [(call.state, function or (Lib("cudalint.identity"),))]
    context = call.get(call.text("key")) if call.text("key") else None
    told: tuple[Value, ...] = (const(call.path), context or NONE)
    if function is None:
        return [(call.state, (Partial((Lib("cudalint.isolating"),), told, ()),))]
    return [(call.state, (Partial((ISOLATED,), (*told, function), ()),))]


def decorated(machine: Machine, call: Call) -> Results:
    """The decorator that was made gets its function."""
    return [(call.state, (Partial((ISOLATED,), tuple(call.args), ()),))]


def isolated(machine: Machine, call: Call) -> Results:
    """The function is called: a process starts, runs it, and is waited for."""
    state = call.state
    path, context, function, *args = call.args
    made_by = str(constant(path))
    model = replace(call, path=made_by, spec=machine.library.function(made_by) or {})
    start = Start(
        launcher=model.label,
        family="fork-launcher",
        anchor=call.site,
        chain=machine.chain(state, call.site, f"{model.label} has it run in a process of its own"),
        many=False,
        reused=False,
        daemon=bool(model.spec.get("daemon", False)),
        failures={"body": "crash", "unpickle": "crash", **failures(model)},
        library=model.text("library", "multiprocessing"),
        tasks=(task(function, args, call.kwargs),),
        pickled=(*args, *call.kwargs.values()),
        inherited=(function, *args, *call.kwargs.values()),
        pickler=Pickler.GLOBALS if model.text("pickle") == "value" else Pickler.NAMES,
        label="forked worker",
        waits=True,
        fresh_main=model.text("kind") == "fresh-main",
    )
    ways = launching.ways(machine, state, start.library, context)
    ended = [workers.start(machine, state, call.frame, start, way) for way in ways]
    if workers.raise_in_parent(machine, state, call.frame, ended):
        return []
    return [(state, unknown("result", call.site))]


def now(machine: Machine, call: Call) -> Results:
    """``await run.cpu_bound(f, 1)``: a process runs a function with what follows it, now."""
    if not call.args:
        # Which function it is lies in what is given by a star.
        return [(call.state, unknown("result", call.site))]
    return isolated(machine, replace(call, args=[const(call.path), NONE, *call.args]))
