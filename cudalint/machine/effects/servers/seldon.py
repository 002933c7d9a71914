"""Seldon: a class whose object its server makes before it forks gunicorn's workers, which call the object's methods."""

from __future__ import annotations

from collections.abc import Iterator

from cudalint.machine.effects.servers.forking import Serving, fork_workers
from cudalint.machine.frame import Frame
from cudalint.machine.heap import Closure, Instance
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch.arguments import task
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Bound, Lib, Ref, Task, const, only, unknown

_COMPONENT = "cudalint.seldon.Component"


def preloaded_from_outside(machine: Machine, state: State, frame: Frame, name: str) -> None:
    """A class that a file of the repository has Seldon serve: workers are forked once for each method it calls."""
    spec = machine.library.function(_COMPONENT)
    if spec is None:
        return
    given = spec.get("methods")
    methods = [str(method) for method in given] if isinstance(given, list) else []
    named = [const(frame.module), const(name), const(True)]
    importing = (Lib("cudalint.server.import"),)
    for after, made in machine.call_value(importing, named, {}, state, frame, Site(frame.module, 0)):
        ref = only(made)
        found = after.get(ref) if isinstance(ref, Ref) else None
        if not isinstance(ref, Ref) or not isinstance(found, Instance):
            continue
        first = [work for _, work in _called(machine, after, ref, found, [str(spec.get("method", ""))])]
        for site, work in _called(machine, after, ref, found, methods):
            fork_workers(machine, after.clone(), Serving("Seldon", site, frame, certain=True), (*first, work))


def _called(machine: Machine, state: State, ref: Ref, found: Instance, names: list[str]) -> Iterator[tuple[Site, Task]]:
    """The methods of an object that a server calls, where it has them, and where they are defined."""
    for name in names:
        method = machine.user_method(found, name, state)
        closure = state.get(method) if isinstance(method, Ref) else None
        if isinstance(method, Ref) and isinstance(closure, Closure):
            site = Site(closure.module, closure.function.ordinal)
            asked = [unknown(name, site, n) for n in range(len(closure.function.params) - 1)]
            yield site, task((Bound(method, ref),), asked)
