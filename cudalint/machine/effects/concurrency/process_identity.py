"""Functions by which a program finds out which process it runs in."""

from __future__ import annotations

from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import LibraryObject, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import Launch, State
from cudalint.machine.values import EACH, NONE, Other, Rank, Ref, Value, const

# In a child of os.fork(), multiprocessing still reports its parent's process object.
_UNTOLD = "fork"
_MAIN = "MainProcess"


def pid(machine: Machine, call: Call) -> Results:
    """``os.getpid()``: a number that only this process has."""
    return [(call.state, (pid_of(call.state),))]


def current_process(machine: Machine, call: Call) -> Results:
    """``current_process()``: its name distinguishes a worker from the main process.

    A fresh process has its name before it imports what it begins with, and the rest of what it is afterwards.
    """
    state = call.state
    launch = _launch(state)
    is_booting = state.process.identity in machine.booting
    numbers = () if launch is None or is_booting else (EACH,)
    fields: dict[str, Value] = {
        "name": const(_MAIN) if launch is None else (Other(_MAIN),),
        "daemon": const(state.process.daemon and not is_booting),
        "pid": (pid_of(state),),
        "ident": (pid_of(state),),
        "_identity": (state.new(("identity", call.site), Sequence("tuple", numbers)),),
    }
    return [(state, (state.new(("process", call.site), LibraryObject(call.path, fields, call.site)),))]


def parent_process(machine: Machine, call: Call) -> Results:
    """``parent_process()``: None in the main process, and in a fresh one while it imports what it begins with."""
    if _launch(call.state) is None or call.state.process.identity in machine.booting:
        return [(call.state, NONE)]
    return [(call.state, (call.state.new(("process", call.site), LibraryObject(call.path, {}, call.site)),))]


# What a worker of a loader knows of it.
LOADER = Ref(("loader of this worker",))


def worker_info(machine: Machine, call: Call) -> Results:
    """``get_worker_info()``: None where no loader started this process."""
    launch = call.state.process.launch
    if launch is None or launch.family != "loader":
        return [(call.state, NONE)]
    loader = call.state.get(LOADER)
    known = loader.fields if isinstance(loader, LibraryObject) else {}
    made = LibraryObject(call.path, {**known, "id": EACH}, call.site)
    return [(call.state, (call.state.new(("worker info", call.site), made),))]


def pid_of(state: State) -> Rank:
    """The number that only this process has."""
    return Rank("each", state.process.identity)


def _launch(state: State) -> Launch | None:
    """How multiprocessing, or a library like it, started this process."""
    launch = state.process.launch
    return None if launch is None or launch.family == _UNTOLD else launch
