"""Task queues whose worker forks a process for each task, or a number of them, or runs threads: rq, huey, dramatiq."""

from __future__ import annotations

from collections.abc import Mapping

from cudalint.machine.effects.concurrency.threads import threaded
from cudalint.machine.effects.receivers import library_object
from cudalint.machine.effects.servers.forking import Serving, fork_workers
from cudalint.machine.effects.servers.handlers import called, is_function, keep_handler, registered
from cudalint.machine.frame import Call, Frame, Results
from cudalint.machine.heap import Class, Closure, Dict, Instance, LibraryObject, Scope
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch.arguments import count_of, task
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import NONE, Bound, Ref, Value, constant, holds_deferred, only, unknown

# Kinds of functions of which a file tells a runner that forks for each, by who runs them.
STEPS = {"dag-task": "Airflow", "flow-tool": "promptflow"}
# What classes of tests are that are not called Test..., and what runs of theirs before each test.
_CASES = frozenset({"unittest.TestCase", "unittest.IsolatedAsyncioTestCase"})
_SET_UP = ("setUp", "setup_method")


def queue_worker(machine: Machine, call: Call) -> Results:
    """``Worker(queues)``, ``huey.create_consumer(worker_type="process")``: an object that will run tasks."""
    made = LibraryObject(call.text("type") or call.path, dict(call.kwargs), call.site)
    return [(call.state, (call.state.new(("queue worker", call.site), made),))]


def enqueue(machine: Machine, call: Call) -> Results:
    """``queue.enqueue(f, *args)``: some worker runs it, one that this program starts if it starts one."""
    function = called(machine, call.get(call.text("function")) or (), call.state)
    if is_function(function, call.state):
        keep_handler(call.state, "task", call.site, function)
    return [(call.state, unknown("job", call.site))]


def work(machine: Machine, call: Call) -> Results:
    """``worker.work()``: tasks run in children that are forked from this process as it is."""
    state = call.state
    machine.record.serves = True
    number = call.text("workers")
    if _forks(call) and (not number or count_of(call.get(number), default_many=False)):
        tasks = [function for _, function in registered(state, "task")]
        serving = Serving(call.label, call.site, call.frame, bool(tasks))
        for function in tasks or _preloaded(_imported(machine, call), call.frame.module):
            fork_workers(machine, state, serving, (task(function, [unknown("argument", call.site)]),))
    return [(state, NONE)]


def _imported(machine: Machine, call: Call) -> State:
    """The state with the modules that the program imports, whatever of them it has used by now."""
    state = call.state
    main = state.get(Ref(("module", call.frame.module)))
    for value in list(main.variables.values()) if isinstance(main, Scope) else []:
        if holds_deferred(value):
            loaded = machine.resolve_deferred(value, state, call.frame)
            state.become(loaded[0][0] if loaded else state)
    return state


def _preloaded(state: State, main: str) -> list[Value]:
    """The functions that jobs of others may name, of the modules that this process imported for them beforehand."""
    if state.process.driver is None:
        return []
    found: list[Value] = []
    for _, held in sorted(state.objects_at().items(), key=repr):
        if not isinstance(held, Scope) or held.kind != "module" or held.module == main:
            continue
        for name, value in held.variables.items():
            atom = only(value)
            function = state.get(atom) if isinstance(atom, Ref) else None
            if isinstance(function, Closure) and function.module == held.module and not name.startswith("_"):
                found.append(value)
    return found


def steps_from_outside(machine: Machine, state: State, frame: Frame) -> None:
    """A file of steps: its runner reads it, and then forks to run a step of it."""
    for kind, runner in STEPS.items():
        for site, function in list(registered(state, kind)):
            serving = Serving(runner, site, frame, certain=False)
            fork_workers(machine, state.clone(), serving, (task(function, [unknown("argument", site)]),))


def threads_from_outside(machine: Machine, state: State, frame: Frame) -> None:
    """A module that a worker process imports, whose threads run the tasks: each has a current device of its own."""
    for site, function in list(registered(state, "thread-task")):
        call = Call(state.clone(), frame, site, "cudalint.task", {}, [], {})
        threaded(machine, call, site, function, [unknown("argument", site)], {}, None)


def arq_from_outside(machine: Machine, state: State, frame: Frame) -> None:
    """A module with a class that tells arq what its worker runs in one process: a startup, and then jobs."""
    scope = state.get(frame.scope)
    values = list(scope.variables.values()) if isinstance(scope, Scope) else []
    for value in values:
        told = _settings(state, value)
        if "functions" in told:
            _runs_jobs(machine, state.clone(), frame, told)


def _settings(state: State, value: Value) -> Mapping[str, Value]:
    """What a class says, of itself."""
    found = state.get(atom) if isinstance(atom := only(value), Ref) else None
    scope = state.get(found.scope) if isinstance(found, Class) else None
    return scope.variables if isinstance(scope, Scope) else {}


def _runs_jobs(machine: Machine, state: State, frame: Frame, told: Mapping[str, Value]) -> None:
    jobs = [job for job in machine.elements(told["functions"], state) if is_function(job, state)]
    context: Value = (state.new(("worker context", frame.module), Dict({}, exact=False)),)
    states = [state]
    startup = told.get("on_startup", NONE)
    if is_function(startup, state):
        states = [s for s, _ in machine.call_value(startup, [context], {}, state, frame, _place(startup, state, frame))]
    for ready in states:
        for job in jobs:
            machine.call_value(job, [context], {}, ready.clone(), frame, _place(job, ready, frame))


def _place(function: Value, state: State, frame: Frame) -> Site:
    """Where a function is defined that nothing of the program calls."""
    atom = only(function)
    defined = atom.function if isinstance(atom, Bound) else atom
    found = state.get(defined) if isinstance(defined, Ref) else None
    return Site(found.module, found.function.ordinal) if isinstance(found, Closure) else Site(frame.module, 0)


def forked_tests(machine: Machine, state: State, frame: Frame) -> None:
    """A module of tests that pytest collects before it forks a process for each of these."""
    for site, function in list(registered(state, "forked-test")):
        serving = Serving("pytest-forked", site, frame, certain=True)
        fork_workers(machine, state.clone(), serving, (task(function, []),))


def all_forked(machine: Machine, state: State, frame: Frame, names: dict[str, Value]) -> None:
    """The same of all tests of a module, where the settings of pytest say so."""
    for name, value in names.items():
        if name.startswith("test") and is_function(value, state):
            _fork_test(machine, state.clone(), frame, [value])
        elif _is_test_class(machine, name, value, state):
            _fork_methods(machine, state, frame, value)


def _fork_test(machine: Machine, state: State, frame: Frame, calls: list[Value]) -> None:
    """Fork a process for a test, which runs after what its class sets up; findings point at the test."""
    serving = Serving("pytest-forked", _place(calls[-1], state, frame), frame, certain=True)
    fork_workers(machine, state, serving, tuple(task(value, []) for value in calls))


def _is_test_class(machine: Machine, name: str, value: Value, state: State) -> bool:
    """Whether pytest collects a class: by its name, or as one of unittest."""
    atom = only(value)
    if not isinstance(atom, Ref) or not isinstance(state.get(atom), Class):
        return False
    return name.startswith("Test") or machine.library_base(atom, state) in _CASES


def _fork_methods(machine: Machine, state: State, frame: Frame, cls: Value) -> None:
    """Fork a process for each test of a class, with an object of its own."""
    tests = sorted(name for name in _settings(state, cls) if name.startswith("test"))
    if not tests:
        return
    for made, value in machine.call_value(cls, [], {}, state.clone(), frame, _place(cls, state, frame)):
        atom = only(value)
        found = made.get(atom) if isinstance(atom, Ref) else None
        if not isinstance(found, Instance) or not isinstance(atom, Ref):
            continue
        for name in tests:
            methods = (machine.user_method(found, method, made) for method in (*_SET_UP, name))
            calls: list[Value] = [(Bound(method, atom),) for method in methods if method is not None]
            _fork_test(machine, made.clone(), frame, calls)


def _forks(call: Call) -> bool:
    """Whether the worker was made with what its model says it takes to fork."""
    worker = library_object(call)
    wanted = call.spec.get("when")
    if not isinstance(wanted, Mapping):
        return True
    given = {} if worker is None else worker.fields
    return all(constant(given.get(str(name), ())) in values for name, values in wanted.items())
