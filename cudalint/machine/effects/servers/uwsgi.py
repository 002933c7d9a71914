"""uwsgi: a module with a postfork hook."""

from __future__ import annotations

from cudalint.machine.effects.servers.forking import Serving, fork_workers
from cudalint.machine.effects.servers.handlers import is_function, registered
from cudalint.machine.effects.servers.requests import request_arguments
from cudalint.machine.effects.servers.top_level import binding_of
from cudalint.machine.frame import Frame
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch.arguments import task
from cudalint.machine.state import State
from cudalint.machine.values import NONE, Value


def from_outside(machine: Machine, state: State, frame: Frame, names: dict[str, Value]) -> None:
    """A module with a postfork hook: unless ``lazy-apps`` is set, it is imported before uwsgi forks."""
    hooks = tuple(task(function, []) for _, function in registered(state, "postfork"))
    handlers = list(registered(state, "handler"))
    place = binding_of(machine, frame.module, ("application",))
    if place is not None and is_function(names.get("application", NONE), state):
        handlers.append((place, names["application"]))
    for site, handler in handlers:
        serving = Serving("uwsgi", site, frame, False)
        fork_workers(machine, state.clone(), serving, (*hooks, task(handler, request_arguments(site))))
