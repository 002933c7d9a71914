"""Handlers of signals, which a forked child inherits: what a process does that sends one to itself."""

from __future__ import annotations

from cudalint.machine.effects.concurrency import process_identity
from cudalint.machine.frame import Call, Frame, Results
from cudalint.machine.heap import Scope
from cudalint.machine.interpreter import Machine
from cudalint.machine.joining import merge
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import NONE, Const, Lib, Ref, Value, const, constant, only, unknown

_HANDLERS = Ref(("signal handlers",))
# Beside each handler, the process that set it, and where it did.
_OF, _AT = " of", " at"


def handle(machine: Machine, call: Call) -> Results:
    """``signal.signal(SIGUSR1, handler)``: it may run at any time from now on, and those that are forked inherit it."""
    number, handler = _number(call.get("signalnum") or ()), call.get("handler") or NONE
    found = call.state.get(_HANDLERS)
    before = found.variables if isinstance(found, Scope) else {}
    machine.hands_over((handler,), call.state, call.frame, call.site)
    if number is not None:
        its_own = (process_identity.pid_of(call.state),)
        kept = {**before, number: handler, f"{number}{_OF}": its_own, f"{number}{_AT}": const(call.site)}
        call.state.store(_HANDLERS, Scope(kept, None, "", "signals"))
    return [(call.state, before.get(number or "", unknown("handler", call.site)))]


def raised(machine: Machine, call: Call) -> Results:
    """``signal.raise_signal(SIGUSR1)``: the handler of this process runs."""
    return _runs(machine, call, call.get("signalnum") or ())


def killed(machine: Machine, call: Call) -> Results:
    """``os.kill(os.getpid(), SIGUSR1)``: the same, where the process is this one."""
    if call.get("pid") != (process_identity.pid_of(call.state),):
        return [(call.state, NONE)]
    return _runs(machine, call, call.get("signal") or ())


def _runs(machine: Machine, call: Call, given: Value) -> Results:
    number, found = _number(given), call.state.get(_HANDLERS)
    kept = found.variables if isinstance(found, Scope) else {}
    handler, its_own = kept.get(number or "", ()), (process_identity.pid_of(call.state),)
    if not handler or any(isinstance(atom, Lib | Const) for atom in handler):
        return [(call.state, NONE)]
    args: list[Value] = [given, unknown("frame", call.site)]
    record = machine.record
    if kept[f"{number}{_OF}"] == its_own:
        # In the process that set it, what goes wrong in it is noted where it is run for its own sake.
        machine.hands_over((handler,), call.state, call.frame, call.site)
        machine.record = record.copy()
    results = machine.call_value(handler, args, {}, call.state, call.frame, call.site)
    machine.record = record
    return [(state, NONE) for state in merge([after for after, _ in results])]


def ends(machine: Machine, state: State) -> None:
    """The main process ends: until then a signal may have come, after all that it did."""
    found = state.get(_HANDLERS)
    if state.process.launch is not None or not isinstance(found, Scope):
        return
    frame = Frame(Ref(("module", machine.main)), machine.main)
    for number, handler in found.variables.items():
        place = constant(found.variables.get(f"{number}{_AT}", NONE))
        if isinstance(place, Site):
            machine.hands_over((handler,), state, frame, place)


def _number(given: Value) -> str | None:
    """By what a signal is known: the name of its constant, or its number."""
    match only(given):
        case Lib(path=path):
            return path.rpartition(".")[2]
        case Const(value=int() as number):
            return str(number)
    return None
