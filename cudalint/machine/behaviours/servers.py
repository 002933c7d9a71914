"""Servers that fork before they work: what their main process did to CUDA, their workers inherit.

celery and gunicorn may be started by the program itself, or from outside: then the module is imported, nothing
says which pool or option is chosen, and findings are warnings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from cudalint.ir import nodes as ir
from cudalint.ir.walk import mentions
from cudalint.machine.behaviours import workers
from cudalint.machine.behaviours.callees import thing_of
from cudalint.machine.behaviours.launch_arguments import task
from cudalint.machine.behaviours.launching import Start, Way
from cudalint.machine.frame import Call, Frame, Results
from cudalint.machine.heap import Closure, Generator, Instance, Scope, Thing
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import (
    NONE,
    TRUE,
    Bound,
    Const,
    Lib,
    Partial,
    Ref,
    Task,
    Value,
    const,
    constant,
    only,
    strings,
    unknown,
)

_REGISTRY = Ref(("server registry",))
_IN_MASTER = frozenset({"worker_init", "celeryd_init", "celeryd_after_setup", "worker_before_create_process"})
_GUNICORN_MASTER = ("on_starting", "when_ready", "pre_fork")
_GUNICORN_WORKER = ("post_fork", "post_worker_init")


# -- what is registered -----------------------------------------------------------------------------------------


def _register(state: State, kind: str, site: Site, function: Value) -> None:
    """Keep a handler with the place that names it."""
    found = state.get(_REGISTRY)
    fields = found.fields if isinstance(found, Thing) else {}
    key = f"{kind} {site.module} {site.ordinal}"
    state.put(_REGISTRY, Thing("cudalint.registry", {**fields, key: function}, site))


def _registered(state: State, kind: str) -> Iterator[tuple[Site, Value]]:
    found = state.get(_REGISTRY)
    for key, value in found.fields.items() if isinstance(found, Thing) else ():
        name, module, ordinal = key.rsplit(" ", 2)
        if name == kind:
            yield Site(module, int(ordinal)), value


def register(machine: Machine, call: Call) -> Results:
    """A decorator, with or without arguments, whose function a server calls later: a task, a hook, a handler."""
    function = call.args[0] if call.args else ()
    if not _is_function(function, call.state):
        return [(call.state, (Bound(Lib(call.path), call.receiver or Lib("cudalint.identity")),))]
    _register(call.state, call.text("kind"), call.site, function)
    return [(call.state, function)]


def _is_function(value: Value, state: State) -> bool:
    atom = only(value)
    return isinstance(atom, Partial | Bound) or (isinstance(atom, Ref) and isinstance(state.get(atom), Closure))


# -- celery -----------------------------------------------------------------------------------------------------


def celery_app(machine: Machine, call: Call) -> Results:
    """``Celery(...)``: gathers its tasks and its settings."""
    state = call.state
    settings = state.new(("settings", call.site), Thing("celery.Settings", {}, call.site))
    made = Thing("celery.Celery", {"conf": (settings,)}, call.site)
    return [(state, (state.new(("celery", call.site), made),))]


def celery_settings(machine: Machine, call: Call) -> Results:
    """``app.conf.update(worker_pool="threads")``."""
    thing = thing_of(call)
    if thing is not None and isinstance(call.receiver, Ref):
        call.state.put(call.receiver, replace(thing, fields={**thing.fields, **call.kwargs}))
    return [(call.state, NONE)]


def celery_task(machine: Machine, call: Call) -> Results:
    """``@app.task``: run by workers later; with ``base=`` and ``bind=`` its first argument is made here and now."""
    state = call.state
    function = call.args[0] if call.args else ()
    if not _is_function(function, state):
        made = _bound_to_base(machine, call)
        return [(state, (Partial((Lib("cudalint.celery.task"),), (made,), ()),))]
    _register(state, "task", call.site, function)
    return [(state, function)]


def celery_bound_task(machine: Machine, call: Call) -> Results:
    """The function that ``@app.task(...)`` decorates."""
    first, function = (call.args[0], call.args[1]) if len(call.args) > 1 else (NONE, unknown("task", call.site))
    run = function if first == NONE else (Partial(function, (first,), ()),)
    _register(call.state, "task", call.site, run)
    return [(call.state, function)]


def _bound_to_base(machine: Machine, call: Call) -> Value:
    if constant(call.kwargs.get("bind", NONE)) is not True:
        return NONE
    base = call.kwargs.get("base")
    if base is None:
        return unknown("bound task", call.site)
    found = machine.call_value(base, [], {}, call.state, call.frame, call.site)
    return found[0][1] if len(found) == 1 and found[0][0] is call.state else unknown("bound task", call.site)


def signal_connect(machine: Machine, call: Call) -> Results:
    """``@worker_process_init.connect``: runs in each worker first; ``worker_init`` runs in the main process."""
    function = call.args[0] if call.args else ()
    if not _is_function(function, call.state):
        return [(call.state, (Bound(Lib(call.path), call.receiver or Lib("cudalint.identity")),))]
    name = call.path.removesuffix(".connect").rpartition(".")[2]
    _register(call.state, "master" if name in _IN_MASTER else "worker", call.site, function)
    return [(call.state, function)]


def celery_worker(machine: Machine, call: Call) -> Results:
    """``app.worker_main(argv)``: the prefork pool forks this process, as it is, for its workers."""
    state = call.state
    machine.record.serves = True
    options = [s for v in machine.elements(call.args[0], state) for s in strings(v)] if call.args else []
    pool = next((o.partition("=")[2] for o in options if o.startswith("--pool=")), None)
    if "-P" in options and options.index("-P") + 1 < len(options):
        pool = options[options.index("-P") + 1]
    thing = thing_of(call)
    if thing is None or (pool or _pool_setting(thing, state)) != "prefork":
        return [(state, NONE)]
    tasks = [function for _, function in _registered(state, "task")]
    for after in _in_master(machine, state, call.frame, call.site, "master"):
        serving = _Serving("Celery.worker_main", call.site, call.frame, True)
        for function in tasks:
            _fork(machine, after, serving, (task(function, [unknown("argument", call.site)]),))
    return [(state, NONE)]


def _pool_setting(app: Thing, state: State) -> str:
    """The pool that an application's settings name; ``?`` where they name none that can be read."""
    atom = only(app.fields.get("conf", ()))
    settings = state.get(atom) if isinstance(atom, Ref) else None
    value = settings.fields.get("worker_pool", const("prefork")) if isinstance(settings, Thing) else const("?")
    names = strings(value)
    return names[0] if len(names) == 1 else "?"


# -- gunicorn ---------------------------------------------------------------------------------------------------


def gunicorn_set(machine: Machine, call: Call) -> Results:
    """``self.cfg.set(name, value)``."""
    thing = thing_of(call)
    names = strings(call.args[0]) if call.args else []
    if thing is not None and isinstance(call.receiver, Ref) and len(call.args) > 1:
        fields = {**thing.fields, **dict.fromkeys(names, call.args[1])} if names else {**thing.fields, "<any>": TRUE}
        call.state.put(call.receiver, replace(thing, fields=fields))
    return [(call.state, NONE)]


def gunicorn_run(machine: Machine, call: Call) -> Results:
    """``Application().run()``: with preload_app the application is made before the workers fork."""
    state = call.state
    ref = call.receiver
    found = state.get(ref) if isinstance(ref, Ref) else None
    if not isinstance(ref, Ref) or not isinstance(found, Instance):
        return [(state, NONE)]
    load = machine.user_method(found, "load", state)
    if load is None:
        return [(state, NONE)]
    for after, settings in _configured(machine, call, ref, found):
        making: Value = (Bound(load, ref),)
        _serve_gunicorn(machine, after, _Serving("gunicorn", call.site, call.frame, True), settings, making)
    return [(state, NONE)]


def _configured(machine: Machine, call: Call, ref: Ref, found: Instance) -> Iterator[tuple[State, dict[str, Value]]]:
    """The settings that ``load_config`` makes."""
    state = call.state
    config = state.new(("gunicorn", call.site), Thing("gunicorn.Config", {}, call.site))
    state.put(ref, replace(found, attributes={**found.attributes, "cfg": (config,)}))
    method = machine.user_method(found, "load_config", state)
    results: Results = [(state, NONE)]
    if method is not None:
        results = machine.call_value((Bound(method, ref),), [], {}, state, call.frame, call.site)
    for after, _ in results:
        made = after.get(config)
        settings = dict(made.fields) if isinstance(made, Thing) else {}
        module = machine.program.module(call.frame.module)
        if "<any>" in settings and module is not None and mentions(module, {"preload_app"}):
            settings.setdefault("preload_app", TRUE)
        yield after, settings


def _serve_gunicorn(
    machine: Machine, state: State, serving: _Serving, settings: dict[str, Value], making: Value
) -> None:
    """Fork workers: ``making`` is what makes the application, before the fork if it is preloaded, else after."""
    preloads = settings.get("preload_app", NONE)
    if Const(True) in preloads and Const(False) not in preloads:
        made = machine.call_value(making, [], {}, state, serving.frame, serving.site)
    else:
        made = [(state, ())]
    for current, app in made:
        states = [current]
        for name in _GUNICORN_MASTER:
            states = [s for c in states for s in _call_hook(machine, c, serving, settings.get(name, NONE))]
        hooks = [task(settings[n], [unknown(n, serving.site)]) for n in _GUNICORN_WORKER if _is_set(settings.get(n))]
        for after in states:
            for handler in _handlers(machine, after, app) if app else [_served_by(making)]:
                _fork(machine, after, serving, (*hooks, task(handler, _request(serving.site))))


def _is_set(value: Value | None) -> bool:
    return value is not None and value != NONE


def _served_by(making: Value) -> Value:
    return (Partial((Lib("cudalint.server.request"),), (making,), ()),)


def server_request(machine: Machine, call: Call) -> Results:
    """A worker that makes its application, and one request."""
    results: Results = []
    making, *request = call.args
    for state, app in machine.call_value(making, [], {}, call.state, call.frame, call.site):
        for handler in _handlers(machine, state, app):
            results.extend(machine.call_value(handler, request, {}, state.clone(), call.frame, call.site))
    return results


def _request(site: Site) -> list[Value]:
    return [unknown("environ", site), unknown("start_response", site)]


def _call_hook(machine: Machine, state: State, serving: _Serving, hook: Value) -> list[State]:
    if not _is_set(hook):
        return [state]
    args = [unknown("server", serving.site), unknown("worker", serving.site)]
    return [s for s, _ in machine.call_value(hook, args[:1], {}, state, serving.frame, serving.site)]


def _handlers(machine: Machine, state: State, app: Value) -> list[Value]:
    """What a request runs: the application if it is a function, else the handlers registered with it."""
    atom = only(app)
    if _is_function(app, state) or (isinstance(atom, Ref) and isinstance(state.get(atom), Instance)):
        return [app]
    return [function for _, function in _registered(state, "handler")]


# -- forking ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Serving:
    """A server that starts workers: its name, the place findings point at, whether it is sure to fork."""

    name: str
    site: Site
    frame: Frame
    certain: bool


def _in_master(machine: Machine, state: State, frame: Frame, site: Site, kind: str) -> list[State]:
    """The states after the hooks that run in the main process before it forks."""
    states = [state]
    for _, hook in list(_registered(state, kind)):
        states = [s for c in states for s, _ in machine.call_value(hook, [], {}, c, frame, site)]
    return states


def _fork(machine: Machine, state: State, serving: _Serving, work: tuple[Task, ...]) -> None:
    hooks = tuple(task(function, []) for _, function in _registered(state, "worker"))
    start = Start(
        launcher=serving.name,
        family="fork-launcher",
        anchor=serving.site,
        chain=machine.chain(state, serving.site, f"{serving.name} forks its workers"),
        many=True,
        reused=True,
        daemon=False,
        failures={"body": "crash"},
        tasks=(*hooks, *work),
        label="server worker",
        shares=False,
    )
    workers.start(machine, state, serving.frame, start, Way("fork", serving.certain, explicit=True))


# -- web applications: what runs before the first request ---------------------------------------------------------


def web_application(machine: Machine, call: Call) -> Results:
    """``FastAPI(lifespan=)``, ``Starlette(on_startup=[...])``: an application, and what it runs when it starts."""
    state = call.state
    lifespan = call.kwargs.get("lifespan", NONE)
    if _is_function(lifespan, state):
        _register(state, "lifespan", call.site, lifespan)
    for function in machine.elements(call.kwargs.get("on_startup", NONE), state):
        if _is_function(function, state):
            _register(state, "startup", call.site, function)
    return [(state, (state.new(("application", call.site), Thing("cudalint.web.Application", {}, call.site)),))]


def on_event(machine: Machine, call: Call) -> Results:
    """``@app.on_event("startup")``, ``app.add_event_handler("startup", f)``."""
    starts = bool(call.args) and "startup" in strings(call.args[0])
    if starts and len(call.args) > 1:
        _register(call.state, "startup", call.site, call.args[1])
    return [(call.state, (Lib("cudalint.server.startup" if starts else "cudalint.identity"),))]


def before_answer(machine: Machine, state: State, frame: Frame, function: ir.Function) -> list[State]:
    """The states in which a function answers its first request; as it is, if it answers none."""
    if not any(_stands_for(value, frame.module, function, state) for _, value in _registered(state, "handler")):
        return [state]
    states = [state]
    for kind in ("startup", "lifespan"):
        for site, hook in list(_registered(state, kind)):
            states = [s for c in states for s in _begun(machine, c, frame, site, hook, kind)]
    return states


def _begun(machine: Machine, state: State, frame: Frame, site: Site, hook: Value, kind: str) -> list[State]:
    closure = state.get(atom) if isinstance(atom := only(hook), Ref) else None
    takes = kind == "lifespan" or (isinstance(closure, Closure) and bool(closure.function.params))
    args: list[Value] = [unknown("application", site)] if takes else []
    begun = machine.call_value(hook, args, {}, state, frame, site)
    if kind == "startup":
        return [after for after, _ in begun]
    return [ready for after, manager in begun for ready in _alive(machine, after, frame, site, manager)]


def _alive(machine: Machine, state: State, frame: Frame, site: Site, manager: Value) -> list[State]:
    """The states in which a lifespan waits for the end: at its ``yield``, or after it was entered."""
    atom = only(manager)
    found = state.get(atom) if isinstance(atom, Ref) else None
    if not isinstance(atom, Ref) or not isinstance(found, Generator):
        return [after for after, _ in machine.enter(manager, state, frame, site)]
    waiting: list[State] = []

    def wait(inside: State, _: Value) -> list[State]:
        waiting.append(inside.clone())
        return [inside]

    machine.consume(atom, found, state, frame, wait)
    return waiting


def _stands_for(value: Value, module: str, function: ir.Function, state: State) -> bool:
    found = (state.get(atom) for atom in value if isinstance(atom, Ref))
    place = (module, function.ordinal)
    return any(isinstance(one, Closure) and (one.module, one.function.ordinal) == place for one in found)


# -- servers that are started from outside -------------------------------------------------------------------------


def served(machine: Machine, state: State, module: str) -> None:
    """A module that a server imports: celery's worker, gunicorn with this configuration, uwsgi."""
    frame = Frame(Ref(("module", module)), module)
    _celery_from_outside(machine, state, frame)
    scope = state.get(frame.scope)
    names = scope.variables if isinstance(scope, Scope) else {}
    if "wsgi_app" in names:
        _gunicorn_from_outside(machine, state.clone(), frame, names)
    if any(_registered(state, "postfork")):
        _uwsgi_from_outside(machine, state, frame, names)


def _celery_from_outside(machine: Machine, state: State, frame: Frame) -> None:
    pools = [_pool_setting(thing, state) for thing in _things(state, "celery.Celery")]
    if any(pool != "prefork" for pool in pools):
        return
    # A module that merely calls tasks of another is no module that celery imports.
    tasks = [(site, function) for site, function in _registered(state, "task") if site.module == frame.module]
    for site, function in tasks:
        for after in _in_master(machine, state.clone(), frame, site, "master"):
            serving = _Serving("celery", site, frame, False)
            _fork(machine, after, serving, (task(function, [unknown("argument", site)]),))


def _things(state: State, kind: str) -> list[Thing]:
    return [o for o in state.objects() if isinstance(o, Thing) and o.type == kind]


def _gunicorn_from_outside(machine: Machine, state: State, frame: Frame, names: dict[str, Value]) -> None:
    """A configuration file that names its application."""
    target = next(iter(strings(names.get("wsgi_app", NONE))), "")
    path, _, attribute = target.partition(":")
    home = machine.program.resolve(frame.module, path, 0) if path else None
    place = _assignment(machine, frame.module, ("preload_app", *_GUNICORN_MASTER, "wsgi_app"))
    if home is None or place is None:
        return
    name, is_factory = attribute.removesuffix("()") or "application", attribute.endswith("()")
    making: Value = (Partial((Lib("cudalint.server.import"),), (const(home), const(name), const(is_factory)), ()),)
    _serve_gunicorn(machine, state, _Serving("gunicorn", place, frame, True), names, making)


def import_application(machine: Machine, call: Call) -> Results:
    """What ``wsgi_app = "module:name"`` stands for: the module is imported in this process."""
    home, name, is_factory = (constant(value) for value in call.args[:3])
    results: Results = []
    for state, module in machine.load(str(home), call.state, call.frame, call.site):
        for after, app in machine.attribute(module, str(name), state, call.frame, call.site):
            if is_factory is True:
                results.extend(machine.call_value(app, [], {}, after, call.frame, call.site))
            else:
                results.append((after, app))
    return results


def _assignment(machine: Machine, module: str, names: tuple[str, ...]) -> Site | None:
    """The first of these names that the top level of a module sets, and where."""
    lowered = machine.program.module(module)
    for name in names:
        for statement in lowered.body if lowered is not None else ():
            match statement:
                case ir.Assign(targets=(ir.Name(id=found),)) if found == name:
                    return Site(module, statement.ordinal)
                case ir.FunctionDef(function=function) if function.name == name:
                    return Site(module, statement.ordinal)
    return None


def _uwsgi_from_outside(machine: Machine, state: State, frame: Frame, names: dict[str, Value]) -> None:
    """A module with a postfork hook: unless ``lazy-apps`` is set, it is imported before uwsgi forks."""
    hooks = tuple(task(function, []) for _, function in _registered(state, "postfork"))
    handlers = list(_registered(state, "handler"))
    place = _assignment(machine, frame.module, ("application",))
    if place is not None and _is_function(names.get("application", NONE), state):
        handlers.append((place, names["application"]))
    for site, handler in handlers:
        serving = _Serving("uwsgi", site, frame, False)
        _fork(machine, state.clone(), serving, (*hooks, task(handler, _request(site))))
