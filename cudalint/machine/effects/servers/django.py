"""Django: what it imports and runs when it is set up, commands, django-q's tasks, and views that answer requests."""

from __future__ import annotations

from collections.abc import Iterator

from cudalint.machine.effects.servers.forking import Serving, fork_workers
from cudalint.machine.effects.servers.handlers import keep_handler
from cudalint.machine.effects.servers.web import APPLICATION
from cudalint.machine.effects.stdlib import lookups
from cudalint.machine.frame import Call, Frame, Results
from cudalint.machine.heap import Class, Dict, Instance, LibraryObject, Scope
from cudalint.machine.interpreter import Machine
from cudalint.machine.joining import merge
from cudalint.machine.launch.arguments import task
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import (
    FALSE,
    NONE,
    Bound,
    Const,
    Lib,
    Partial,
    Ref,
    Value,
    constant,
    only,
    strings,
    unknown,
)

_CONFIG = "django.apps.AppConfig"
_ROUTE, _ROUTES = "django.Route", "django.Routes"
_COMMAND = "django.core.management.base.BaseCommand"
# How deep files of routes include others, and how many commands of a project are followed.
_DEEPEST, _MOST_COMMANDS = 4, 8


def setup(machine: Machine, call: Call) -> Results:
    """``django.setup()``, ``get_wsgi_application()``: applications are imported, and made ready."""
    return [(state, _made(machine, call, state)) for state in ready(machine, call.state, call.frame, call.site)]


def _made(machine: Machine, call: Call, state: State) -> Value:
    """What answers requests: by the views of the project, which are imported with the first one."""
    if call.text("returns") != "application":
        return NONE
    urls = _setting(machine, state, call.frame, call.site, "ROOT_URLCONF")
    answer = Partial((Lib("cudalint.django.request"),), (urls,), ())
    keep_handler(state, "handler", call.site, (answer,))
    made = LibraryObject(APPLICATION, {}, call.site)
    return (state.new(("application", call.site), made),)


def ready(machine: Machine, state: State, frame: Frame, site: Site) -> list[State]:
    """The states after the applications that the settings name were imported and made ready, as Django does it."""
    installed = _setting(machine, state, frame, site, "INSTALLED_APPS")
    names = [name for value in machine.elements(installed, state) for name in strings(value)]
    states, configs = [state], []
    for name in names:
        home, chosen = _configured(machine, frame, name)
        if home is not None:
            states = _loaded(machine, states, frame, site, home)
            configs.append((home, chosen))
    for name in names:
        models = machine.program.resolve(frame.module, f"{name.partition('.apps.')[0]}.models", 0)
        states = states if models is None else _loaded(machine, states, frame, site, models)
    for home, chosen in configs:
        states = [after for current in states for after in _made_ready(machine, current, frame, site, home, chosen)]
    return merge(states)


def _setting(machine: Machine, state: State, frame: Frame, site: Site, name: str) -> Value:
    """A setting of the module that ``DJANGO_SETTINGS_MODULE`` names."""
    named = strings(state.process.environ("DJANGO_SETTINGS_MODULE") or ())
    home = machine.program.resolve(frame.module, named[0], 0) if named else None
    loaded = [] if home is None else machine.load(home, state, frame, site)
    if len(loaded) != 1 or loaded[0][0] is not state:
        return unknown("setting", name)
    found = machine.attribute(loaded[0][1], name, state, frame, site)
    return found[0][1] if len(found) == 1 else unknown("setting", name)


def _configured(machine: Machine, frame: Frame, name: str) -> tuple[str | None, str]:
    """The module of an application's configuration, and the class there; any where only the application is named."""
    home, _, chosen = name.rpartition(".")
    if chosen[:1].isupper():
        return machine.program.resolve(frame.module, home, 0), chosen
    return machine.program.resolve(frame.module, f"{name}.apps", 0), ""


def _loaded(machine: Machine, states: list[State], frame: Frame, site: Site, home: str) -> list[State]:
    return [after for state in states for after, _ in machine.load(home, state, frame, site)]


def _made_ready(machine: Machine, state: State, frame: Frame, site: Site, home: str, chosen: str) -> list[State]:
    for cls in _configurations(machine, state, home, chosen):
        made = machine.blank(cls, state, site)
        called = [
            after
            for current, method in machine.attribute(made, "ready", state, frame, site)
            for after, _ in machine.call_value(method, [], {}, current, frame, site)
        ]
        return called
    return [state]


def _configurations(machine: Machine, state: State, home: str, chosen: str) -> Iterator[Ref]:
    module = state.get(Ref(("module", home)))
    for name, value in module.variables.items() if isinstance(module, Scope) else ():
        atom = only(value)
        if chosen not in ("", name) or not isinstance(atom, Ref) or not isinstance(state.get(atom), Class):
            continue
        if machine.library_base(atom, state) == _CONFIG:
            yield atom


# -- requests --------------------------------------------------------------------------------------------------------


def route(machine: Machine, call: Call) -> Results:
    """``path("embed/", view)``, also with ``include("app.urls")`` in the view's place."""
    made = LibraryObject(_ROUTE, {"<view>": call.get("view") or NONE}, call.site)
    return [(call.state, (call.state.new(("route", call.site), made),))]


def include(machine: Machine, call: Call) -> Results:
    """``include("app.urls")``."""
    made = LibraryObject(_ROUTES, {"<module>": call.args[0] if call.args else NONE}, call.site)
    return [(call.state, (call.state.new(("routes", call.site), made),))]


def request(machine: Machine, call: Call) -> Results:
    """A worker's first request of each kind: it imports the routes, and calls a view."""
    urls, *_ = call.args
    states = [call.state]
    for view in _views(machine, urls, states, call):
        given = [unknown("request", call.site)]
        states = merge(
            [
                after
                for state in states
                for after, _ in machine.call_value(view, given, {}, state, call.frame, call.site)
            ]
        )
    return [(state, unknown("response", call.site)) for state in states]


def _views(machine: Machine, urls: Value, states: list[State], call: Call, depth: int = 0) -> Iterator[Value]:
    """The views behind the routes of a module, which is imported for that."""
    name = constant(urls)
    home = machine.program.resolve(call.frame.module, name, 0) if isinstance(name, str) else None
    if home is None or depth > _DEEPEST:
        return
    states[:] = _loaded(machine, states, call.frame, call.site, home)
    if not states:
        return
    state = states[0]
    found = machine.attribute((Ref(("module", home)),), "urlpatterns", state, call.frame, call.site)
    for value in machine.elements(found[0][1], state) if found else ():
        one = state.get(atom) if isinstance(atom := only(value), Ref) else None
        if not isinstance(one, LibraryObject) or one.type != _ROUTE:
            continue
        view = one.fields["<view>"]
        inner = state.get(within) if isinstance(within := only(view), Ref) else None
        if isinstance(inner, LibraryObject) and inner.type == _ROUTES:
            yield from _views(machine, inner.fields["<module>"], states, call, depth + 1)
        else:
            yield view


def as_view(machine: Machine, call: Call) -> Results:
    """``Score.as_view()``: a view that makes an instance for each request."""
    cls: Value = (call.receiver,) if call.receiver is not None else NONE
    return [(call.state, (Partial((Lib("cudalint.django.view"),), (cls,), tuple(call.kwargs.items())),))]


def view(machine: Machine, call: Call) -> Results:
    """A request of each kind that a class answers."""
    made, states = call.args[0], [call.state]
    found = machine.call_value(made, [], {}, call.state, call.frame, call.site)
    if len(found) != 1:
        return [(call.state, unknown("response", call.site))]
    (state, instance), given = found[0], [unknown("request", call.site)]
    states = [state]
    cls = state.get(atom) if isinstance(atom := only(instance), Ref) else None
    for name in call.texts("methods"):
        method = machine.user_method(cls, name, state) if isinstance(cls, Instance) else None
        if method is not None and isinstance(atom, Ref):
            called = [
                machine.call_value((Bound(method, atom),), given, {}, one, call.frame, call.site) for one in states
            ]
            states = merge([after for results in called for after, _ in results])
    return [(one, unknown("response", call.site)) for one in states]


# -- commands --------------------------------------------------------------------------------------------------------


def manage(machine: Machine, call: Call) -> Results:
    """``execute_from_command_line(sys.argv)``: applications are made ready, then one of the commands runs.

    That is one of the project's own, ``runserver``, which answers requests here, or one that forks workers for the
    tasks of applications: ``qcluster`` of django-q, ``rqworker`` of django-rq.
    """
    names = [one for one in machine.program.modules_below("management.commands") if not one.endswith("__init__")]
    done: list[State] = []
    for state in ready(machine, call.state, call.frame, call.site):
        for name in names[:_MOST_COMMANDS]:
            done.extend(_command(machine, call, state.clone(), name))
        _runserver(machine, call, state.clone())
        installed = _setting(machine, state, call.frame, call.site, "INSTALLED_APPS")
        applications = [n for value in machine.elements(installed, state) for n in strings(value)]
        for application, fork in _QUEUES.items():
            if application in applications:
                fork(machine, call, state.clone())
        done.append(state)
    return [(state, NONE) for state in merge(done)]


def _runserver(machine: Machine, call: Call, state: State) -> None:
    """Each view answers a request in a process that was made ready and imported all routes."""
    urls = _setting(machine, state, call.frame, call.site, "ROOT_URLCONF")
    states, given = [state], [unknown("request", call.site)]
    for view in list(_views(machine, urls, states, call)):
        for imported in states:
            machine.call_value(view, given, {}, imported.clone(), call.frame, call.site)


def _command(machine: Machine, call: Call, state: State, home: str) -> list[State]:
    """The states after ``Command().handle()`` of a module, with options that are not known."""
    done: list[State] = []
    for loaded, module in machine.load(home, state, call.frame, call.site):
        for after, cls in machine.attribute(module, "Command", loaded, call.frame, call.site):
            atom = only(cls)
            if not isinstance(atom, Ref) or not isinstance(after.get(atom), Class):
                continue
            if machine.library_base(atom, after) != _COMMAND:
                continue
            for current, instance in machine.call_value(cls, [], {}, after, call.frame, call.site):
                for one, method in machine.attribute(instance, "handle", current, call.frame, call.site):
                    results = machine.call_value(method, [], {}, one, call.frame, call.site, True)
                    done.extend(last for last, _ in results)
    return done


def _qcluster(machine: Machine, call: Call, state: State) -> None:
    """django-q's cluster: what tasks name is imported and run in forked daemons, unless it asks for others."""
    atom = only(_setting(machine, state, call.frame, call.site, "Q_CLUSTER"))
    cluster = state.get(atom) if isinstance(atom, Ref) else None
    is_daemon = not isinstance(cluster, Dict) or cluster.items.get("daemonize_workers") != FALSE
    _fork_tasks(machine, call, state, Serving("django-q", call.site, call.frame, certain=False, daemon=is_daemon))


def _rqworker(machine: Machine, call: Call, state: State) -> None:
    """django-rq's worker: a process is forked for each job, which imports what the job names."""
    serving = Serving("rqworker", call.site, call.frame, certain=False)
    _fork_tasks(machine, call, state, serving, ("tasks", "jobs"))


def _fork_tasks(
    machine: Machine, call: Call, state: State, serving: Serving, modules: tuple[str, ...] = ("tasks",)
) -> None:
    for home in (home for name in modules for home in machine.program.modules_called(name)):
        for name in machine.program.functions_of(home):
            named: Value = (Const(f"{home}.{name}"),)
            fork_workers(machine, state.clone(), serving, (task((Lib("cudalint.django.task"),), [named]),))


def run_task(machine: Machine, call: Call) -> Results:
    """A task of django-q or django-rq, which a worker knows by name."""
    name = constant(call.args[0])
    results: Results = []
    for state, function in lookups.named(machine, call, str(name), call.state):
        given = [unknown("argument", call.site)]
        results.extend(machine.call_value(function, given, {}, state, call.frame, call.site, True))
    return results


# What applications add a command that forks workers for tasks.
_QUEUES = {"django_q": _qcluster, "django_rq": _rqworker}
