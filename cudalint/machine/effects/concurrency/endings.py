"""What runs when a process ends: functions that were given to ``atexit``."""

from __future__ import annotations

from cudalint.machine.effects.plain import stop, through
from cudalint.machine.effects.servers.handlers import forget_handler, keep_handler, registered
from cudalint.machine.frame import Call, Frame, Results
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import Process, State
from cudalint.machine.values import NONE, Const, Partial, Ref, Value

_KIND = "atexit"
# Since this Python the children that multiprocessing forks run what they gave to atexit (python/cpython#83856).
_HONOURED = (3, 14)
_MULTIPROCESSING = frozenset({"executor", "loader", "pool", "process"})


def at_exit(machine: Machine, call: Call) -> Results:
    """``atexit.register(f)``: a child that multiprocessing forked leaves by ``os._exit``, and never calls it."""
    if _leaves_at_once(machine, call.state.process):
        return through(machine, call)
    if call.args:
        keep_handler(call.state, _KIND, call.site, _with_arguments(call))
    machine.hands_over((*call.args, *call.kwargs.values()), call.state, call.frame, call.site)
    return through(machine, call)


def not_at_exit(machine: Machine, call: Call) -> Results:
    """``atexit.unregister(f)``."""
    if call.args:
        forget_handler(call.state, _KIND, call.args[0])
    return [(call.state, NONE)]


def _with_arguments(call: Call) -> Value:
    """The function, with what else it is registered with."""
    function, *args = call.args
    return (Partial(function, tuple(args), tuple(call.kwargs.items())),) if args or call.kwargs else function


def exits(machine: Machine, call: Call) -> Results:
    """``sys.exit()``: the process ends here, unless something catches that."""
    ends(machine, call.state)
    if call.frame.ends_program(call.state) and _may_be_success(call.get("status") or ()):
        machine.completes(call.state)
    return stop(machine, call)


def _may_be_success(status: Value) -> bool:
    """Whether a program that ends with this status may have done all that it was to do: ``sys.exit(main())``."""
    return any(not isinstance(atom, Const) or not atom.value for atom in status)


def _leaves_at_once(machine: Machine, process: Process) -> bool:
    launch = process.launch
    if launch is None or launch.method != "fork" or launch.family not in _MULTIPROCESSING:
        return False
    return machine.host.lowest < _HONOURED


def ends(machine: Machine, state: State) -> None:
    """A process ends: it runs what was registered, the last first; a child of ``os.fork`` what it inherited, too."""
    if not _runs_handlers(state.process):
        return
    frame = Frame(Ref(("module", machine.main)), machine.main)
    states = [state.clone()]
    for site, function in reversed(list(registered(state, _KIND))):
        states = [after for now in states for after, _ in machine.call_value(function, [], {}, now, frame, site)] or [
            state.clone()
        ]


def _runs_handlers(process: Process) -> bool:
    """Whether a process ends as Python does: the workers of pools are ended, and forked ones leave at once."""
    launch = process.launch
    if process.dead:
        return False
    return launch is None or launch.family == "fork" or (launch.family == "process" and launch.method == "spawn")
