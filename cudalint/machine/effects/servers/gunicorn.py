"""gunicorn: an application that is made before the workers fork, or in each of them."""

from __future__ import annotations

from collections.abc import Iterator

from cudalint.ir.walk import mentions
from cudalint.machine.effects.receivers import library_object
from cudalint.machine.effects.servers.forking import Serving, fork_workers
from cudalint.machine.effects.servers.requests import handlers_of, request_arguments
from cudalint.machine.effects.servers.top_level import binding_of
from cudalint.machine.effects.servers.web import begins, started
from cudalint.machine.frame import Call, Frame, Results
from cudalint.machine.heap import Closure, Instance, LibraryObject
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch import workers
from cudalint.machine.launch.arguments import task
from cudalint.machine.launch.launching import Start, Way
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
from cudalint.served import CONFIGURES
from cudalint.structs import replace

_MASTER_HOOKS = ("on_starting", "when_ready", "pre_fork")

_WORKER_HOOKS = ("post_fork", "post_worker_init")


def gunicorn_set(machine: Machine, call: Call) -> Results:
    """``self.cfg.set(name, value)``."""
    obj = library_object(call)
    names = strings(call.args[0]) if call.args else []
    if obj is not None and isinstance(call.receiver, Ref) and len(call.args) > 1:
        fields = {**obj.fields, **dict.fromkeys(names, call.args[1])} if names else {**obj.fields, "<any>": TRUE}
        call.state.store(call.receiver, replace(obj, fields=fields))
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
        _serve_gunicorn(machine, after, Serving("gunicorn", call.site, call.frame, True), settings, making)
    return [(state, NONE)]


def _configured(machine: Machine, call: Call, ref: Ref, found: Instance) -> Iterator[tuple[State, dict[str, Value]]]:
    """The settings that ``load_config`` makes."""
    state = call.state
    config = state.new(("gunicorn", call.site), LibraryObject("cudalint.gunicorn.Config", {}, call.site))
    state.store(ref, replace(found, attributes={**found.attributes, "cfg": (config,)}))
    method = machine.user_method(found, "load_config", state)
    results: Results = [(state, NONE)]
    if method is not None:
        results = machine.call_value((Bound(method, ref),), [], {}, state, call.frame, call.site)
    for after, _ in results:
        made = after.get(config)
        settings = dict(made.fields) if isinstance(made, LibraryObject) else {}
        module = machine.program.module(call.frame.module)
        if "<any>" in settings and module is not None and mentions(module, {"preload_app"}):
            settings.setdefault("preload_app", TRUE)
        yield after, settings


def _serve_gunicorn(
    machine: Machine, state: State, serving: Serving, settings: dict[str, Value], making: Value
) -> None:
    """Fork workers: ``making`` is what makes the application, before the fork if it is preloaded, else after."""
    preloads = settings.get("preload_app", NONE)
    if Const(True) in preloads and Const(False) not in preloads:
        made = machine.call_value(making, [], {}, state, serving.frame, serving.site)
    else:
        made = [(state, ())]
    for current, app in made:
        states = [current]
        for name in _MASTER_HOOKS:
            states = [s for c in states for s in _call_hook(machine, c, serving, settings.get(name, NONE))]
        hooks = [task(settings[n], [unknown(n, serving.site)]) for n in _WORKER_HOOKS if _is_set(settings.get(n))]
        for after in states:
            starts = [task((Lib("cudalint.server.started"),), [app])] if app and begins(after) else []
            for handler in handlers_of(machine, after, app) if app else [_served_by(making)]:
                fork_workers(machine, after, serving, (*hooks, *starts, task(handler, request_arguments(serving.site))))


def _is_set(value: Value | None) -> bool:
    return value is not None and value != NONE


def _served_by(making: Value) -> Value:
    return (Partial((Lib("cudalint.server.request"),), (making,), ()),)


def serving_task(home: str, name: str, site: Site, *, is_factory: bool) -> Task:
    """A worker that imports an application by its name, and answers a request."""
    named = const(home), const(name), const(is_factory)
    making: Value = (Partial((Lib("cudalint.server.import"),), named, ()),)
    return task(_served_by(making), request_arguments(site))


def server_request(machine: Machine, call: Call) -> Results:
    """A worker that makes its application, and one request."""
    results: Results = []
    making, *request = call.args
    for state, app in machine.call_value(making, [], {}, call.state, call.frame, call.site):
        for ready in started(machine, state, call.frame, app):
            handlers = handlers_of(machine, ready, app)
            for handler in handlers:
                results.extend(machine.call_value(handler, request, {}, ready.clone(), call.frame, call.site))
            if not handlers:
                results.append((ready, NONE))
    return results


def server_started(machine: Machine, call: Call) -> Results:
    """A worker runs what its application runs when it starts."""
    return [(ready, NONE) for ready in started(machine, call.state, call.frame, call.args[0])]


def _call_hook(machine: Machine, state: State, serving: Serving, hook: Value) -> list[State]:
    if not _is_set(hook):
        return [state]
    args = [unknown("server", serving.site), unknown("worker", serving.site)]
    return [s for s, _ in machine.call_value(hook, args[:1], {}, state, serving.frame, serving.site)]


def is_configuration(names: dict[str, Value]) -> bool:
    """Whether a module sets what only a configuration of gunicorn sets, and runs something before the workers fork."""
    hooks = any(name in names for name in _MASTER_HOOKS)
    return "wsgi_app" in names or names.get("preload_app") == TRUE or hooks


def from_outside(machine: Machine, state: State, frame: Frame, names: dict[str, Value]) -> None:
    """A configuration file: of the application that it or a command line names, else of any that one may name."""
    place = binding_of(machine, frame.module, ("preload_app", *_MASTER_HOOKS, "wsgi_app"))
    if place is None:
        return
    target = next(iter(strings(names.get("wsgi_app", NONE))), "")
    told = [_told(name) for name, server in sorted(machine.program.preloads(frame.module)) if server == CONFIGURES]
    named = [*_named(machine, frame, target)] if target else told
    for home, name, is_factory in named or ([] if target else _any(machine, frame)):
        making: Value = (Partial((Lib("cudalint.server.import"),), (const(home), const(name), const(is_factory)), ()),)
        serving = Serving("gunicorn", place, frame, certain=bool(named))
        _serve_gunicorn(machine, state.clone(), serving, names, making)


def _told(target: str) -> tuple[str, str, bool]:
    """The module of an application, its name, and whether that is a function which makes it."""
    home, _, name = target.rpartition(":")
    return home, name.removesuffix("()"), name.endswith("()")


def _application(machine: Machine, frame: Frame, name: str) -> tuple[Site, Value] | None:
    """Where a module binds its application, or a function that makes it (``make()``), and what imports it there."""
    plain = name.removesuffix("()")
    place = binding_of(machine, frame.module, (plain,))
    if place is None:
        return None
    named = const(frame.module), const(plain), const(name != plain)
    return place, (Partial((Lib("cudalint.server.import"),), named, ()),)


def preloaded_from_outside(machine: Machine, state: State, frame: Frame, name: str, server: str) -> None:
    """A module whose application a server makes before it forks, as a file of the repository says."""
    named = _application(machine, frame, name)
    if named is not None:
        place, making = named
        serving = Serving(server, place, frame, certain=True)
        _serve_gunicorn(machine, state, serving, {"preload_app": TRUE}, making)


def apart_from_outside(machine: Machine, state: State, frame: Frame, name: str, server: str, count: int) -> None:
    """A module whose application each worker of a server makes for itself, as a file of the repository says."""
    named = _application(machine, frame, name)
    if named is None:
        return
    place, making = named
    start = Start(
        launcher=server,
        family="executor",
        anchor=place,
        chain=machine.chain(state, place, f"{server} starts {count} workers, as a file of the project says"),
        many=True,
        reused=True,
        daemon=False,
        failures={"body": "crash"},
        tasks=(task(_served_by(making), request_arguments(place)),),
        label="server worker",
        count=count,
    )
    workers.start(machine, state, frame, start, Way("spawn", True, explicit=True))


def _named(machine: Machine, frame: Frame, target: str) -> Iterator[tuple[str, str, bool]]:
    """The application that ``wsgi_app = "module:name"`` names."""
    path, _, attribute = target.partition(":")
    home = machine.program.resolve(frame.module, path, 0)
    if home is not None:
        yield home, attribute.removesuffix("()") or "application", attribute.endswith("()")


def _any(machine: Machine, frame: Frame) -> Iterator[tuple[str, str, bool]]:
    """The applications that this configuration may be for."""
    for home, name in machine.program.applications(frame.module):
        if home != frame.module:
            yield home, name, False


def import_application(machine: Machine, call: Call) -> Results:
    """What ``wsgi_app = "module:name"`` stands for: the module is imported in this process."""
    home, name, is_factory = (constant(value) for value in call.args[:3])
    results: Results = []
    for state, module in machine.load(str(home), call.state, call.frame, call.site):
        for after, app in machine.attribute(module, str(name), state, call.frame, call.site):
            if is_factory is True or _takes_no_request(after, app):
                results.extend(machine.call_value(app, [], {}, after, call.frame, call.site))
            else:
                results.append((after, app))
    return results


def _takes_no_request(state: State, app: Value) -> bool:
    """Whether a function takes nothing, so that uvicorn's workers call it for the application."""
    found = state.get(atom) if isinstance(atom := only(app), Ref) else None
    return isinstance(found, Closure) and not found.function.params
