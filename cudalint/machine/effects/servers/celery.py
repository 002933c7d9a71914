"""celery: an application, its tasks and settings, and the prefork pool that runs them."""

from __future__ import annotations

from collections.abc import Iterable

from cudalint.machine.effects.receivers import library_object
from cudalint.machine.effects.servers import django
from cudalint.machine.effects.servers.forking import Serving, fork_workers, in_master
from cudalint.machine.effects.servers.handlers import is_function, keep_handler, registered
from cudalint.machine.frame import Call, Frame, Results
from cudalint.machine.heap import Instance, LibraryObject
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch.arguments import task
from cudalint.machine.state import State
from cudalint.machine.values import (
    NONE,
    Bound,
    Const,
    Lib,
    Partial,
    Ref,
    Value,
    const,
    constant,
    only,
    strings,
    unknown,
)
from cudalint.served import WORKS
from cudalint.structs import replace

# What a task's class made, whether the function takes it, and the function.
_DECORATED = 3
_IN_MASTER = frozenset({"worker_init", "celeryd_init", "celeryd_after_setup", "worker_before_create_process"})


def celery_app(machine: Machine, call: Call) -> Results:
    """``Celery(...)``: gathers its tasks and its settings."""
    state = call.state
    settings = state.new(("settings", call.site), LibraryObject("celery.Settings", {}, call.site))
    included = call.kwargs.get("include", NONE)
    made = LibraryObject(
        "celery.Celery", {"conf": (settings,), "<modules>": _listed(machine, state, included)}, call.site
    )
    return [(state, (state.new(("celery", call.site), made),))]


def _listed(machine: Machine, state: State, names: Value, within: str = "") -> Value:
    """The modules of some packages, or those that are listed, as constants."""
    given = [name for value in machine.elements(names, state) for name in strings(value)]
    return tuple(Const(f"{name}.{within}" if within else name) for name in given)


def celery_discover(machine: Machine, call: Call) -> Results:
    """``app.autodiscover_tasks(["scoring"])``: the worker imports ``scoring.tasks``.

    Without a list, or with a function that gives one, it is the applications of a Django project: all of its packages
    that have such a module are taken for some.
    """
    obj, state = library_object(call), call.state
    if obj is not None and isinstance(call.receiver, Ref):
        within = next(iter(strings(call.get("related_name") or const("tasks"))), "tasks")
        listed = _listed(machine, state, call.get("packages") or NONE, within)
        fields = {**obj.fields, "<modules>": (*obj.fields.get("<modules>", ()), *listed)}
        if not listed:
            fields["<discovered>"] = tuple(map(Const, machine.program.modules_called(within)))
        state.store(call.receiver, replace(obj, fields=fields))
    return [(state, NONE)]


def _imported(machine: Machine, state: State, frame: Frame, app: LibraryObject) -> tuple[list[State], set[str]]:
    """The states after a worker imported the modules that an application names, and these."""
    states = [state]
    listed = (machine.program.resolve(frame.module, name, 0) for name in strings(app.fields.get("<modules>", ())))
    homes = {home: None for home in (*listed, *strings(app.fields.get("<discovered>", ()))) if home is not None}
    for home in homes:
        states = [s for c in states for s, _ in machine.load(home, c, frame, app.site)]
    return states, set(homes)


def celery_settings(machine: Machine, call: Call) -> Results:
    """``app.conf.update(worker_pool="threads")``."""
    obj = library_object(call)
    if obj is not None and isinstance(call.receiver, Ref):
        call.state.store(call.receiver, replace(obj, fields={**obj.fields, **call.kwargs}))
    return [(call.state, NONE)]


def celery_task(machine: Machine, call: Call) -> Results:
    """``@app.task``: run by workers later; the instance of its ``base=`` is made here and now."""
    state = call.state
    function = call.args[0] if call.args else ()
    if not is_function(function, state):
        is_bound = const(constant(call.kwargs.get("bind", NONE)) is True)
        taking = [(after, (made, is_bound)) for after, made in _of_base(machine, call)]
        return [(after, (Partial((Lib("cudalint.celery.task"),), first, ()),)) for after, first in taking]
    keep_handler(state, "task", call.site, function)
    return [(state, function)]


def celery_register(machine: Machine, call: Call) -> Results:
    """``app.register_task(Embed())``: workers call ``run()`` of this instance later."""
    given = call.args[0] if call.args else NONE
    atom = only(given)
    found = call.state.get(atom) if isinstance(atom, Ref) else None
    method = machine.user_method(found, "run", call.state) if isinstance(found, Instance) else None
    if method is not None and atom is not None:
        keep_handler(call.state, "task", call.site, (Bound(method, atom),))
    return [(call.state, given)]


def celery_bound_task(machine: Machine, call: Call) -> Results:
    """The function that ``@app.task(...)`` decorates: of a class of the program, a task is an instance that runs it."""
    if len(call.args) < _DECORATED:
        return [(call.state, unknown("task", call.site))]
    base, is_bound, function = call.args[:_DECORATED]
    own = only(base)
    made = call.state.get(own) if isinstance(own, Ref) else None
    first = (base if base != NONE else unknown("bound task", call.site),) if constant(is_bound) is True else ()
    run: Value = (Partial(function, first, ()),) if first else function
    keep_handler(call.state, "task", call.site, run)
    if not isinstance(made, Instance) or not isinstance(own, Ref):
        return [(call.state, function)]
    call.state.store(own, replace(made, attributes={**made.attributes, "run": run}))
    return [(call.state, base)]


def _of_base(machine: Machine, call: Call) -> Results:
    """What ``base=`` makes: celery makes it in the main process, before it forks."""
    base = call.kwargs.get("base")
    if base is None:
        return [(call.state, NONE)]
    return machine.call_value(base, [], {}, call.state, call.frame, call.site)


def signal_connect(machine: Machine, call: Call) -> Results:
    """``@worker_process_init.connect``: runs in each worker first; ``worker_init`` runs in the main process."""
    function = call.args[0] if call.args else ()
    if not is_function(function, call.state):
        return [(call.state, (Bound(Lib(call.path), call.receiver or Lib("cudalint.identity")),))]
    name = call.path.removesuffix(".connect").rpartition(".")[2]
    keep_handler(call.state, "master" if name in _IN_MASTER else "worker", call.site, function)
    return [(call.state, function)]


def celery_worker(machine: Machine, call: Call) -> Results:
    """``app.worker_main(argv)``: the prefork pool forks this process, as it is, for its workers."""
    state = call.state
    machine.record.serves = True
    options = [s for v in machine.elements(call.args[0], state) for s in strings(v)] if call.args else []
    pool = next((o.partition("=")[2] for o in options if o.startswith("--pool=")), None)
    if "-P" in options and options.index("-P") + 1 < len(options):
        pool = options[options.index("-P") + 1]
    obj = library_object(call)
    if obj is None or (pool or _pool_setting(obj, state)) != "prefork":
        return [(state, NONE)]
    before = django.ready(machine, state, call.frame, call.site)
    imported = [after for current in before for after in _imported(machine, current, call.frame, obj)[0]]
    for after in [s for c in imported for s in in_master(machine, c, call.frame, call.site, "master")]:
        serving = Serving("Celery.worker_main", call.site, call.frame, True, daemon=True)
        for function in [function for _, function in registered(after, "task")]:
            fork_workers(machine, after, serving, (task(function, [unknown("argument", call.site)]),))
    return [(state, NONE)]


def _pool_setting(app: LibraryObject, state: State) -> str:
    """The pool that an application's settings name; ``?`` where they name none that can be read."""
    atom = only(app.fields.get("conf", ()))
    settings = state.get(atom) if isinstance(atom, Ref) else None
    value = settings.fields.get("worker_pool", const("prefork")) if isinstance(settings, LibraryObject) else const("?")
    names = strings(value)
    return names[0] if len(names) == 1 else "?"


def from_outside(machine: Machine, state: State, frame: Frame) -> None:
    """A module that celery's worker imports; how the worker is started, only command lines of the project tell."""
    apps = _library_objects(state, "celery.Celery")
    told = {app.site: _pools_told(machine, frame, app) for app in apps}
    pools = [{pool or _pool_setting(app, state) for pool, _ in told[app.site] or [("", None)]} for app in apps]
    if any("prefork" not in named for named in pools):
        return
    certain = bool(apps) and all(map(told.get, told)) and all(named == {"prefork"} for named in pools)
    # A module that merely calls tasks of another is no module that celery imports.
    homes, states = {frame.module}, [state]
    for app in apps if len(apps) == 1 and apps[0].site.module == frame.module else ():
        states = []
        for current in django.ready(machine, state, frame, app.site):
            imported, named = _imported(machine, current, frame, app)
            states += imported
            homes |= named
    for current in states:
        for site, function in [found for found in registered(current, "task") if found[0].module in homes]:
            for after in in_master(machine, current.clone(), frame, site, "master"):
                serving = Serving("celery", site, frame, certain, daemon=True, count=_most(told.values()))
                fork_workers(machine, after, serving, (task(function, [unknown("argument", site)]),))


def _pools_told(machine: Machine, frame: Frame, app: LibraryObject) -> list[tuple[str, int | None]]:
    """The pools of the workers that files of the project start for an application, and how many processes they have."""
    found = {server for home in (app.site.module, frame.module) for _, server in machine.program.preloads(home)}
    told = [server.removeprefix(WORKS).partition(":") for server in sorted(found) if server.startswith(WORKS)]
    return [(pool, int(number) if number else None) for pool, _, number in told]


def _most(told: Iterable[list[tuple[str, int | None]]]) -> int | None:
    """How many processes a worker has at the most; None where one of them is not told how many."""
    counts = [count for workers in told for _, count in workers or [("", None)]]
    known = [count for count in counts if count is not None]
    return max(known) if known and len(known) == len(counts) else None


def _library_objects(state: State, kind: str) -> list[LibraryObject]:
    return [o for o in state.objects() if isinstance(o, LibraryObject) and o.type == kind]
