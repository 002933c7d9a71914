"""Servers that fork before they work: what their main process did to CUDA, their workers inherit."""

from __future__ import annotations

from dataclasses import replace

from cudalint.machine.behaviours import workers
from cudalint.machine.behaviours.callees import thing_of
from cudalint.machine.behaviours.workers import Start, Way, task
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import Instance, Thing
from cudalint.machine.interpret import Machine
from cudalint.machine.state import State
from cudalint.machine.values import NONE, Bound, Lib, Ref, Task, Value, strings, union, unknown


def celery_app(machine: Machine, call: Call) -> Results:
    """``Celery(...)``: gathers its tasks."""
    return [(call.state, (call.state.new(("celery", call.site), Thing("celery.Celery", {}, call.site)),))]


def celery_task(machine: Machine, call: Call) -> Results:
    """``@app.task``: the function is run by workers later."""
    thing = thing_of(call)
    function = call.args[0] if call.args else ()
    if thing is None or not isinstance(call.receiver, Ref):
        return [(call.state, function or unknown("task", call.site))]
    if not function:
        return [(call.state, (Bound(Lib("celery.Celery.task"), call.receiver),))]
    tasks = union([thing.fields.get("<tasks>", ()), function])
    call.state.put(call.receiver, replace(thing, fields={**thing.fields, "<tasks>": tasks}))
    return [(call.state, function)]


def celery_worker(machine: Machine, call: Call) -> Results:
    """``app.worker_main(argv)``: the prefork pool forks this process, as it is, for its workers."""
    state = call.state
    thing = thing_of(call)
    options = [s for v in machine.elements(call.args[0], state) for s in strings(v)] if call.args else []
    pool = next((o.partition("=")[2] for o in options if o.startswith("--pool=")), "prefork")
    if "-P" in options and options.index("-P") + 1 < len(options):
        pool = options[options.index("-P") + 1]
    if thing is None or pool != "prefork":
        return [(state, NONE)]
    for function in thing.fields.get("<tasks>", ()):
        _prefork(machine, call, state, task((function,), [unknown("argument", call.site)]), "Celery.worker_main")
    return [(state, NONE)]


def gunicorn_run(machine: Machine, call: Call) -> Results:
    """``Application().run()``: with preload_app the application is made before the workers fork."""
    state = call.state
    ref = call.receiver
    found = state.get(ref) if isinstance(ref, Ref) else None
    if not isinstance(ref, Ref) or not isinstance(found, Instance):
        return [(state, NONE)]
    load = machine.user_method(found, "load", state)
    module = machine.program.module(call.frame.module)
    if load is None or module is None or "preload_app" not in module.words:
        return [(state, NONE)]
    for after, app in machine.call_value((Bound(load, ref),), [], {}, state, call.frame, call.site):
        request: list[Value] = [unknown("environ", call.site), unknown("start_response", call.site)]
        _prefork(machine, call, after, task(app, request), "gunicorn")
    return [(state, NONE)]


def _prefork(machine: Machine, call: Call, state: State, work: Task, name: str) -> None:
    start = Start(
        launcher=name,
        family="fork-launcher",
        anchor=call.site,
        chain=machine.chain(state, call.site, f"{name} forks its workers"),
        many=True,
        reused=True,
        daemon=False,
        failures={"body": "crash"},
        tasks=(work,),
        label="server worker",
        shares=False,
    )
    workers.start(machine, state, call.frame, start, Way("fork", True, explicit=True))
