"""Starts that fail where they stand: in a child that imports main, and in a daemon."""

from __future__ import annotations

from cudalint.machine.frame import Call
from cudalint.machine.interpreter import Machine
from cudalint.machine.outcome import Kind
from cudalint.machine.reporting import outcome_of
from cudalint.machine.state import Launch, State
from cudalint.machine.trace import Site
from cudalint.structs import replace


def by_spawn(state: State) -> bool:
    """Whether this process was spawned, directly or by a fork server."""
    launch = state.process.launch
    return launch is not None and launch.method in ("spawn", "forkserver")


def imported_again(machine: Machine, call: Call, state: State, what: str, how: str, anchor: Site | None = None) -> None:
    """Report what a spawned child runs again while it imports main."""
    if not machine.options.uses_gpu:
        return
    launch = state.process.launch
    machine.emit(
        outcome_of(
            machine,
            state,
            Kind.IMPORTED_AGAIN,
            anchor or call.site,
            _again(launch, how),
            certain=launch is None or launch.certain,
            effect=machine.chain(state, call.site, f"{what} runs again while the child imports main"),
            subject=what,
            condition=None if launch is None else launch.condition,
            launch=launch,
        )
    )


def _again(launch: Launch | None, how: str) -> str:
    """How a child that dies while importing main shows: a pool restarts it for ever, a spawn reports it."""
    if launch is None:
        return how
    return {"pool": "hang", "spawn": "crash", "loader": "crash", "process": "child-death"}.get(launch.family, how)


def bootstrapping(machine: Machine, call: Call, what: str, anchor: Site | None = None) -> bool:
    """Whether a start happens while a spawned child imports main: it raises there."""
    state = call.state
    if not (machine.is_import_of_main(state) and by_spawn(state)):
        return False
    imported_again(machine, call, state, what, "child-death", anchor)
    return True


def daemon_child(machine: Machine, call: Call, what: str, anchor: Site | None = None) -> bool:
    """Whether a start fails because the present process is a daemon."""
    state = call.state
    process = state.process
    if not process.daemon or process.dead or not machine.options.uses_gpu:
        return False
    launch = process.launch
    machine.emit(
        outcome_of(
            machine,
            state,
            Kind.DAEMON_CHILD,
            anchor or call.site,
            "crash" if launch is None else launch.failure,
            # Which pool a server has may be chosen where it is started.
            certain=launch is None or launch.family != "fork-launcher" or launch.certain,
            effect=machine.chain(state, call.site, f"{what} in a daemonic process"),
            subject=what,
            launch=launch,
        )
    )
    state.process = replace(process, dead=True)
    return True
