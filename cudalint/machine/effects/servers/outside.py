"""Servers that are started from outside: the module is imported, and the options are unknown."""

from __future__ import annotations

from cudalint.machine.effects.servers import celery, gunicorn, queues, seldon, uwsgi, web
from cudalint.machine.effects.servers.handlers import registered
from cudalint.machine.frame import Frame
from cudalint.machine.heap import Scope
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.values import Ref
from cudalint.served import CONFIGURES, FORKED_TESTS, SELDON, WORKS


def served(machine: Machine, state: State, module: str) -> None:
    """A module that a server imports: celery's worker, gunicorn with this configuration, uwsgi."""
    frame = Frame(Ref(("module", module)), module)
    celery.from_outside(machine, state, frame)
    web.from_outside(machine, state.clone(), frame)
    scope = state.get(frame.scope)
    names = scope.variables if isinstance(scope, Scope) else {}
    for name, server in sorted(machine.program.preloads(module)):
        if server == FORKED_TESTS:
            queues.all_forked(machine, state.clone(), frame, names)
            continue
        if server == SELDON:
            seldon.preloaded_from_outside(machine, state.clone(), frame, name)
            continue
        if server == CONFIGURES or server.startswith(WORKS):
            continue
        starter, _, count = server.partition(":")
        if count:
            gunicorn.apart_from_outside(machine, state.clone(), frame, name, starter, int(count))
            continue
        gunicorn.preloaded_from_outside(machine, state.clone(), frame, name, server)
    if gunicorn.is_configuration(names):
        gunicorn.from_outside(machine, state.clone(), frame, names)
    queues.arq_from_outside(machine, state.clone(), frame)
    queues.threads_from_outside(machine, state, frame)
    if any(any(registered(state, kind)) for kind in queues.STEPS):
        queues.steps_from_outside(machine, state.clone(), frame)
    if any(registered(state, "forked-test")):
        queues.forked_tests(machine, state.clone(), frame)
    if any(registered(state, "postfork")):
        uwsgi.from_outside(machine, state, frame, names)
