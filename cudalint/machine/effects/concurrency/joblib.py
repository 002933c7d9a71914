"""joblib: fresh workers, forks or threads, as its backend says."""

from __future__ import annotations

from cudalint.machine import questions
from cudalint.machine.effects.concurrency.results import returned_values
from cudalint.machine.effects.concurrency.threads import pool_in_thread
from cudalint.machine.effects.receivers import library_object
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import BEGAN, Generator, LibraryObject, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.joining import kept_state
from cudalint.machine.launch import launching, pickling_errors, workers
from cudalint.machine.launch.arguments import by_number, count_of, number_of, task
from cudalint.machine.launch.crossing import Pickler
from cudalint.machine.launch.launching import Ended, Start, Way
from cudalint.machine.launch.tasks import one_task
from cudalint.machine.state import Method, State
from cudalint.machine.values import (
    NONE,
    TRUE,
    Const,
    Lib,
    Partial,
    Ref,
    Snapshot,
    Task,
    Unknown,
    Value,
    const,
    only,
    strings,
    unknown,
)
from cudalint.structs import replace

# Where the workers of a library's own call keep what the tasks return.
KEEPS = "keeps"
# As what results are given by a call that waits for all of them.
_LISTED = const("list")


def parallel(machine: Machine, call: Call) -> Results:
    """``Parallel(n_jobs=, backend=)``; None stands for what was configured around it."""
    return [(one.state, _parallel(one)) for one in by_number(machine, call, "n_jobs")]


def _parallel(call: Call) -> Value:
    given = call.get("n_jobs") or NONE
    fields: dict[str, Value] = {
        "<jobs>": given if given != NONE else call.state.process.joblib_jobs or NONE,
        "<backend>": call.get("backend") or call.state.process.joblib_backend or NONE,
        "<prefer>": call.get("prefer") or NONE,
        "<require>": call.get("require") or NONE,
        "<waits>": const(call.kwargs.get("return_as", _LISTED) == _LISTED),
    }
    made = LibraryObject("joblib.Parallel", fields, call.site)
    return (call.state.new(("parallel", call.site), made),)


def imported(machine: Machine, call: Call) -> Results:
    """``import joblib``: reads ``JOBLIB_START_METHOD``, once."""
    process = call.state.process
    chosen = tuple(strings(process.environ("JOBLIB_START_METHOD") or ()))
    if chosen and process.method("joblib").names is None:
        call.state.process = process.with_method("joblib", Method(chosen))
    return [(call.state, NONE)]


def parallel_backend(machine: Machine, call: Call) -> Results:
    """``with parallel_config(backend=...)``: the backend of what follows; ``kind = "every-core"``: on all of them."""
    state = call.state
    backend = call.get("backend") or _hinted(call)
    fields: dict[str, Value] = {"<before>": state.process.joblib_backend or NONE}
    fields["<jobs before>"] = state.process.joblib_jobs or NONE
    jobs = call.get("n_jobs") or (const(-1) if call.text("kind") == "every-core" else ())
    state.process = replace(
        state.process,
        joblib_backend=backend or state.process.joblib_backend,
        joblib_jobs=jobs or state.process.joblib_jobs,
    )
    return [(state, (state.new(("config", call.site), LibraryObject("joblib.parallel_config", fields, call.site)),))]


def _hinted(call: Call) -> Value:
    """The backend that a configuration hints at without naming one."""
    threads = call.kwargs.get("prefer") == const("threads") or call.kwargs.get("require") == const("sharedmem")
    return const("threading") if threads else ()


def parallel_backend_exit(machine: Machine, call: Call) -> Results:
    """Leaving it restores the backend."""
    obj = library_object(call)
    before = NONE if obj is None else obj.fields.get("<before>", NONE)
    jobs = NONE if obj is None else obj.fields.get("<jobs before>", NONE)
    call.state.process = replace(
        call.state.process,
        joblib_backend=() if before == NONE else before,
        joblib_jobs=() if jobs == NONE else jobs,
    )
    return [(call.state, NONE)]


def delayed(machine: Machine, call: Call) -> Results:
    """``delayed(f)``, for what its model names; with options alone it is a decorator that is still to be applied."""
    if not call.args and call.kwargs:
        return [(call.state, (Lib(call.path),))]
    function = call.args[0] if call.args else ()
    return [(call.state, (Partial((Lib(call.text("type", "joblib.task")),), (function,), ()),))]


def joblib_task(machine: Machine, call: Call) -> Results:
    """``delayed(f)(x)``: a task that does not run yet."""
    if not call.args:
        return [(call.state, unknown("task", call.site))]
    return [(call.state, (task(call.args[0], call.args[1:], call.kwargs),))]


def parallel_enter(machine: Machine, call: Call) -> Results:
    """``with Parallel(...) as parallel``: the workers start here and serve all calls inside."""
    obj = library_object(call)
    if obj is None or not isinstance(call.receiver, Ref):
        return [(call.state, unknown("parallel", call.site))]
    began: Value = (Snapshot(call.state.clone()),)
    call.state.store(call.receiver, replace(obj, fields={**obj.fields, BEGAN: began, "<entered>": TRUE}))
    return [(call.state, (call.receiver,))]


def parallel_exit(machine: Machine, call: Call) -> Results:
    """The workers end; another call would start new ones."""
    obj = library_object(call)
    if obj is not None and isinstance(call.receiver, Ref):
        kept = {k: v for k, v in obj.fields.items() if k not in (BEGAN, "<entered>")}
        call.state.store(call.receiver, replace(obj, fields=kept))
    return [(call.state, NONE)]


def _forked_from(call: Call, obj: LibraryObject) -> State | None:
    """The state in which the workers were forked: when the call began, or the ``with`` statement around it."""
    began = kept_state(obj.fields.get(BEGAN, NONE))
    if began is None:
        return None
    if "<entered>" not in obj.fields and isinstance(call.receiver, Ref):
        kept = {k: v for k, v in obj.fields.items() if k != BEGAN}
        call.state.store(call.receiver, replace(obj, fields=kept))
    return began


def _consumed(machine: Machine, call: Call) -> list[tuple[State, State | None]]:
    """The states after a generator of tasks ran, each with the state before it, from which the workers were forked."""
    atom = only(call.args[0]) if call.args else None
    found = call.state.get(atom) if isinstance(atom, Ref) else None
    if not isinstance(atom, Ref) or not isinstance(found, Generator):
        return [(call.state, None)]
    before = call.state.clone()
    return [(after, before) for after, _ in machine.consume(atom, found, call.state, call.frame)]


def parallel_call(machine: Machine, call: Call) -> Results:
    """``Parallel(...)(tasks)``: by fresh workers, forks or threads, as the backend says."""
    results: Results = []
    for state, before in _consumed(machine, call):
        results.extend(_run(machine, replace(call, state=state), before))
    return results


def _run(machine: Machine, call: Call, before: State | None) -> Results:
    state = call.state
    obj = library_object(call)
    values = machine.elements(call.args[0], state) if call.args else []
    tasks = [a for v in values for a in v if isinstance(a, Task)]
    if obj is None or not tasks:
        return [(state, unknown("parallel", call.site))]
    backend = _backend(obj, state)
    joined = one_task(machine, state, tasks, call.site)
    if backend is None or backend in ("threading", "sequential") or _is_one(obj.fields["<jobs>"], state):
        if backend == "threading":
            return pool_in_thread(machine, call, joined.function, list(joined.args), dict(joined.kwargs))
        return _here(machine, call, joined, backend)
    if state.process.daemon:  # which may start none, so that joblib says a warning and goes on by itself
        return _here(machine, call, joined, backend)
    one = len(values) == 1 and machine.exact_items(call.args[0], state) is not None
    many = count_of(obj.fields["<jobs>"]) and not one
    pickled: Value = (joined,)
    start = Start(
        launcher="joblib.Parallel",
        family="joblib",
        anchor=call.site,
        chain=machine.chain(state, call.site, f"Parallel hands work to {backend} workers"),
        many=many,
        reused=True,
        daemon=backend == "multiprocessing",
        failures={"body": "crash", "unpickle": "hang" if backend == "multiprocessing" else "crash"},
        tasks=(joined,),
        pickled=(pickled,),
        pickler=Pickler.GLOBALS if backend == "loky" else Pickler.NAMES,
        label="joblib worker",
        count=_jobs(obj.fields["<jobs>"]),
        made=obj.site,
        waits=obj.fields.get("<waits>") == TRUE,
    )
    library = "multiprocessing" if state.process.method("joblib").names is None else "joblib"
    context = None if strings(obj.fields["<backend>"]) else obj.fields["<backend>"]
    ways = [Way("loky", True)] if backend == "loky" else launching.ways(machine, state, library, context)
    lost = pickling_errors.unpicklable_task(state, joined.function) if backend == "multiprocessing" else None
    if lost is not None:
        ended = [Ended(pickling_errors.lambda_task(machine, state, start, way, lost), []) for way in ways]
    else:
        forked_from = _forked_from(call, obj) or before
        parents = [forked_from if way.method == "fork" else None for way in ways]
        pairs = zip(ways, parents, strict=True)
        ended = [workers.start(machine, state, call.frame, start, way, parent) for way, parent in pairs]
    if workers.raise_in_parent(machine, state, call.frame, ended):
        return []
    returned = [] if call.flag(KEEPS) else [child for e in ended for child in e.children]
    result = returned_values(machine, call, state, returned, "joblib", copies=True)
    made = Sequence("list", None, result or unknown("result", call.site))
    return [(state, (state.new(("results", call.site), made),))]


def _is_one(jobs: Value, state: State) -> bool:
    """Whether one job is wanted, also where the path knows it of a number that the code does not show.

    That there is at most one (``assumed.is_one``) is not enough: -1 are as many as there are processors.
    """
    if jobs in (const(1), NONE):
        return True
    number = only(jobs)
    asked = None if number is None else only(questions.comparison("==", number, Const(1)))
    return isinstance(asked, Unknown) and questions.answered(state.facts, asked.sym) is True


def _jobs(value: Value) -> int | None:
    """A number of jobs; -1 and its like depend on the machine."""
    number = number_of(value)
    return number if number is not None and number > 0 else None


def _backend(obj: LibraryObject, state: State) -> str | None:
    if strings(obj.fields["<require>"]) == ["sharedmem"]:
        return "threading"
    given = strings(obj.fields["<backend>"])
    if len(given) == 1:
        return given[0] if given[0] in _BACKENDS else None
    if obj.fields["<backend>"] != NONE:
        return "multiprocessing" if _is_context(obj.fields["<backend>"], state) else None
    if strings(obj.fields["<prefer>"]) == ["threads"]:
        return "threading"
    return "loky"


def _is_context(value: Value, state: State) -> bool:
    """Whether a backend is a context of multiprocessing, whose pools joblib takes then, or that module itself."""
    atom = only(value)
    found = state.get(atom) if isinstance(atom, Ref) else None
    return atom == Lib("multiprocessing") or (isinstance(found, LibraryObject) and "<method>" in found.fields)


_BACKENDS = frozenset({"loky", "multiprocessing", "threading", "sequential"})


def _here(machine: Machine, call: Call, joined: Task, backend: str | None) -> Results:
    if backend is None:
        return [(call.state, unknown("parallel", call.site))]
    results = machine.call_value(
        joined.function, list(joined.args), dict(joined.kwargs), call.state, call.frame, call.site
    )
    made: Results = []
    for state, value in results:
        ref = state.new(("results", call.site), Sequence("list", None, value))
        made.append((state, (ref,)))
    return made
