"""Web applications: what they run before their first request, and what they answer it with."""

from __future__ import annotations

from collections.abc import Iterator

from cudalint.ir import nodes as ir
from cudalint.machine.effects.concurrency.threads import in_new_thread, threaded
from cudalint.machine.effects.receivers import library_object
from cudalint.machine.effects.servers.components import methods_called
from cudalint.machine.effects.servers.forking import Serving, fork_workers
from cudalint.machine.effects.servers.handlers import is_function, keep_handler, registered
from cudalint.machine.frame import Call, Frame, Results
from cudalint.machine.heap import NAMESPACE, Closure, Dict, Generator, LibraryObject, Scope
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch.arguments import count_of, task
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import NONE, Const, Lib, Partial, Ref, Value, const, constant, only, strings, unknown
from cudalint.structs import replace

APPLICATION = "cudalint.web.Application"
# Those that answer requests, here or in processes of their own; what only gathers routes is none. Sanic hands each
# handler its request first, however that is called.
_BY_POSITION = "cudalint.web.Sanic"
_APPLICATIONS = frozenset({APPLICATION, _BY_POSITION})
# What a streamed answer is called that is given by name.
_STREAMED = ("response", "content")
_DEPENDENCY = "cudalint.web.Dependency"
_DEEPEST = 3
# So many handlers are looked at for what an earlier request did.
MOST_REQUESTS = 16
# A handler's parameter is a request by its type (FastAPI goes by nothing else), or by what all call it.
_REQUEST_TYPES = frozenset({"Request", "WebSocket", "HTTPConnection"})
_REQUESTS = frozenset({"request", "req", "websocket"})
# Where applications keep what their handlers share: FastAPI, Starlette and Litestar; Sanic.
_SHARED = ("state", "ctx")

# Where they keep their settings, as far as the program sets them one by one: Flask, Quart, Sanic.
_CONFIG = "config"
# The argument of its ``run()`` by which an application is told to have no thread for each request; whether it has one
# for each request that no coroutine answers.
_THREADS, _ASIDE = "<threads>", "<aside>"
# How its lifespan and its other hooks go together.
_ORDER = "<order>"
# What its lifespan yields, which each request has as its state (Starlette); what its handlers' parameters depend on.
_YIELDED, _DEPENDENCIES = "<yielded>", "<dependencies>"
# What answers a request is given of what the application keeps, by the type of its parameter (Litestar).
_STATE_TYPES = frozenset({"State"})
# What is kept of an application to be run when it starts, in this order, unless it has another one (Litestar and
# aiohttp); with a lifespan Starlette and FastAPI run nothing else.
_BEGINNINGS = ("startup", "lifespan")
_LIFESPAN_FIRST, _LIFESPAN_ALONE = "lifespan-first", "lifespan-alone"

Arguments = dict[str, Value]


def web_application(machine: Machine, call: Call) -> Results:
    """``FastAPI(lifespan=)``, ``Starlette(on_startup=[...])``: an application, and what it runs when it starts."""
    state = call.state
    for lifespan in _several(machine, call.kwargs.get("lifespan", NONE), state):
        keep_handler(state, "lifespan", call.site, lifespan)
    for name in ("on_startup", "before_startup"):
        for function in _several(machine, call.kwargs.get(name, NONE), state):
            keep_handler(state, "startup", call.site, function)
    fields: dict[str, Value] = {}
    for name in _SHARED:
        fields[name] = (state.new((name, call.site), LibraryObject(NAMESPACE, {}, call.site)),)
    if call.text("key"):
        fields[_THREADS] = const(call.text("key"))
    fields[_ASIDE] = const(call.text("value") == "threads")
    fields[_ORDER] = const(call.text("kind"))
    if "dependencies" in call.kwargs:
        fields[_DEPENDENCIES] = call.kwargs["dependencies"]
    fields[_CONFIG] = (state.new((_CONFIG, call.site), LibraryObject("cudalint.web.Config", {}, call.site)),)
    made = LibraryObject(call.text("type") or APPLICATION, fields, call.site)
    return [(state, (state.new(("application", call.site), made),))]


def application_of_class(machine: Machine, call: Call) -> Results:
    """``init_app(Model)``: an application that answers requests by methods of a class, made for them in its worker."""
    made = call.get(call.text("function")) or NONE
    handler = Partial((Lib("cudalint.component"),), (made, *methods_called(call)), ())
    keep_handler(call.state, "handler", call.site, (handler,))
    return web_application(machine, call)


def routes(machine: Machine, call: Call) -> Results:
    """``Application([(pattern, Handler)])``: an application that answers requests by methods of these classes."""
    rows = (
        machine.exact_items(row, call.state) or [] for row in machine.elements(call.get("handlers") or (), call.state)
    )
    called = methods_called(call)
    made = [Partial((Lib("cudalint.component"),), (row[1], *called), ()) for row in rows if len(row) > 1]
    if made:
        keep_handler(call.state, "handler", call.site, tuple(made))
    return web_application(machine, call)


def fork(machine: Machine, call: Call) -> Results:
    """``server.start(4)``: workers that are forked answer requests; with one process, this one does, later."""
    number = call.get(call.text("workers"))
    if number not in (None, const(1)):
        _serve_forked(machine, call, _application(call.state))
    return [(call.state, NONE)]


def _several(machine: Machine, value: Value, state: State) -> list[Value]:
    """The functions of a list, or the one that is given."""
    given = [value] if is_function(value, state) else machine.elements(value, state)
    return [function for function in given if is_function(function, state)]


def on_event(machine: Machine, call: Call) -> Results:
    """``@app.on_event("startup")``, ``app.add_event_handler("startup", f)``."""
    starts = bool(call.args) and call.text("key", "startup") in strings(call.args[0])
    if starts and len(call.args) > 1:
        keep_handler(call.state, "startup", call.site, call.args[1])
    return [(call.state, (Lib("cudalint.server.startup" if starts else "cudalint.identity"),))]


def set_item(machine: Machine, call: Call) -> Results:
    """``app["model"] = value``, as aiohttp has it."""
    app, key = library_object(call), only(call.args[0]) if call.args else None
    if app is not None and isinstance(call.receiver, Ref) and isinstance(key, Const | Ref) and len(call.args) > 1:
        call.state.store(call.receiver, replace(app, fields={**app.fields, _item(key): call.args[1]}))
    return [(call.state, NONE)]


def item(machine: Machine, call: Call) -> Results:
    """``app["model"]``."""
    app, key = library_object(call), only(call.args[0]) if call.args else None
    found = None if app is None or not isinstance(key, Const | Ref) else app.fields.get(_item(key))
    return [(call.state, unknown("item", call.site) if found is None else found)]


def setting(app: Value, key: str, state: State) -> object:
    """What the program said of a setting of an application; ``...`` where it is not seen to say anything."""
    held = _held(app, state)
    config = _held(held.fields.get(_CONFIG, ()), state) if isinstance(held, LibraryObject) else None
    return constant(config.fields.get(_item(Const(key)), ())) if isinstance(config, LibraryObject) else ...


def _item(key: Const | Ref) -> str:
    return f"<item {key.value if isinstance(key, Const) else key.address!r}>"


def depends(machine: Machine, call: Call) -> Results:
    """``Depends(f)`` as a default: each request calls ``f`` for this parameter."""
    function = call.get("dependency") or NONE
    made = LibraryObject(_DEPENDENCY, {"<function>": function}, call.site)
    return [(call.state, (call.state.new(("dependency", call.site), made),))]


def annotated(machine: Machine, call: Call) -> Results:
    """``Annotated[T, Depends(f)]``, as a name for parameters: what they depend on."""
    parts = [part for key in call.args for part in (machine.exact_items(key, call.state) or [key])]
    found = next((part for part in parts if _dependency(part, call.state) is not None), None)
    return [(call.state, found or unknown("annotated", call.site))]


def _dependency(value: Value, state: State) -> LibraryObject | None:
    found = state.get(atom) if isinstance(atom := only(value), Ref) else None
    return found if isinstance(found, LibraryObject) and found.type == _DEPENDENCY else None


def run(machine: Machine, call: Call) -> Results:
    """``app.run()``, ``web.run_app(app)``: it starts, and each handler answers a request."""
    app = (call.receiver,) if call.receiver is not None else call.get("app") or ()
    if count_of(call.kwargs.get("processes"), default_many=False):
        # werkzeug forks for each request.
        _serve_forked(machine, call, app)
    elif _forks_all(call):
        _serve_in_forks(machine, call, app)
    else:
        serve(machine, call, app)
    return [(call.state, NONE)]


def streamed(machine: Machine, call: Call) -> Results:
    """``Response(frames())``: what a generator yields is sent, which runs it."""
    given = call.args[:1] or [value for name in _STREAMED if (value := call.kwargs.get(name)) is not None]
    return [(after, unknown("answer", call.site)) for after in machine.exhausted(given, call.state, call.frame)]


def _serve_forked(machine: Machine, call: Call, app: Value) -> None:
    serving = Serving(call.label, call.site, call.frame, True)
    for ready in started(machine, call.state.clone(), call.frame, app):
        for _, handler in list(registered(ready, "handler")):
            fork_workers(machine, ready.clone(), serving, (task(handler, []),))


def _forks_all(call: Call) -> bool:
    """Whether an application was told to fork what answers its requests."""
    alone = constant(call.kwargs.get("single_process", NONE)) is True
    told = call.state.process.method(call.text("library")).names if call.text("library") else None
    return told == ("fork",) and not alone


def _serve_in_forks(machine: Machine, call: Call, app: Value) -> None:
    """Workers that are forked begin with what comes before they serve, and then answer requests."""
    serving = Serving(call.label, call.site, call.frame, True)
    for forking in _after_hooks(machine, call.state.clone(), call.frame, "main-start", app):
        hooks = [task(hook, _taken(hook, forking, app)) for _, hook in registered(forking, "startup")]
        for _, handler in list(registered(forking, "handler")):
            for ready, given in _given(machine, forking.clone(), call.frame, _held(handler, forking), app):
                fork_workers(machine, ready, serving, (*hooks, task(handler, [], given)))


def serve(machine: Machine, call: Call, app: Value) -> None:
    """An application answers requests in this process, if it is one."""
    state = call.state
    atom = only(app)
    found = state.get(atom) if isinstance(atom, Ref) else None
    if not isinstance(found, LibraryObject) or found.type != APPLICATION:
        return
    told = constant(found.fields.get(_THREADS, ()))
    in_threads = isinstance(told, str) and call.kwargs.get(told, const(True)) == const(True)
    for ready in started(machine, state.clone(), call.frame, app):
        _answer(machine, call, ready, app, in_threads=in_threads)
        later = _after_others(machine, ready, call.frame, app)
        if later is not ready:
            _answer(machine, call, later, app, in_threads=in_threads)


def _answer(machine: Machine, call: Call, state: State, app: Value, *, in_threads: bool) -> None:
    """Each handler answers a request in a process as it is here, in a thread of its own or in this one."""
    for site, handler in list(registered(state, "handler")):
        for ready, given in _given(machine, state.clone(), call.frame, _held(handler, state), app):
            answering = _answering(ready)
            if in_threads or _is_aside(app, handler, ready):
                threaded(machine, replace(call, state=answering), site, handler, [], given, None)
            else:
                machine.call_value(handler, [], given, answering, call.frame, call.site)


def _answering(state: State) -> State:
    state.process = replace(state.process, answering=True)
    return state


def before_answer(machine: Machine, state: State, frame: Frame, function: ir.Function) -> list[tuple[State, Arguments]]:
    """The states in which a function answers its first request, and with what; as it is, if it answers none."""
    place = (frame.module, function)
    handlers = [h for _, v in registered(state, "handler") if (h := _closure_of(v, *place, state)) is not None]
    if not handlers or not _all_applications(state):
        # Who calls it is not to be seen, whoever imported its module.
        state.process = replace(state.process, unseen=True)
    if not handlers:
        return [(state, {})]
    app = _application(state)
    begun = [_after_others(machine, after, frame, app) for after in started(machine, state, frame, app)]
    ready = [one for after in begun for one in _given(machine, after, frame, handlers[0], app)]
    answering = [(_answering(after), given) for after, given in ready]
    for site, handler in registered(state, "handler"):
        if _closure_of(handler, *place, state) is not None and _is_aside(app, handler, state):
            return [(in_new_thread(machine, after, site), given) for after, given in answering]
    return answering


def _is_aside(app: Value, handler: Value, state: State) -> bool:
    """Whether an application answers a request by a handler in a thread of its own, for it is no coroutine."""
    held, closure = _held(app, state), _held(handler, state)
    if not isinstance(held, LibraryObject) or held.fields.get(_ASIDE) != const(True):
        return False
    return isinstance(closure, Closure) and not closure.function.is_async


def _after_others(machine: Machine, state: State, frame: Frame, app: Value) -> State:
    """The process that answers a request, as an earlier one left it: where any used the GPU, that one.

    Where all of them are seen to their ends, and none used it, nothing did: servers call nothing else.
    """
    requests = list(registered(state, "handler"))
    if state.process.driver is not None or only(app) != _only_application(state) or len(requests) > MOST_REQUESTS:
        return state
    is_seen = True
    for site, handler in requests:
        for ready, given in _given(machine, state.clone(), frame, _held(handler, state), app):
            after = machine.earlier(handler, given, ready, frame, site, "answers an earlier request")
            is_seen = is_seen and after is not None
            using = [one for one in after or () if one.process.driver is not None]
            if using:
                return using[0]
    if is_seen:
        state.process = replace(state.process, unseen=False)
    return state


def from_outside(machine: Machine, state: State, frame: Frame) -> None:
    """A server imported the module of an application, which starts, and answers requests where that can go wrong."""
    app = _only_application(state)
    if app is None:
        return
    for ready in started(machine, state, frame, (app,)):
        if any(one.index not in (0, None) for _, one in ready.process.selected):
            _answer_aside(machine, ready, frame, (app,))


def _answer_aside(machine: Machine, state: State, frame: Frame, app: Value) -> None:
    """Each handler that a server runs in a thread of its own answers a request."""
    for site, handler in list(registered(state, "handler")):
        if not _is_aside(app, handler, state):
            continue
        for ready, given in _given(machine, state.clone(), frame, _held(handler, state), app):
            call = Call(_answering(ready), frame, site, APPLICATION, {}, [], {})
            threaded(machine, call, site, handler, [], given, None)


def _application(state: State) -> Value:
    """The one application that there is."""
    found = _only_application(state)
    return unknown("application") if found is None else (found,)


def _only_application(state: State) -> Ref | None:
    found = _all_applications(state)
    return found[0] if len(found) == 1 else None


def _all_applications(state: State) -> list[Ref]:
    return [Ref(a) for a, o in state.objects_at().items() if isinstance(o, LibraryObject) and o.type in _APPLICATIONS]


def begins(state: State) -> bool:
    """Whether applications run anything when they start."""
    return any(next(registered(state, kind), None) is not None for kind in _BEGINNINGS)


def started(machine: Machine, state: State, frame: Frame, app: Value) -> list[State]:
    """The states after an application ran what it runs when it starts."""
    states = [state]
    for kind in _beginnings(state, app):
        states = [after for current in states for after in _after_hooks(machine, current, frame, kind, app)]
    return states


def _beginnings(state: State, app: Value) -> tuple[str, ...]:
    """What an application runs when it starts, in its order."""
    held = _held(app, state)
    order = constant(held.fields.get(_ORDER, NONE)) if isinstance(held, LibraryObject) else None
    if order == _LIFESPAN_FIRST:
        return _BEGINNINGS[::-1]
    if order == _LIFESPAN_ALONE and next(registered(state, "lifespan"), None) is not None:
        return ("lifespan",)
    return _BEGINNINGS


def _after_hooks(machine: Machine, state: State, frame: Frame, kind: str, app: Value) -> list[State]:
    """The states after what is kept under a name was run."""
    states = [state]
    for site, hook in list(registered(state, kind)):
        states = [s for c in states for s in _begun(machine, c, frame, site, hook, kind, app)]
    return states


def _taken(hook: Value, state: State, app: Value, *, unless_seen: bool = False) -> list[Value]:
    """What a hook is called with: the application, if it takes anything, or ``unless_seen`` what it takes."""
    closure = _held(hook, state)
    takes = bool(closure.function.params) if isinstance(closure, Closure) else unless_seen
    return [app] if takes else []


def _begun(machine: Machine, state: State, frame: Frame, site: Site, hook: Value, kind: str, app: Value) -> list[State]:
    begun = machine.call_value(hook, _taken(hook, state, app, unless_seen=kind == "lifespan"), {}, state, frame, site)
    if kind != "lifespan":
        return [after for after, _ in begun]
    return [ready for after, manager in begun for ready in _alive(machine, after, frame, site, manager, app)]


def _alive(machine: Machine, state: State, frame: Frame, site: Site, manager: Value, app: Value) -> list[State]:
    """The states in which a lifespan waits for the end: at its ``yield``, or after it was entered."""
    return [_yielding(ready, app, value, site) for ready, value in _entered(machine, state, frame, site, manager)]


def _yielding(state: State, app: Value, value: Value, site: Site) -> State:
    """A lifespan that yields a dict gives each request these as attributes of its state."""
    atom, held = only(app), _held(app, state)
    items = _held(value, state)
    if isinstance(atom, Ref) and isinstance(held, LibraryObject) and isinstance(items, Dict):
        named = {name: given for name, given in items.items.items() if isinstance(name, str)}
        shown: Value = (state.new((_YIELDED, site), LibraryObject(NAMESPACE, named, site)),)
        state.store(atom, replace(held, fields={**held.fields, _YIELDED: shown}))
    return state


def _entered(machine: Machine, state: State, frame: Frame, site: Site, manager: Value) -> Results:
    """A generator at its ``yield``, with what it yields; any other manager after it was entered."""
    atom = only(manager)
    found = state.get(atom) if isinstance(atom, Ref) else None
    if not isinstance(atom, Ref) or not isinstance(found, Generator):
        return list(machine.enter(manager, state, frame, site))
    waiting: Results = []

    def wait(inside: State, value: Value) -> list[State]:
        waiting.append((inside.clone(), value))
        return [inside]

    machine.consume(atom, found, state, frame, wait)
    return waiting


def _held(value: Value, state: State) -> object:
    """What a value stands for in memory, where it is one thing."""
    atom = only(value)
    return state.get(atom) if isinstance(atom, Ref) else None


def _given(
    machine: Machine, state: State, frame: Frame, closure: object, app: Value, depth: int = 0
) -> list[tuple[State, Arguments]]:
    """What a handler is given with a request: the request, and what its dependencies give, which may have some too."""
    if not isinstance(closure, Closure) or depth > _DEEPEST:
        return [(state, {})]
    site = Site(closure.module, closure.function.ordinal)
    ready: list[tuple[State, Arguments]] = []
    for begun in [state] if depth else _after_each(machine, state, frame, app):
        first = _shared(closure, begun, app)
        request = LibraryObject("cudalint.web.Request", _of_request(app, begun), site)
        named = sorted(_requests(closure, begun, app))
        first.update({name: (begun.new(("request", site, name), request),) for name in named})
        ready.append((begun, first))
    for name, function, place in list(_dependencies(closure, state, app)):
        following: list[tuple[State, Arguments]] = []
        for current, given in ready:
            # Called for each request, and not by who calls the handler.
            for before, own in _given(machine, current, frame, _held(function, current), app, depth + 1):
                for after, value in machine.call_value(function, [], own, before, frame, place):
                    following.extend((s, {**given, name: v}) for s, v in _provided(machine, after, frame, place, value))
        ready = following
    return ready


def _after_each(machine: Machine, state: State, frame: Frame, app: Value) -> list[State]:
    """The states after what an application runs before it answers any request."""
    return _after_hooks(machine, state, frame, "each-request", app)


def _of_request(app: Value, state: State) -> Arguments:
    """What a request shows: its application, and as its state what the lifespan of that yielded."""
    held = _held(app, state)
    yielded = held.fields.get(_YIELDED) if isinstance(held, LibraryObject) else None
    return {"app": app} if yielded is None else {"app": app, "state": yielded}


def _shared(closure: Closure, state: State, app: Value) -> Arguments:
    """The parameters that take what the application keeps for its handlers."""
    held, names = _held(app, state), _names(closure, state)
    kept = held.fields.get("state") if isinstance(held, LibraryObject) else None
    if kept is None:
        return {}
    return {param.name: kept for param in closure.function.params if _type_name(param, names) in _STATE_TYPES}


def _names(closure: Closure, state: State) -> Arguments:
    """What the module of a function binds."""
    module = state.get(Ref(("module", closure.module)))
    return module.variables if isinstance(module, Scope) else {}


def _requests(closure: Closure, state: State, app: Value) -> set[str]:
    """The parameters that take the request."""
    params, names = closure.function.params, _names(closure, state)
    named = {param.name for param in params if _is_request(param, names)}
    found = _held(app, state)
    if params and isinstance(found, LibraryObject) and found.type == _BY_POSITION:
        named.add(params[0].name)
    return named


def _is_request(param: ir.Param, names: Arguments) -> bool:
    return _type_name(param, names) in _REQUEST_TYPES or param.name in _REQUESTS


def _type_name(param: ir.Param, names: Arguments) -> str | None:
    meant = only(names.get(param.type, ()))
    return meant.path.rpartition(".")[2] if isinstance(meant, Lib) else param.type


def _dependencies(closure: Closure, state: State, app: Value) -> Iterator[tuple[str, Value, Site]]:
    """The parameters that depend on what functions give, these, and where the program says so."""
    names, held = _names(closure, state), _held(app, state)
    by_name = _held(held.fields.get(_DEPENDENCIES, ()), state) if isinstance(held, LibraryObject) else None
    provided = by_name.items if isinstance(by_name, Dict) else {}
    open_params = [param for param in closure.function.params if param.default is None]
    annotated = ((p.name, names.get(p.type, ())) for p in open_params if p.type)
    named = ((p.name, provided.get(p.name, ())) for p in open_params)
    for name, given in (*closure.defaults, *annotated, *named):
        found = _dependency(given, state)
        if found is not None:
            yield name, found.fields["<function>"], found.site


def _provided(machine: Machine, state: State, frame: Frame, site: Site, value: Value) -> Results:
    """What a dependency gives: what it yields, where it does."""
    atom = only(value)
    if isinstance(atom, Ref) and isinstance(state.get(atom), Generator):
        return _entered(machine, state, frame, site, value)
    return [(state, value)]


def _closure_of(value: Value, module: str, function: ir.Function, state: State) -> Closure | None:
    """The closure that a handler is, if it is this function."""
    for atom in value:
        one = state.get(atom) if isinstance(atom, Ref) else None
        if isinstance(one, Closure) and (one.module, one.function.ordinal) == (module, function.ordinal):
            return one
    return None
