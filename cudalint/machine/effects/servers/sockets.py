"""The servers of the standard library, which make an instance of a class for each request.

Or call what was registered with them, where requests name functions (xmlrpc).
"""

from __future__ import annotations

from cudalint.machine.effects.concurrency.threads import threaded
from cudalint.machine.effects.receivers import initialised, keep_self, library_self
from cudalint.machine.effects.servers.forking import Serving, fork_workers
from cudalint.machine.effects.stdlib.lookups import one_of
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import Instance, LibraryObject
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch.arguments import task
from cudalint.machine.state import State
from cudalint.machine.values import NONE, Atom, Bound, Lib, Partial, Ref, Value, only, unknown
from cudalint.structs import replace

_SERVER = "socketserver.BaseServer"
_HANDLER = "RequestHandlerClass"
# The object of the program that is the server, where a class of the program is.
_OWNER = "<owner>"
_FUNCTION = "<function>"
_FORKING, _THREADING = "Forking", "Threading"
_WSGI_SERVER: Value = (Lib("wsgiref.simple_server.WSGIServer"),)
_ANSWERS = ("setup", "handle", "do_GET", "do_POST", "do_PUT", "do_DELETE", "do_HEAD", "do_PATCH", "finish")


def make(machine: Machine, call: Call) -> Results:
    """``TCPServer(address, Handler)``: nothing is answered yet."""
    state, handler = call.state, call.get(_HANDLER) or NONE
    order = _order(machine, call.receiver, state) or (call.path,)
    fields: dict[str, Value] = {_HANDLER: handler, "<kind>": tuple(Lib(kind) for kind in order)}
    if call.receiver is not None:
        fields[_OWNER] = (call.receiver,)
    made: Value = (state.new(("server", call.site), LibraryObject(_SERVER, fields, call.site)),)
    initialised(call, {_HANDLER: handler})
    keep_self(call, made)
    return [(state, made)]


def _order(machine: Machine, server: Atom | None, state: State) -> tuple[str, ...]:
    """The classes of libraries above a server of the program, in the order in which Python looks at them."""
    found = state.get(server) if isinstance(server, Ref) else None
    order = machine.mro(found.cls, state) if isinstance(found, Instance) else ()
    return tuple(entry for entry in order if isinstance(entry, str))


def make_for_application(machine: Machine, call: Call) -> Results:
    """``make_server(host, port, application, server_class=)``: a server that asks the application for its answers."""
    kind, handler = call.get("server_class") or _WSGI_SERVER, call.get("handler_class") or NONE
    given = [unknown("address", call.site), handler]
    results: Results = []
    for state, made in machine.call_value(kind, given, {}, call.state, call.frame, call.site):
        for atom in made:
            function(machine, replace(call, state=state, receiver=atom, args=[call.get("app") or NONE]))
        results.append((state, made))
    return results


def function(machine: Machine, call: Call) -> Results:
    """``server.register_function(f)``, ``register_instance(object)``, ``set_app(f)``: what requests may lead to."""
    server = _server(library_self(call), call.state)
    if server is not None and call.args:
        ref, found = server
        name = f"{_FUNCTION} {call.site.module} {call.site.ordinal}"
        call.state.store(ref, replace(found, fields={**found.fields, name: call.args[0]}))
    return [(call.state, call.args[0] if call.args else NONE)]


def serve(machine: Machine, call: Call) -> Results:
    """``serve_forever()``, ``handle_request()``: a request comes, which a class of the program may process itself."""
    server = _server(library_self(call), call.state)
    own = [] if server is None else _by_owner(machine, call, server[1], "process_request")
    return own or process(machine, call)


def _server(atom: Atom | None, state: State) -> tuple[Ref, LibraryObject] | None:
    """A server, and where it lies."""
    found = state.get(atom) if isinstance(atom, Ref) else None
    return (atom, found) if isinstance(atom, Ref) and isinstance(found, LibraryObject) else None


def process(machine: Machine, call: Call) -> Results:
    """A request is answered in this process, in a thread of it, or in a process that is forked for it."""
    server = _server(library_self(call), call.state)
    if server is None:
        return [(call.state, NONE)]
    atom, found = server
    answering: Value = (Partial((Lib("cudalint.socket.answer"),), ((atom,),), ()),)
    how = _how(machine, found)
    if how == _FORKING and _answers(found):
        serving = Serving(call.label, call.site, call.frame, True)
        fork_workers(machine, call.state.clone(), serving, (task(answering, []),))
        return [(call.state, NONE)]
    if how == _THREADING:
        return machine.at_any_time(call.state, lambda: threaded(machine, call, call.site, answering, [], {}, None))
    return machine.at_any_time(call.state, lambda: _finished(machine, call, atom, found))


def _how(machine: Machine, server: LibraryObject) -> str:
    """What becomes of a request, which the class says that comes first: a mixin, or a server."""
    for kind in server.fields["<kind>"]:
        path = kind.path if isinstance(kind, Lib) else ""
        name = path.rpartition(".")[2]
        if name.startswith((_FORKING, _THREADING)):
            return _FORKING if name.startswith(_FORKING) else _THREADING
        if machine.library.is_a(path, _SERVER):
            break
    return ""


def answer(machine: Machine, call: Call) -> Results:
    """A process that was forked for a request, or a thread, answers it."""
    server = _server(only(call.args[0]), call.state)
    return [(call.state, NONE)] if server is None else _finished(machine, call, *server)


def finish(machine: Machine, call: Call) -> Results:
    """``finish_request(request, client)``: an object is made that answers."""
    server = _server(library_self(call), call.state)
    return [(call.state, NONE)] if server is None else _answered(machine, call, *server)


def _finished(machine: Machine, call: Call, ref: Ref, server: LibraryObject) -> Results:
    """A request is answered, as a class of the program says where it does."""
    return _by_owner(machine, call, server, "finish_request") or _answered(machine, call, ref, server)


def _by_owner(machine: Machine, call: Call, server: LibraryObject, name: str) -> Results:
    """What the server's class in the program makes of a request; nothing where it does not define that."""
    owner = only(server.fields.get(_OWNER, ()))
    return _by_own(machine, replace(call, receiver=owner), name, _request(call))


def _by_own(machine: Machine, call: Call, name: str, given: list[Value]) -> Results:
    """What the class of an object in the program makes of a method; nothing where it does not define it."""
    ref = call.receiver
    found = call.state.get(ref) if isinstance(ref, Ref) else None
    method = machine.user_method(found, name, call.state) if isinstance(found, Instance) else None
    if method is None or ref is None:
        return []
    results = machine.call_value((Bound(method, ref),), given, {}, call.state, call.frame, call.site)
    return [(state, NONE) for state, _ in results]


def _request(call: Call) -> list[Value]:
    return [unknown("request", call.site), unknown("client", call.site)]


def _answers(server: LibraryObject) -> bool:
    return server.fields.get(_HANDLER, NONE) != NONE or any(name.startswith(_FUNCTION) for name in server.fields)


def _answered(machine: Machine, call: Call, ref: Ref, server: LibraryObject) -> Results:
    for name, given in server.fields.items():
        if name.startswith(_FUNCTION):
            _named(machine, call, given)
    handler = server.fields.get(_HANDLER, NONE)
    own = server.fields.get(_OWNER, (ref,))
    request = [*_request(call), own]
    if handler == NONE:
        return [(call.state, NONE)]
    for state in _handled(machine, call, handler, request, call.state.clone()):
        if call.state.process.driver is None and state.process.driver is not None:
            # The next request finds a process that used CUDA.
            _handled(machine, call, handler, request, state)
    return [(call.state, NONE)]


def _handled(machine: Machine, call: Call, handler: Value, request: list[Value], before: State) -> list[State]:
    """What one request of each kind leaves behind, one after the other."""
    return [state for state, _ in machine.call_value(handler, request, {}, before, call.frame, call.site)]


def handler(machine: Machine, call: Call) -> Results:
    """``BaseRequestHandler.__init__(request, client_address, server)``: a request is answered while it runs."""
    initialised(call, {name: call.get(name) or NONE for name in ("request", "client_address", "server")})
    states = [call.state]
    for name in _ANSWERS:
        states = [
            after
            for state in states
            for after, _ in _by_own(machine, replace(call, state=state), name, []) or [(state, NONE)]
        ]
    return [(state, NONE) for state in states]


def _named(machine: Machine, call: Call, given: Value) -> None:
    """A request names a function, or a public method of an object: each as if it came first."""
    if isinstance(call.state.get(atom) if isinstance(atom := only(given), Ref) else None, Instance):
        one_of(machine, call, given, call.state)
    else:
        machine.call_value(given, [], {}, call.state.clone(), call.frame, call.site)
