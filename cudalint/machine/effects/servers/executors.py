"""Executors of web applications, whose configuration says of what kind they are."""

from __future__ import annotations

from cudalint.machine.effects.servers.web import setting
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import LibraryObject
from cudalint.machine.interpreter import Machine
from cudalint.machine.values import NONE, Lib, Ref, only


def configured(machine: Machine, call: Call) -> Results:
    """``Executor(app)``, ``executor.init_app(app)``: of processes where a setting says so, else of threads."""
    state = call.state
    app = call.get("app") or NONE
    if app == NONE:
        return [(state, (state.new(("executor", call.site), LibraryObject(call.path, {}, call.site)),))]
    told = setting(app, call.text("key"), state)
    kind = "ProcessPoolExecutor" if told == call.text("value") else "ThreadPoolExecutor"
    made = machine.call_value((Lib(f"concurrent.futures.{kind}"),), [], {}, state, call.frame, call.site)
    if not isinstance(call.receiver, Ref):
        return made
    for after, value in made:
        found = after.get(ref) if isinstance(ref := only(value), Ref) else None
        if found is not None:
            after.store(call.receiver, found)
    return [(after, NONE) for after, _ in made]
