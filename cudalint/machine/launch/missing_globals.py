"""Globals that only the main program sets: a spawned child, which runs no main guard, lacks them or finds None."""

from __future__ import annotations

from dataclasses import replace

from cudalint.machine.frame import Frame, Raised, Results
from cudalint.machine.heap import STAR
from cudalint.machine.interpreter import Machine
from cudalint.machine.outcome import Kind
from cudalint.machine.questions import DEFINES
from cudalint.machine.reporting import outcome_of
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Lib, unknown


def missing_name(machine: Machine, name: str, state: State, frame: Frame, site: Site) -> Results:
    """A name that no scope binds, or that stands for None: in a spawned child perhaps one that only main sets."""
    found = machine.lookup(name, state, frame.scope)
    value = found or unknown("name", frame.module, name)
    launch = state.process.launch
    fresh = launch is not None and launch.method in ("spawn", "forkserver")
    if launch is None or not fresh or not machine.options.uses_gpu or state.process.dead:
        return [(state, value)]
    lacking = state.process.parent_only_globals if found is None else state.process.globals_made_by_parent
    if machine.record.cut is not None or (frame.module, name) not in lacking:
        return [(state, value)]
    for atom in machine.lookup(STAR, state, frame.scope) or ():
        if isinstance(atom, Lib):
            state.assume((DEFINES, atom.path, name), False)
    outcome = outcome_of(
        machine,
        state,
        Kind.MISSING_GLOBAL,
        launch.anchor,
        launch.failure,
        certain=launch.certain,
        effect=machine.chain(state, site, f"{name} is {'not defined' if found is None else 'None'} in the child"),
        subject=name,
        condition=launch.condition,
        launch=launch,
    )
    if frame.tries > 0:
        names = ("NameError",) if found is None else ("AttributeError", "TypeError")
        # Who expects that of None goes on without it.
        return machine.fail(state, frame, Raised(outcome, names, harmless=found is not None))
    machine.emit(outcome)
    state.process = replace(state.process, dead=True)
    return [(state, unknown("name", frame.module, name))]
