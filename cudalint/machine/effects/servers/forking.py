"""How a server forks its workers, after the hooks that run in its main process."""

from __future__ import annotations

from cudalint.machine.effects.servers.handlers import registered
from cudalint.machine.frame import Frame
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch import workers
from cudalint.machine.launch.arguments import task
from cudalint.machine.launch.launching import Start, Way
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Task
from cudalint.structs import Frozen


class Serving(Frozen):
    """A server that starts workers: its name, the place findings point at, whether it is sure to fork.

    ``daemon``: its workers may not have children of their own. ``count``: how many there are, where that is known.
    """

    name: str
    site: Site
    frame: Frame
    certain: bool
    daemon: bool = False
    count: int | None = None


def in_master(machine: Machine, state: State, frame: Frame, site: Site, kind: str) -> list[State]:
    """The states after the hooks that run in the main process before it forks."""
    states = [state]
    for _, hook in list(registered(state, kind)):
        states = [s for c in states for s, _ in machine.call_value(hook, [], {}, c, frame, site)]
    return states


def fork_workers(machine: Machine, state: State, serving: Serving, work: tuple[Task, ...]) -> None:
    """Fork the workers of a server, which run the hooks of workers and then this work."""
    hooks = tuple(task(function, []) for _, function in registered(state, "worker"))
    start = Start(
        launcher=serving.name,
        family="fork-launcher",
        anchor=serving.site,
        chain=machine.chain(state, serving.site, f"{serving.name} forks its workers"),
        many=True,
        reused=True,
        daemon=serving.daemon,
        failures={"body": "crash"},
        tasks=(*hooks, *work),
        label="server worker",
        count=serving.count,
        shares=serving.count is not None and serving.count > 1,
    )
    workers.start(machine, state, serving.frame, start, Way("fork", serving.certain, explicit=True))
