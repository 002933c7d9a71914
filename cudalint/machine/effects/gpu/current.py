"""Contexts that are current in one thread: what makes one current there, and what needs one."""

from __future__ import annotations

from cudalint.machine import operators
from cudalint.machine.effects.gpu import cuda
from cudalint.machine.frame import Call
from cudalint.machine.interpreter import Machine
from cudalint.machine.outcome import Kind
from cudalint.machine.reporting import outcome_of
from cudalint.machine.state import Current, Process, State
from cudalint.machine.trace import Chain, Site
from cudalint.machine.values import NONE
from cudalint.structs import replace


def follow(machine: Machine, call: Call, state: State) -> None:
    """What a call has to do with the current context or device of its thread, as its model says by ``current``."""
    match call.text("current"):
        case "makes":
            where = machine.chain(state, call.site, f"{call.label} makes a context current")
            for framework in filter(None, (call.text("framework"), call.text("current-of"))):
                _make(state, framework, where)
        case "needs":
            _need(machine, call, state)
        case "takes":
            _take(machine, call, state)


def _take(machine: Machine, call: Call, state: State) -> None:
    """A function acts on the device that is current in this thread, unless it is told one."""
    told = call.get("device") or NONE
    devices = operators.device_of(told)
    if told == NONE or devices:
        cuda.take_current(machine, state, call.site, call.label, next(iter(devices), None))


def guess(machine: Machine, state: State, path: str, site: Site) -> None:
    """Something that no model describes was called: it may make a context current, as its name says."""
    if state.process.current and machine.library.unfamiliar.makes_current(path):
        where = machine.chain(state, site, f"{path.rpartition('.')[2]}() may make a context current")
        _make_all(state, where)


def _make_all(state: State, where: Chain) -> None:
    for framework in sorted({held.framework for held in state.process.current}):
        _make(state, framework, where)


def _make(state: State, framework: str, where: Chain) -> None:
    process = state.process
    if _own(process, framework) is None:
        made = Current(framework, process.thread, where)
        state.process = replace(process, current=(*process.current, made))


def _own(process: Process, framework: str) -> Current | None:
    return next((c for c in process.current if c.framework == framework and c.thread == process.thread), None)


def _need(machine: Machine, call: Call, state: State) -> None:
    """A thread uses a library whose context is current in another thread only: that fails, and ends the thread."""
    process, framework = state.process, call.text("framework")
    made = next((c for c in process.current if c.framework == framework), None)
    if made is None or process.thread_start is None or process.dead or _own(process, framework) is not None:
        return
    anchor, started = process.thread_start
    effect = machine.chain(state, call.site, f"{call.label} needs a current context, and this thread has none")
    machine.emit(
        outcome_of(
            machine,
            state,
            Kind.CONTEXT_OF_THREAD,
            anchor,
            # A pool gives the exception to whoever asks for the result; of a thread's nobody is told.
            "crash" if started.step.site == anchor else "thread-death",
            cause=made.where,
            effect=effect,
            subject=call.label,
            detail=framework,
            launch=process.launch,
            started=started,
        )
    )
    # What follows in this thread fails alike.
    _make_all(state, effect)
