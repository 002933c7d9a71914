"""Tasks that a flow hands to its runner: threads of this process, or processes (Prefect)."""

from __future__ import annotations

from cudalint.ir.nodes import ParamKind
from cudalint.machine.effects.frameworks.remote_tasks import elsewhere
from cudalint.machine.effects.receivers import method_of
from cudalint.machine.effects.servers.handlers import is_function, keep_handler, registered
from cudalint.machine.frame import Call, Frame, Results
from cudalint.machine.function_attributes import give_attribute
from cudalint.machine.heap import Closure, LibraryObject
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch import launching, workers
from cudalint.machine.launch.arguments import named_arguments, task
from cudalint.machine.launch.crossing import Pickler
from cudalint.machine.launch.forbidden import by_spawn
from cudalint.machine.launch.launching import Start
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import FALSE, NONE, Bound, Lib, Partial, Ref, Value, const, only, unknown
from cudalint.structs import replace

_RUNNER = "flow"
_BY_NAME = (ParamKind.POSITIONAL, ParamKind.KEYWORD)
_THREADS = "concurrent.futures.ThreadPoolExecutor"


def made_task(machine: Machine, call: Call) -> Results:
    """``@task``, also with arguments: the function itself, which a flow calls, or hands to its runner by a method."""
    defined = _function(call)
    if defined is None:
        return [(call.state, _again(call))]
    _give(call, defined, "task")
    return [(call.state, (defined,))]


def made_flow(machine: Machine, call: Call) -> Results:
    """``@flow(task_runner=ThreadPoolTaskRunner())``: the function itself, whose tasks run there."""
    defined = _function(call)
    if defined is None:
        return [(call.state, _again(call))]
    results: Results = []
    for state, runner in _object_of(machine, call, call.get(call.text("key"))):
        found = state.get(defined)
        if isinstance(found, Closure) and runner:
            keep_handler(state, _RUNNER, Site(found.module, found.function.ordinal), runner)
        _give(replace(call, state=state), defined, "flow")
        results.append((state, (defined,)))
    return results


def _object_of(machine: Machine, call: Call, runner: Value | None) -> Results:
    """``task_runner=ThreadPoolTaskRunner``: of a class, an object that is told nothing."""
    if isinstance(only(runner or ()), Lib):
        return machine.call_value(runner or (), [], {}, call.state, call.frame, call.site)
    return [(call.state, runner or ())]


def _give(call: Call, defined: Ref, kind: str) -> None:
    """What is made of a function has methods besides."""
    for method in call.texts("methods"):
        found = call.state.get(defined)
        if isinstance(found, Closure):
            work: Value = (Partial((Lib(f"cudalint.{kind}.{method}"),), ((defined,),), ()),)
            give_attribute(defined, found, method, work, call.state)


def _function(call: Call) -> Ref | None:
    """The function that is decorated; None where the decorator is made first."""
    given = call.args[0] if call.args else ()
    atom = only(given)
    return atom if isinstance(atom, Ref) and is_function(given, call.state) else None


def _again(call: Call) -> Value:
    """The decorator with its arguments, that waits for its function."""
    if call.args:
        return call.args[0]
    return (Partial((Lib(call.path),), (), tuple(sorted(call.kwargs.items()))),)


def runner(machine: Machine, call: Call) -> Results:
    """``DaskTaskRunner(cluster_kwargs={"n_workers": 2})``: it makes a cluster as it says, where a flow begins.

    Whatever else it is told, another cluster may be its own.
    """
    made, told = call.text("type"), call.text("kwargs")
    options = named_arguments(call.state, call.get(told))
    others = [value for name, value in call.kwargs.items() if name != told]
    is_elsewhere = call.open or bool(call.args) or any(value != NONE for value in others)
    fields: dict[str, Value] = {"<elsewhere>": const(is_elsewhere), **options}
    return [(call.state, (call.state.new(("runner", call.site), LibraryObject(made, fields, call.site)),))]


def serve(machine: Machine, call: Call) -> Results:
    """``flow.serve(name="x")``: each run of the flow is a process of its own, and whoever serves goes on if that fails.

    It is a fresh program that reads the flow's file, or by the model's ``method`` a child that is handed the flow; one
    that imports main meets the same call, and waits there.
    """
    state, work = call.state, call.args[0] if call.args else ()
    closure = state.get(atom) if isinstance(atom := only(work), Ref) else None
    if not isinstance(closure, Closure) or (machine.is_import_of_main(state) and by_spawn(state)):
        return [(state, NONE)]
    params = (param for param in closure.function.params if param.kind in _BY_NAME and param.default is None)
    given: dict[str, Value] = {param.name: unknown("parameter", call.site, param.name) for param in params}
    method = method_of(call)
    if method is None:
        ready = elsewhere(machine, call, call.spec, needs=True)
        machine.call_value(work, [], given, ready, Frame(call.frame.scope, call.frame.module), call.site)
        return [(state, NONE)]
    start = Start(
        launcher=call.label,
        family="fork-launcher",
        anchor=call.site,
        chain=machine.chain(state, call.site, "another process runs it"),
        many=False,
        reused=False,
        daemon=False,
        failures={"body": "child-death", "unpickle": "child-death"},
        tasks=(task(work, [], given),),
        inherited=(work,),
        pickler=Pickler.GLOBALS if call.text("pickle") == "value" else Pickler.NAMES,
        dropped=True,
    )
    for way in launching.ways(machine, state, start.library, method):
        workers.start(machine, state, call.frame, start, way)
    return [(state, NONE)]


def submit(machine: Machine, call: Call) -> Results:
    """``task.submit(x)``: the runner of the flow that says so runs it; without one, threads do."""
    return _handed(machine, call, "submit")


def mapped(machine: Machine, call: Call) -> Results:
    """``task.map(xs)``: the same for each of what it is given; what has a name is not told apart."""
    if call.kwargs:
        named = {name: unknown("item", call.site, name) for name in call.kwargs}
        return _handed(machine, replace(call, kwargs=named), "submit")
    return _handed(machine, call, "map")


def _handed(machine: Machine, call: Call, method: str) -> Results:
    results: Results = []
    for state, made in _runner_of(machine, call):
        atom = only(made)
        found = state.get(atom) if isinstance(atom, Ref) else None
        if not isinstance(atom, Ref) or not isinstance(found, LibraryObject):
            results.append((state, unknown("submitted", call.site)))
            continue
        run = (Bound(Lib(f"{found.type}.{method}"), atom),)
        results += machine.call_value(run, call.args, call.kwargs, state, call.frame, call.site)
    return results


def _runner_of(machine: Machine, call: Call) -> Results:
    """What runs the tasks of the flow that the present function is, ready for them."""
    state = call.state
    told = next((made for site, made in registered(state, _RUNNER) if site == _place(call.frame)), None)
    if told is None:
        return [(state, _threads(call, state))]
    atom = only(told)
    found = state.get(atom) if isinstance(atom, Ref) else None
    if not isinstance(found, LibraryObject) or found.type != "distributed.LocalCluster":
        return [(state, told)]
    options = {name: value for name, value in found.fields.items() if not name.startswith("<")}
    if found.fields["<elsewhere>"] != FALSE:
        return [(state, unknown("cluster", call.site))]
    return machine.call_value((Lib(found.type),), [], options, state, call.frame, call.site)


def _place(frame: Frame) -> Site:
    return Site(frame.module, 0 if frame.function is None else frame.function.ordinal)


def _threads(call: Call, state: State) -> Value:
    fields: dict[str, Value] = {"<library>": const("threading"), "<context>": NONE}
    return (state.new(("runner", call.site), LibraryObject(_THREADS, fields, call.site)),)
