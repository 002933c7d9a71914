"""The servers of the standard library, which make an instance of a class for each request.

Or call what was registered with them, where requests name functions (xmlrpc).
"""

from __future__ import annotations

from cudalint.machine.effects.receivers import keep_self, library_self
from cudalint.machine.effects.servers.forking import Serving, fork_workers
from cudalint.machine.effects.stdlib.lookups import one_of
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import Instance, LibraryObject
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch.arguments import task
from cudalint.machine.state import State
from cudalint.machine.values import NONE, Bound, Lib, Partial, Ref, Value, only, unknown
from cudalint.structs import replace

_SERVER = "socketserver.BaseServer"
_HANDLER = "<handler>"
# The object of the program that is the server, where a class of the program is.
_OWNER = "<owner>"
_FUNCTION = "<function>"
_ANSWERS = ("setup", "handle", "do_GET", "do_POST", "do_PUT", "do_DELETE", "do_HEAD", "do_PATCH")


def make(machine: Machine, call: Call) -> Results:
    """``TCPServer(address, Handler)``: nothing is answered yet."""
    fields: dict[str, Value] = {_HANDLER: call.get("RequestHandlerClass") or NONE, "<kind>": (Lib(call.path),)}
    if call.receiver is not None:
        fields[_OWNER] = (call.receiver,)
    made: Value = (call.state.new(("server", call.site), LibraryObject(_SERVER, fields, call.site)),)
    keep_self(call, made)
    return [(call.state, made)]


def function(machine: Machine, call: Call) -> Results:
    """``server.register_function(f)``, ``register_instance(object)``: what requests may name."""
    ref = call.receiver
    found = call.state.get(ref) if isinstance(ref, Ref) else None
    if isinstance(ref, Ref) and isinstance(found, LibraryObject) and call.args:
        name = f"{_FUNCTION} {call.site.module} {call.site.ordinal}"
        call.state.store(ref, replace(found, fields={**found.fields, name: call.args[0]}))
    return [(call.state, call.args[0] if call.args else NONE)]


def serve(machine: Machine, call: Call) -> Results:
    """``serve_forever()``: a request is answered, in this process or in one that is forked for it."""
    atom = library_self(call)
    found = call.state.get(atom) if isinstance(atom, Ref) else None
    if not isinstance(atom, Ref) or not isinstance(found, LibraryObject):
        return [(call.state, NONE)]
    forks = any(isinstance(kind, Lib) and ".Forking" in kind.path for kind in found.fields["<kind>"])
    if forks and _answers(found):
        answer: Value = (Partial((Lib("cudalint.socket.answer"),), ((atom,),), ()),)
        serving = Serving(call.label, call.site, call.frame, True)
        fork_workers(machine, call.state.clone(), serving, (task(answer, []),))
        return [(call.state, NONE)]
    return machine.at_any_time(call.state, lambda: _answered(machine, call, atom, found))


def answer(machine: Machine, call: Call) -> Results:
    """A process that was forked for a request answers it."""
    atom = only(call.args[0])
    found = call.state.get(atom) if isinstance(atom, Ref) else None
    if isinstance(atom, Ref) and isinstance(found, LibraryObject):
        return _answered(machine, call, atom, found)
    return [(call.state, NONE)]


def _answers(server: LibraryObject) -> bool:
    return server.fields.get(_HANDLER, NONE) != NONE or any(name.startswith(_FUNCTION) for name in server.fields)


def _answered(machine: Machine, call: Call, ref: Ref, server: LibraryObject) -> Results:
    for name, given in server.fields.items():
        if name.startswith(_FUNCTION):
            _named(machine, call, given)
    handler = server.fields.get(_HANDLER, NONE)
    own = server.fields.get(_OWNER, (ref,))
    request = [unknown("request", call.site), unknown("client", call.site), own]
    if handler == NONE:
        return [(call.state, NONE)]
    for state in _handled(machine, call, handler, request, call.state.clone()):
        if call.state.process.driver is None and state.process.driver is not None:
            # The next request finds a process that used CUDA.
            _handled(machine, call, handler, request, state)
    return [(call.state, NONE)]


def _handled(machine: Machine, call: Call, handler: Value, request: list[Value], before: State) -> list[State]:
    """What one request of each kind leaves behind, one after the other."""
    left: list[State] = []
    for state, made in machine.call_value(handler, request, {}, before, call.frame, call.site):
        states = [state]
        _given(made, request, state)
        for name in _ANSWERS:
            found = state.get(one) if isinstance(one := only(made), Ref) else None
            method = machine.user_method(found, name, state) if isinstance(found, Instance) else None
            if method is not None and one is not None:
                bound: Value = (Bound(method, one),)
                states = [s for c in states for s, _ in machine.call_value(bound, [], {}, c, call.frame, call.site)]
        left.extend(states)
    return left


def _given(handler: Value, request: list[Value], state: State) -> None:
    """What a handler's base class keeps of what it is made with."""
    ref = only(handler)
    found = state.get(ref) if isinstance(ref, Ref) else None
    if isinstance(ref, Ref) and isinstance(found, Instance):
        kept = dict(zip(("request", "client_address", "server"), request, strict=True))
        state.store(ref, replace(found, attributes={**kept, **found.attributes}))


def _named(machine: Machine, call: Call, given: Value) -> None:
    """A request names a function, or a public method of an object: each as if it came first."""
    if isinstance(call.state.get(atom) if isinstance(atom := only(given), Ref) else None, Instance):
        one_of(machine, call, given, call.state)
    else:
        machine.call_value(given, [], {}, call.state.clone(), call.frame, call.site)
