"""Functions that an application is told, each of which runs in a process of its own once the application runs."""

from __future__ import annotations

from cudalint.machine.effects.gpu import choices
from cudalint.machine.effects.receivers import library_of
from cudalint.machine.effects.servers.handlers import is_function, keep_handler, registered
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import LibraryObject
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch import launching, workers
from cudalint.machine.launch.arguments import failures, task
from cudalint.machine.launch.launching import Start
from cudalint.machine.state import State
from cudalint.machine.values import NONE, Lib, Ref, Value, constant, unknown

_JOB = "job"


def job(machine: Machine, call: Call) -> Results:
    """``scheduler.add_job(f)``; without a function, as ``@app.task(execution="process")``, a decorator."""
    function = call.get(call.text("function")) if call.text("function") else None
    told = _told(call)
    if function is None:
        return [(call.state, (Lib("cudalint.job" if told else "cudalint.identity"),))]
    if told:
        keep_handler(call.state, _JOB, call.site, function)
    return [(call.state, unknown(_JOB, call.site))]


def decorated(machine: Machine, call: Call) -> Results:
    """The decorator that was made gets its function."""
    function = call.args[0] if call.args else NONE
    if is_function(function, call.state):
        keep_handler(call.state, _JOB, call.site, function)
    return [(call.state, function)]


def _told(call: Call) -> bool:
    """Whether the call says, or else its application, that the function runs in a process of its own."""
    wanted = call.spec.get("when")
    if not isinstance(wanted, dict):
        return True
    for name, values in wanted.items():
        given = call.get(str(name)) or choices.argument(call, f"self.{name}")
        if given is not None and constant(given) in values:
            return True
    return False


def run(machine: Machine, call: Call) -> Results:
    """``app.run()``: each function that was registered runs in a process that is started from this one as it is.

    By ``method-key`` something that it was made with names the start method, and by ``idle`` keeps them all here.
    Where the model names the ``type`` of what has them run, and the parameter ``key`` of the application that holds
    it, only where it is one of these.
    """
    state = call.state
    if choices.idle(machine, call):
        return [(state, NONE)]
    if not call.text("type") or call.text("type") in _types(state, choices.argument(call, f"self.{call.text('key')}")):
        for _, function in list(registered(state, _JOB)):
            _starts(machine, call, function)
    return [(state, NONE)]


def _types(state: State, value: Value | None) -> list[str]:
    """The types of the library objects that a value may be."""
    held = [state.get(atom) for atom in value or () if isinstance(atom, Ref)]
    return [found.type for found in held if isinstance(found, LibraryObject)]


def _starts(machine: Machine, call: Call, function: Value) -> None:
    state = call.state.clone()
    start = Start(
        launcher=call.label,
        family="fork-launcher",
        anchor=call.site,
        chain=machine.chain(state, call.site, f"{call.label} has it run in a process of its own"),
        many=False,
        reused=False,
        daemon=call.flag("daemon"),
        failures={"body": "child-death", **failures(call)},
        library=library_of(call),
        tasks=(task(function, []),),
        label="forked worker",
        shares=False,
    )
    told = choices.argument(call, call.text("method-key")) if call.text("method-key") else None
    for way in launching.ways(machine, state, start.library, told):
        workers.start(machine, state, call.frame, start, way)
