"""What runs when a process ends: functions that were given to ``atexit``."""

from __future__ import annotations

from cudalint.machine.effects.plain import through
from cudalint.machine.effects.servers.handlers import keep_handler, registered
from cudalint.machine.frame import Call, Frame, Results
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import Process, State
from cudalint.machine.values import Ref

_KIND = "atexit"
# Since this Python the children that multiprocessing forks run what they gave to atexit (python/cpython#83856).
_HONOURED = (3, 14)
_MULTIPROCESSING = frozenset({"executor", "loader", "pool", "process"})


def at_exit(machine: Machine, call: Call) -> Results:
    """``atexit.register(f)``: a child that multiprocessing forked leaves by ``os._exit``, and never calls it."""
    if _leaves_at_once(machine, call.state.process):
        return through(machine, call)
    if call.args:
        keep_handler(call.state, _KIND, call.site, call.args[0])
    machine.hands_over((*call.args, *call.kwargs.values()), call.state, call.frame, call.site)
    return through(machine, call)


def _leaves_at_once(machine: Machine, process: Process) -> bool:
    launch = process.launch
    if launch is None or launch.method != "fork" or launch.family not in _MULTIPROCESSING:
        return False
    return machine.host.lowest < _HONOURED


def ends(machine: Machine, state: State) -> None:
    """A process ends: a child of ``os.fork`` runs what it inherited, too."""
    launch = state.process.launch
    if launch is None or launch.family != "fork" or state.process.dead:
        return
    frame = Frame(Ref(("module", machine.main)), machine.main)
    for site, function in list(registered(state, _KIND)):
        machine.call_value(function, [], {}, state.clone(), frame, site)
