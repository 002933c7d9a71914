"""The servers of the standard library, which make an instance of a class for each request."""

from __future__ import annotations

from cudalint.machine.effects.receivers import keep_self, library_self
from cudalint.machine.effects.servers.forking import Serving, fork_workers
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import Instance, LibraryObject
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch.arguments import task
from cudalint.machine.values import NONE, Bound, Lib, Partial, Ref, Value, only, unknown

_SERVER = "socketserver.BaseServer"
_HANDLER = "<handler>"
_ANSWERS = ("setup", "handle", "do_GET", "do_POST", "do_PUT", "do_DELETE")


def make(machine: Machine, call: Call) -> Results:
    """``TCPServer(address, Handler)``: nothing is answered yet."""
    fields: dict[str, Value] = {_HANDLER: call.get("RequestHandlerClass") or NONE, "<kind>": (Lib(call.path),)}
    made: Value = (call.state.new(("server", call.site), LibraryObject(_SERVER, fields, call.site)),)
    keep_self(call, made)
    return [(call.state, made)]


def serve(machine: Machine, call: Call) -> Results:
    """``serve_forever()``: a request is answered, in this process or in one that is forked for it."""
    atom = library_self(call)
    found = call.state.get(atom) if isinstance(atom, Ref) else None
    handler = found.fields.get(_HANDLER, NONE) if isinstance(found, LibraryObject) else NONE
    if handler == NONE or not isinstance(found, LibraryObject):
        return [(call.state, NONE)]
    if any(isinstance(kind, Lib) and ".Forking" in kind.path for kind in found.fields["<kind>"]):
        answer: Value = (Partial((Lib("cudalint.socket.answer"),), (handler,), ()),)
        serving = Serving(call.label, call.site, call.frame, True)
        fork_workers(machine, call.state.clone(), serving, (task(answer, []),))
    else:
        _answered(machine, call, handler)
    return [(call.state, NONE)]


def answer(machine: Machine, call: Call) -> Results:
    """A process that was forked for a request answers it."""
    _answered(machine, call, call.args[0])
    return [(call.state, NONE)]


def _answered(machine: Machine, call: Call, handler: Value) -> None:
    request = [unknown(name, call.site) for name in ("request", "client", "server")]
    for state, made in machine.call_value(handler, request, {}, call.state.clone(), call.frame, call.site):
        states = [state]
        for name in _ANSWERS:
            found = state.get(ref) if isinstance(ref := only(made), Ref) else None
            method = machine.user_method(found, name, state) if isinstance(found, Instance) else None
            if method is not None and ref is not None:
                bound: Value = (Bound(method, ref),)
                states = [s for c in states for s, _ in machine.call_value(bound, [], {}, c, call.frame, call.site)]
