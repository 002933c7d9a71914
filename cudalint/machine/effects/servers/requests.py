"""Requests: which functions of an application serve them."""

from __future__ import annotations

from cudalint.machine.effects.servers.handlers import is_function, registered
from cudalint.machine.heap import Instance
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Ref, Value, only, unknown


def request_arguments(site: Site) -> list[Value]:
    """What a WSGI application is given with a request."""
    return [unknown("environ", site), unknown("start_response", site)]


def handlers_of(machine: Machine, state: State, app: Value) -> list[Value]:
    """What a request runs: the application if it is a function, else the handlers registered with it."""
    atom = only(app)
    if is_function(app, state) or (isinstance(atom, Ref) and isinstance(state.get(atom), Instance)):
        return [app]
    return [function for _, function in registered(state, "handler")]
