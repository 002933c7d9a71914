"""Threads: the same process with a current device of their own."""

from __future__ import annotations

from typing import cast

from cudalint.machine.effects.concurrency.results import RAISES
from cudalint.machine.effects.gpu import arrays, choices
from cudalint.machine.effects.receivers import Starter, initialised, library_object, own_run, starter
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import Instance, LibraryObject, Object, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.joining import merge
from cudalint.machine.launch.arguments import arguments, named_arguments, needed, task
from cudalint.machine.launch.forbidden import by_spawn
from cudalint.machine.launch.pickling import STARTED
from cudalint.machine.launch.workers import is_own
from cudalint.machine.state import Process, Running, State
from cudalint.machine.trace import Site
from cudalint.machine.values import FALSE, NONE, TRUE, Lib, Ref, Task, Value, const, constant, union, unknown
from cudalint.structs import replace

# The field of a thread that says that it was started, and not waited for.
RUNS = "<thread runs>"


def thread(machine: Machine, call: Call) -> Results:
    """``Thread(target=, args=)``."""
    fields: dict[str, Value] = {
        "_target": call.get(call.text("function", "target")) or NONE,
        "_args": call.get("args") or NONE,
        "_kwargs": call.get("kwargs") or NONE,
    }
    if name := call.get("name"):
        fields["name"] = name
    state = call.state
    if initialised(call, fields):
        return [(state, NONE)]
    kind = call.text("type", "threading.Thread")
    return [(state, (state.new(("thread", call.site), LibraryObject(kind, fields, call.site)),))]


def thread_start(machine: Machine, call: Call) -> Results:
    """``t.start()``: runs with a device of its own.

    ``kind = "later"``: after a while, so that what it does to its process comes after what follows here, or never.
    """
    state = call.state if call.text("kind") != "later" else call.state.clone()
    found = starter(call.receiver, state)
    if found is None:
        return [(state, NONE)]
    fields = found.fields
    function, args, kwargs = fields.get("_target", NONE), fields.get("_args"), fields.get("_kwargs")
    given = arguments(machine, state, args)
    run = own_run(machine, found, state)
    if run is not None:
        function, given = run, []
    if function == NONE:
        return [(state, NONE)]
    _marked(found, RUNS, TRUE, state)
    results = _alone(machine, replace(call, state=state), found.site, function, given, named_arguments(state, kwargs))
    return results if call.text("kind") != "later" else [(call.state, NONE)]


def _marked(found: Starter, name: str, value: Value, state: State) -> None:
    """Remember something of a thread."""
    match state.get(found.ref):
        case LibraryObject(fields=fields) as obj:
            state.store(found.ref, replace(obj, fields={**fields, name: value}))
        case Instance(attributes=attributes) as instance:
            state.store(found.ref, replace(instance, attributes={**attributes, name: value}))


def thread_join(machine: Machine, call: Call) -> Results:
    """``t.join()``: the thread has ended."""
    found = starter(call.receiver, call.state)
    if found is not None and RUNS in found.fields and call.get("timeout") in (None, NONE):
        _marked(found, RUNS, FALSE, call.state)
    return [(call.state, NONE)]


def thread_alive(machine: Machine, call: Call) -> Results:
    """``t.is_alive()``: not before it is started, nor once it was waited for."""
    found = starter(call.receiver, call.state)
    runs = None if found is None else found.fields.get(RUNS, FALSE)
    return [(call.state, FALSE if runs == FALSE else unknown("alive", call.site, call.receiver))]


def may_run(state: State) -> bool:
    """Whether a thread was started that nobody has waited for."""
    held = (found for found in state.objects() if isinstance(found, LibraryObject | Instance))
    fields = (found.fields if isinstance(found, LibraryObject) else found.attributes for found in held)
    return any(each.get(RUNS) == TRUE or STARTED in each for each in fields)


def thread_cancel(machine: Machine, call: Call) -> Results:
    """``timer.cancel()``: it calls nothing any more."""
    found = library_object(call)
    if found is not None and isinstance(call.receiver, Ref):
        call.state.store(call.receiver, replace(found, fields={**found.fields, "_target": NONE}))
    return [(call.state, NONE)]


def _alone(
    machine: Machine, call: Call, anchor: Site, function: Value, args: list[Value], kwargs: dict[str, Value]
) -> Results:
    """Run a thread that nothing waits for: what ends it ends nothing else."""
    before, raised = call.state.process, len(call.frame.raises)
    results = threaded(machine, call, anchor, function, args, kwargs, None)
    # What ends the program does so when this thread has gone on.
    for after, ended in call.frame.raises[raised:]:
        if ended.outcome is not None:
            machine.emit(ended.outcome)
        if not after.process.held_up:
            results.append((_back(after, before), NONE))
    del call.frame.raises[raised:]
    return results


def _back(after: State, before: Process) -> State:
    """The state in which the thread goes on that started another."""
    after.process = replace(
        after.process,
        thread=before.thread,
        in_thread=before.in_thread,
        thread_start=before.thread_start,
        held_up=before.held_up,
    )
    return after


# -- threads that wait for another -------------------------------------------------------------------------------------

# The field of a queue or an event that holds what waits for it, and the argument that says where that was started.
_WAITING = "<waiting>"
_STARTED_AT = "<started at>"


def hold_up(machine: Machine, call: Call) -> None:
    """A thread waits for what nobody has given yet: what follows is looked at, and happens when somebody does.

    A thread that has done something to its process before is not run again: it goes on at once.
    """
    state, ref = call.state, call.receiver
    thread = machine.threads[-1] if machine.threads else None
    if thread is None or not isinstance(ref, Ref) or not _has_done_nothing(thread.before, state):
        return
    found = state.get(ref)
    if isinstance(found, LibraryObject):
        held = union([found.fields.get(_WAITING, ()), (thread.work,)])
        state.store(ref, replace(found, fields={**found.fields, _WAITING: held}))
        thread.leave(state)
        state.process = replace(state.process, held_up=True)


def _has_done_nothing(before: State, now: State) -> bool:
    """Whether a process is as it was, and has started nothing since."""
    if now.process != before.process:
        return False
    known = {id(found) for found in before.objects()}
    return not any(_starts(found) for found in now.objects() if id(found) not in known)


def _starts(found: Object) -> bool:
    match found:
        case LibraryObject(fields=fields) | Instance(attributes=fields):
            return STARTED in fields or "<snapshot>" in fields
    return False


def is_awaited(call: Call) -> bool:
    """Whether a thread waits for what a call is about."""
    obj = library_object(call)
    return obj is not None and _WAITING in obj.fields


def let_go_on(machine: Machine, call: Call) -> list[State]:
    """Something is given: the threads of this process that wait for it go on."""
    states, obj = [call.state], library_object(call)
    for atom in () if obj is None else obj.fields.get(_WAITING, ()):
        if not isinstance(atom, Task):
            continue
        kwargs = dict(atom.kwargs)
        at, identity = cast("tuple[Site, tuple[str, ...]]", constant(kwargs.pop(_STARTED_AT)))
        if identity == call.state.process.identity:
            again = (replace(call, state=state) for state in states)
            states = [
                s for c in again for s, _ in _alone(machine, c, at, atom.function, [*atom.args], kwargs)
            ] or states
    return states


def pool_in_thread(
    machine: Machine, call: Call, function: Value, args: list[Value], kwargs: dict[str, Value]
) -> Results:
    """The work of a thread pool: it runs in this process, with a current device of its own."""
    obj = library_object(call)
    initializer = None if obj is None else initializer_of(machine, obj, call.state)
    before, raised = call.state.process, len(call.frame.raises)
    results = threaded(machine, call, call.site, function, args, kwargs, initializer)
    name = call.path.rpartition(".")[2]
    made: Results = []
    if name in ("submit", "apply_async"):
        kept = [(after, ended) for after, ended in call.frame.raises[raised:] if is_own(ended)]
        call.frame.raises[raised:] = [pair for pair in call.frame.raises[raised:] if not is_own(pair[1])]
        for after, ended in kept:
            # It comes where its result is asked for.
            fields: dict[str, Value] = {RAISES: const(ended.names)}
            future = LibraryObject("cudalint.future", fields, call.site)
            made.append((_back(after, before), (after.new(("future", call.site), future),)))
    for state, value in results:
        if name in ("submit", "apply_async"):
            future = LibraryObject("cudalint.future", {"<result>": value, RAISES: NONE}, call.site)
            made.append((state, (state.new(("future", call.site), future),)))
        elif name == "apply":
            made.append((state, value))
        else:
            made.append((state, (state.new(("results", call.site), Sequence("list", None, value)),)))
    return made


def each_in_thread(machine: Machine, call: Call, function: Value, items: list[Value]) -> Results:
    """``executor.map(f, items)`` of a thread pool: the results, one after the other."""
    obj = library_object(call)
    initializer = None if obj is None else initializer_of(machine, obj, call.state)
    paths: list[tuple[State, tuple[Value, ...]]] = [(call.state, ())]
    for item in items:
        paths = [
            (after, (*made, value))
            for state, made in paths
            for after, value in threaded(
                machine, replace(call, state=state), call.site, function, [item], {}, initializer
            )
        ]
    return [(state, (state.new(("results", call.site), Sequence("list", made)),)) for state, made in paths]


def trials(machine: Machine, call: Call) -> Results:
    """``study.optimize(objective, n_jobs=)``: calls it again and again, in threads where there are several jobs.

    With ``kind = "always"`` in a thread for each, with what it takes; with ``kind = "served"`` likewise, by a server:
    a spawned child that imports main serves nothing. Of a list each function is called so.
    """
    kind = call.text("kind")
    if kind == "served" and machine.is_import_of_main(call.state) and by_spawn(call.state):
        return [(call.state, arrays.returned(machine, call, call.state))]
    given = choices.argument(call, call.text("function")) or ()
    jobs = choices.argument(call, call.text("workers")) if call.text("workers") else None
    threads_only = kind in ("always", "served")
    alone = not threads_only and (jobs is None or jobs == const(1))
    states = [call.state]
    for function in machine.elements(given, call.state) or [given]:
        many = needed(function, call.state) if threads_only else 1
        trial = [unknown("trial", call.site, number) for number in range(many)]
        for _ in range(2):
            done: list[State] = []
            for state in states:
                current = replace(call, state=state)
                results = (
                    machine.call_value(function, trial, {}, state, call.frame, call.site)
                    if alone
                    else threaded(machine, current, call.site, _TO_ITS_END, [function, *trial], {}, None)
                )
                done.extend(after for after, _ in results)
            states = merge(done)
    return [(state, arrays.returned(machine, call, state)) for state in states]


# A function is called, and what it yields is gone through.
_TO_ITS_END: Value = (Lib("cudalint.generate"),)


def threaded(
    machine: Machine,
    call: Call,
    anchor: Site,
    function: Value,
    args: list[Value],
    kwargs: dict[str, Value],
    initializer: Task | None,
) -> Results:
    """Run a call in a thread: with a current device of its own, which starts as GPU 0."""
    state = call.state
    before = state.process
    in_new_thread(machine, state, anchor, call.site)
    place = (_STARTED_AT, const((anchor, before.identity)))
    thread = Running(state.clone(), Task(function, tuple(args), (place, *kwargs.items())))
    machine.threads.append(thread)
    states = [state]
    if initializer is not None:
        states = [
            s
            for s, _ in machine.call_value(
                initializer.function, list(initializer.args), dict(initializer.kwargs), state, call.frame, call.site
            )
        ]
    results: Results = []
    raised = len(call.frame.raises)
    # Whatever it raises, the process goes on.
    call.frame.tries += 1
    for current in states:
        results.extend(machine.call_value(function, args, kwargs, current, call.frame, call.site))
    call.frame.tries -= 1
    # What a thread raises ends the thread.
    machine.record.outlived.update(r.launch for _, r in call.frame.raises[raised:] if r.launch is not None)
    machine.threads.pop()
    results = [(after, value) for after, value in results if not after.process.held_up]
    results += [(waiting, unknown("thread", call.site)) for waiting in merge(thread.left)]
    for after, _ in results:
        _back(after, before)
    return results


def in_new_thread(machine: Machine, state: State, anchor: Site, site: Site | None = None) -> State:
    """A process goes on in a thread that ``site`` starts, of what ``anchor`` names."""
    before = state.process
    name = f"{before.thread}/{anchor.module}:{anchor.ordinal}"
    chain = machine.chain(state, site or anchor, "starts a thread")
    kept = tuple((t, s) for t, s in before.selected if t != name)
    state.process = replace(
        before, thread=name, selected=kept, in_thread=True, thread_start=(anchor, chain), held_up=False
    )
    return state


def initializer_of(machine: Machine, obj: LibraryObject, state: State) -> Task | None:
    """The call that each worker of a pool makes first."""
    value = obj.fields.get("<initializer>", NONE)
    if value == NONE:
        return None
    return task(value, arguments(machine, state, obj.fields.get("<initargs>")))
