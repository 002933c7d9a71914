"""Web applications: what they run before their first request."""

from __future__ import annotations

from cudalint.ir import nodes as ir
from cudalint.machine.effects.servers.handlers import is_function, keep_handler, registered
from cudalint.machine.frame import Call, Frame, Results
from cudalint.machine.heap import Closure, Generator, LibraryObject
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import NONE, Lib, Ref, Value, only, strings, unknown


def web_application(machine: Machine, call: Call) -> Results:
    """``FastAPI(lifespan=)``, ``Starlette(on_startup=[...])``: an application, and what it runs when it starts."""
    state = call.state
    lifespan = call.kwargs.get("lifespan", NONE)
    if is_function(lifespan, state):
        keep_handler(state, "lifespan", call.site, lifespan)
    for function in machine.elements(call.kwargs.get("on_startup", NONE), state):
        if is_function(function, state):
            keep_handler(state, "startup", call.site, function)
    return [(state, (state.new(("application", call.site), LibraryObject("cudalint.web.Application", {}, call.site)),))]


def on_event(machine: Machine, call: Call) -> Results:
    """``@app.on_event("startup")``, ``app.add_event_handler("startup", f)``."""
    starts = bool(call.args) and "startup" in strings(call.args[0])
    if starts and len(call.args) > 1:
        keep_handler(call.state, "startup", call.site, call.args[1])
    return [(call.state, (Lib("cudalint.server.startup" if starts else "cudalint.identity"),))]


def before_answer(machine: Machine, state: State, frame: Frame, function: ir.Function) -> list[State]:
    """The states in which a function answers its first request; as it is, if it answers none."""
    if not any(_stands_for(value, frame.module, function, state) for _, value in registered(state, "handler")):
        return [state]
    states = [state]
    for kind in ("startup", "lifespan"):
        for site, hook in list(registered(state, kind)):
            states = [s for c in states for s in _begun(machine, c, frame, site, hook, kind)]
    return states


def _begun(machine: Machine, state: State, frame: Frame, site: Site, hook: Value, kind: str) -> list[State]:
    closure = state.get(atom) if isinstance(atom := only(hook), Ref) else None
    takes = kind == "lifespan" or (isinstance(closure, Closure) and bool(closure.function.params))
    args: list[Value] = [unknown("application", site)] if takes else []
    begun = machine.call_value(hook, args, {}, state, frame, site)
    if kind == "startup":
        return [after for after, _ in begun]
    return [ready for after, manager in begun for ready in _alive(machine, after, frame, site, manager)]


def _alive(machine: Machine, state: State, frame: Frame, site: Site, manager: Value) -> list[State]:
    """The states in which a lifespan waits for the end: at its ``yield``, or after it was entered."""
    atom = only(manager)
    found = state.get(atom) if isinstance(atom, Ref) else None
    if not isinstance(atom, Ref) or not isinstance(found, Generator):
        return [after for after, _ in machine.enter(manager, state, frame, site)]
    waiting: list[State] = []

    def wait(inside: State, _: Value) -> list[State]:
        waiting.append(inside.clone())
        return [inside]

    machine.consume(atom, found, state, frame, wait)
    return waiting


def _stands_for(value: Value, module: str, function: ir.Function, state: State) -> bool:
    found = (state.get(atom) for atom in value if isinstance(atom, Ref))
    place = (module, function.ordinal)
    return any(isinstance(one, Closure) and (one.module, one.function.ordinal) == place for one in found)
