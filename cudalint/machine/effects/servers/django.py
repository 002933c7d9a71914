"""Django: what it imports and runs when it is set up, and the views that answer requests."""

from __future__ import annotations

from collections.abc import Iterator

from cudalint.machine.effects.servers.handlers import keep_handler
from cudalint.machine.effects.servers.web import APPLICATION
from cudalint.machine.frame import Call, Frame, Results
from cudalint.machine.heap import Class, LibraryObject, Scope
from cudalint.machine.interpreter import Machine
from cudalint.machine.joining import merge
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import NONE, Lib, Partial, Ref, Value, constant, only, strings, unknown

_CONFIG = "django.apps.AppConfig"
_ROUTE, _ROUTES = "django.Route", "django.Routes"
# How deep files of routes include others.
_DEEPEST = 4


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
