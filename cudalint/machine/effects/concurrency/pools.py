"""Pools and executors: workers that serve tasks."""

from __future__ import annotations

from cudalint.ir.walk import mentions
from cudalint.machine import operators
from cudalint.machine.assumed import is_one
from cudalint.machine.effects.concurrency.results import CALLBACK, RAISES, called_back, returned_values
from cudalint.machine.effects.concurrency.threads import each_in_thread, initializer_of, pool_in_thread
from cudalint.machine.effects.gpu import choices
from cudalint.machine.effects.receivers import CONTEXTS, context_of, keep_self, library_object, library_of, pickler_of
from cudalint.machine.effects.servers.handlers import is_function
from cudalint.machine.frame import Call, Raised, Results
from cudalint.machine.heap import NOTHING_LEFT, Class, Closure, Dict, Instance, LibraryObject, Scope, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.joining import kept_state
from cudalint.machine.launch import launching, lending, pickling_errors, workers
from cudalint.machine.launch.arguments import (
    arguments,
    by_number,
    count_of,
    failures,
    is_length,
    named_arguments,
    number_of,
    task,
)
from cudalint.machine.launch.crossing import Pickler
from cudalint.machine.launch.forbidden import bootstrapping, daemon_child
from cudalint.machine.launch.launching import Ended, Start
from cudalint.machine.launch.tasks import element_of, items_of, vary
from cudalint.machine.outcome import Kind
from cudalint.machine.state import State
from cudalint.machine.values import (
    FALSE,
    NONE,
    TRUE,
    Atom,
    Bound,
    Const,
    Lib,
    Partial,
    Ref,
    Snapshot,
    Task,
    Value,
    const,
    integer,
    only,
    strings,
    union,
    unknown,
)
from cudalint.structs import replace


def pool(machine: Machine, call: Call) -> Results:
    """``Pool(n, initializer, initargs)``: forks here, runs initializers here.

    ``kind = "remembers"``: of an object that has one, and what its model says of its arguments counts.
    """
    if choices.idle(machine, call):
        return [(call.state, unknown("pool", call.site))]
    calls = by_number(machine, call, call.text("workers", "processes"))
    return [result for one in calls for result in _pool(machine, one)]


def _pool(machine: Machine, call: Call) -> Results:
    state = call.state
    if bootstrapping(machine, call, "Pool()") or daemon_child(machine, call, "Pool()"):
        return machine.fail(state, call.frame, Raised(None, ("RuntimeError", "AssertionError")))
    library = library_of(call)
    context = context_of(call)
    if context is None:
        launching.fix_default(machine, state, library, call.site, "Pool()")
    else:
        launching.fix_by_fresh(machine, state, library, context, call.site)
    workers_ = call.get(call.text("workers", "processes"))
    fields: dict[str, Value] = {
        **(_remembered(call) if call.text("kind") == "remembers" else {}),
        "<library>": const(library),
        "<context>": context or NONE,
        "<many>": const(_are_many(workers_, state)),
        "<reused>": const(call.get("maxtasksperchild") != const(1)),
        "<ends>": const(call.get("maxtasksperchild") not in (None, NONE)),
        "<initializer>": call.get("initializer") or NONE,
        "<initargs>": call.get("initargs") or NONE,
        "<snapshot>": (Snapshot(state.clone()),),
        "<count>": workers_ or NONE,
        "<daemon>": const(call.flag("daemon", True) and not _makes_others(machine, context, state)),
    }
    ref = state.new(("pool", call.site), LibraryObject(call.text("type", "multiprocessing.Pool"), fields, call.site))
    if fields["<initializer>"] != NONE:
        before = len(machine.record.outcomes)
        ended = _initialize(machine, call, state, fields, library)
        if any(o.kind in (Kind.SHARED_GPU, Kind.MEMORY_NOT_SHARED) for o in machine.record.outcomes[before:]):
            state.store(ref, LibraryObject(call.text("type"), {**fields, "<gpu shared>": TRUE}, call.site))
        if ended and all(e.failed is not None and e.failed.certain for e in ended):
            return []
    return [(state, (ref,))]


def _are_many(workers_: Value | None, state: State) -> bool:
    """Whether there may be several workers, and this path did not find that there is one: ``if processes > 1: ...``."""
    return count_of(workers_) and (workers_ is None or not is_one(workers_, state))


def _remembered(call: Call) -> dict[str, Value]:
    """What an object that has a pool of its own was made of, by the names of its parameters."""
    return {**call.kwargs, **{name: value for name in call.params if (value := call.get(name)) is not None}}


def _makes_others(machine: Machine, context: Value | None, state: State) -> bool:
    """Whether a context makes processes of a class of the program that are no daemons when they are told to be."""
    kind = _process_class(machine, context or (), state)
    order = machine.mro(kind, state) if isinstance(kind, Ref) else ()
    scopes = (state.get(entry.scope) for entry in order if isinstance(entry, Class))
    return any(isinstance(scope, Scope) and "daemon" in scope.variables for scope in scopes)


def _process_class(machine: Machine, owner: Value, state: State) -> Atom | None:
    """What a class of the program, of a context or of a pool, has for making processes."""
    found = state.get(atom) if isinstance(atom := only(owner), Ref) else None
    return machine.user_method(found, "Process", state) if isinstance(found, Instance) else None


def _initialize(machine: Machine, call: Call, state: State, fields: dict[str, Value], library: str) -> list[Ended]:
    ended: list[Ended] = []
    chain = machine.chain(state, call.site, "starts the workers")
    for way in launching.ways(machine, state, library, fields["<context>"]):
        first = task(fields["<initializer>"], arguments(machine, state, fields["<initargs>"]))
        start = Start(
            launcher="Pool(initializer=...)",
            family="pool",
            anchor=call.site,
            chain=chain,
            many=fields["<many>"] == TRUE,
            reused=False,
            daemon=fields["<daemon>"] == TRUE,
            failures={"initializer": "hang", "unpickle": "crash", "body": "hang", **failures(call)},
            library=library,
            initializer=first,
            initializer_anchor=call.site,
            inherited=(fields["<initializer>"], fields["<initargs>"]),
            pickler=pickler_of(machine, library),
            label="pool worker",
            count=number_of(fields["<count>"]),
            context=fields["<context>"],
        )
        ended.append(workers.start(machine, state, call.frame, start, way))
    return ended


def pool_once(machine: Machine, call: Call) -> Results:
    """``process_map(f, xs, max_workers=)``: an executor for one map, of processes."""
    if choices.idle(machine, call):
        return [(call.state, unknown("pool", call.site))]
    results: Results = []
    for state, (made,) in executor(machine, call):
        its_own = state.get(made) if isinstance(made, Ref) else None
        if isinstance(made, Ref) and isinstance(its_own, LibraryObject):
            state.store(made, replace(its_own, type=call.path))
        results.extend(pool_map(machine, replace(call, state=state, receiver=made)))
    return results


def _given(call: Call) -> Value:
    """What a call goes through: one task for each item."""
    return call.get(call.text("iterable", "iterable")) or ()


def pool_map(machine: Machine, call: Call) -> Results:
    """``pool.map(f, xs)`` and its like: each item is one task."""
    function = choices.argument(call, call.text("function", "func")) or call.get("fn") or ()
    state = call.state
    name = call.path.rpartition(".")[2]
    given = call.args[1:] if call.text("iterables") else [_given(call)]
    if not call.text("counted") and any(_is_empty(machine, value, state) for value in given):
        return _nothing_done(call, name)
    each = _each_item(machine, call, name)
    if each is not None:
        return each_in_thread(machine, call, function, each)
    if call.flag("star"):
        rows = _given(call)
        is_whole = machine.exact_items(rows, state) is not None
        items = vary(machine, state, items_of(machine, call, rows), call.site, is_whole=is_whole)
        args = arguments(machine, state, items)
    elif call.text("counted"):
        args = [element_of(machine, call, _uncounted(call.get(call.text("counted")) or (), state), 0)]
    elif call.text("iterables"):
        args = [element_of(machine, call, v, i) for i, v in enumerate(call.args[1:])]
    else:
        args = [element_of(machine, call, _given(call), 0)]
    plain = not call.flag("star") and not call.text("counted")
    return _pool_run(machine, call, name, function, args, {}, _all_items(machine, given, state) if plain else ())


def _all_items(machine: Machine, given: list[Value], state: State) -> tuple[Value, ...]:
    """All that is sent of lists that are known whole, as far as each has an item; nothing of others."""
    rows = [machine.exact_items(value, state) for value in given]
    return tuple(item for items in zip(*(row or () for row in rows), strict=False) for item in items)


def _each_item(machine: Machine, call: Call, name: str) -> list[Value] | None:
    """The few items that threads of this process map a function over, which are known one by one; None of others."""
    given = call.args[1:] if call.text("iterables") else [_given(call)]
    if call.text("family") != "thread" or call.flag("star") or len(given) != 1 or name.endswith("_async"):
        return None
    exact = machine.exact_items(given[0], call.state)
    is_few = exact is not None and 0 < len(exact) <= _MOST_THREADS
    return exact if is_few and all(isinstance(only(item), Const) for item in exact or ()) else None


# So many calls in threads are made one by one.
_MOST_THREADS = 4
_WRITTEN_DOWN = frozenset({"dict", "display", "range", NOTHING_LEFT})


def _is_empty(machine: Machine, value: Value, state: State) -> bool:
    """Whether there is nothing to do: a list that is written down where it is used, and to which no loop adds anything,
    or of which a test that is known left nothing.

    One that was not made by the call that runs, or is made of others, may have been filled by other callers.
    """
    match only(value):
        case Ref(address=((str(made), *_), _, _)) as ref if made in _WRITTEN_DOWN:
            is_own = ref.address in state.journal.fresh and not machine.grows_on(ref)
            found = state.get(ref)
            is_bare = isinstance(found, Dict) and found.exact and not found.items and not found.element
            return is_own and (is_bare or machine.exact_items(value, state) == [])
    return False


def _nothing_done(call: Call, name: str) -> Results:
    """No worker is given anything, and none is started for it."""
    state = call.state
    made: Value = (state.new(("results", call.site), Sequence("list", ())),)
    if not name.endswith("_async"):
        return [(state, made)]
    future = LibraryObject("cudalint.future", {"<result>": made}, call.site)
    return [(state, (state.new(("future", call.site), future),))]


def _uncounted(tasks: Value, state: State) -> Value:
    """The tasks alone, where they are given with their number: ``((f(x) for x in xs), len(xs))``."""
    match state.get(atom) if isinstance(atom := only(tasks), Ref) else None:
        case Sequence(kind="tuple", items=(rows, _)):
            return rows
    return tasks


def handed_to_pool(machine: Machine, call: Call) -> Results:
    """``EnsembleSampler(n, m, f, pool=pool)``: a library that maps functions over a pool that it is given.

    ``kind = "once"``: it hands each to it as a task of its own, ``scheduler.add_job(f)``.
    """
    function = _part_of_argument(machine, call, call.text("function")) or ()
    given = _part_of_argument(machine, call, call.text("key")) or NONE
    if given == NONE:
        return [(call.state, unknown("mapped", call.site))]
    states = [call.state]
    hand = handed_once if call.text("kind") == "once" else mapped_over
    # What is a coroutine runs in the loop of this process.
    for one in (f for f in machine.elements(function, call.state) or [function] if not _is_async(f, call.state)):
        states = [after for state in states for after in hand(machine, call, state, given, one)]
    return [(state, unknown("mapped", call.site)) for state in states]


def _part_of_argument(machine: Machine, call: Call, path: str) -> Value | None:
    """What a model names, also where it is an attribute or a method of an object of the program."""
    found = choices.argument(call, path)
    holder, *names = path.split(".")
    if found is not None or not names:
        return found
    value = call.get(holder)
    if not isinstance(call.state.get(atom) if isinstance(atom := only(value or ()), Ref) else None, Instance):
        return None
    for name in names:
        found_here = machine.attribute(value, name, call.state, call.frame, call.site) if value else []
        value = found_here[0][1] if len(found_here) == 1 else None
    return value


def _is_async(function: Value, state: State) -> bool:
    found = state.get(atom) if isinstance(atom := only(function), Ref) else None
    return isinstance(found, Closure) and found.function.is_async


def mapped_over(machine: Machine, call: Call, state: State, pool: Value, function: Value) -> list[State]:
    """The states after a library mapped a function over a pool that it was given."""
    mapped: Results = []
    is_method = any(isinstance(atom, Bound | Partial) for atom in pool)
    methods = [(state, pool)] if is_method else machine.attribute(pool, "map", state, call.frame, call.site)
    for current, method in methods:
        items = Sequence("list", None, element=unknown("item", call.site))
        listed: Value = (current.new(("items", call.site), items),)
        mapped.extend(machine.call_value(method, [function, listed], {}, current, call.frame, call.site))
    return [after for after, _ in mapped]


def handed_once(machine: Machine, call: Call, state: State, pool: Value, function: Value) -> list[State]:
    """The states after a library gave a pool a function as a task."""
    done: Results = []
    for current, method in machine.attribute(pool, "submit", state, call.frame, call.site):
        args = arguments(machine, current, call.get("args"))
        done.extend(machine.call_value(method, [function, *args], {}, current, call.frame, call.site))
    return [after for after, _ in done]


def pool_apply(machine: Machine, call: Call) -> Results:
    """``pool.apply(f, args, kwds)`` and ``executor.submit(f, *args)``."""
    name = call.path.rpartition(".")[2]
    if call.text("args"):
        function = call.get(call.text("function", "func")) or ()
        args = arguments(machine, call.state, call.get(call.text("args")))
        kwargs = named_arguments(call.state, call.get(call.text("kwargs", "kwds")))
    else:
        function = call.args[0] if call.args else call.kwargs.get("fn", ())
        args = list(call.args[2 if call.text("kind") == "after-timeout" else 1 :])
        kwargs = {k: v for k, v in call.kwargs.items() if k != "fn"}
    return _pool_run(machine, call, name, function, args, kwargs)


# In how many chunks a pool divides what it maps over, for each worker, where no size is given.
_CHUNKS = 4


def _takes_several(call: Call, obj: LibraryObject, name: str) -> bool | None:
    """Whether a worker that serves one task gets several: of a pool that is one chunk of what is mapped over.

    None where that depends on how much there is.
    """
    if call.text("family", "pool") != "pool" or "map" not in name:
        return False
    given = call.get("chunksize")
    if given is not None or name.startswith("imap"):
        return (integer(given or ()) or 1) > 1
    workers, length = number_of(obj.fields.get("<count>")), _length_of(_given(call), call.state)
    return None if workers is None or length is None else length > _CHUNKS * workers


def _length_of(value: Value, state: State) -> int | None:
    """How many things there are in a list; None where that is not known."""
    atom = only(value)
    found = state.get(atom) if isinstance(atom, Ref) else None
    if not isinstance(found, Sequence) or found.items is None or found.open:
        return None
    return len(found.items)


# What a pool was made with that its workers hand to each function they run, before the items.
_LEADING = "<leading {}>"


def _leading_fields(call: Call) -> dict[str, Value]:
    """Of the arguments that a model names, in their order: a switch stands for what the library makes."""
    given = [(name, call.get(name)) for name in call.texts("leading")]
    told = [(name, value) for name, value in given if value is not None and value not in (NONE, FALSE)]
    values = [unknown("leading", call.site, name) if value == TRUE else value for name, value in told]
    return {_LEADING.format(i): value for i, value in enumerate(values)}


def _leading(obj: LibraryObject) -> list[Value]:
    names = (_LEADING.format(i) for i in range(len(obj.fields)))
    return [value for name in names if (value := obj.fields.get(name)) is not None]


def _spread(machine: Machine, args: list[Value], state: State) -> list[Value]:
    """Items that are rows, as the arguments that such a pool makes of them."""
    rows = [machine.exact_items(arg, state) for arg in args]
    return [value for arg, row in zip(args, rows, strict=True) for value in ([arg] if row is None else row)]


_METHODS = {"uimap": "imap_unordered", "amap": "map_async", "pipe": "apply", "apipe": "apply_async"}


def _pool_run(
    machine: Machine,
    call: Call,
    name: str,
    function: Value,
    args: list[Value],
    kwargs: dict[str, Value],
    sent: tuple[Value, ...] = (),
) -> Results:
    """Have workers run a function; ``sent`` are all items of which its argument is any, where these are known."""
    state = call.state
    obj = library_object(call)
    if obj is None:
        return [(state, unknown("pool", call.site))]
    name = _METHODS.get(name, name)
    family = call.text("family", "pool")
    leading = _leading(obj)
    if leading:
        args = [*leading, *_spread(machine, args, state)]
    # Some libraries take threads for a start method.
    if family == "thread" or obj.fields.get("<context>") == const("threading"):
        return pool_in_thread(machine, call, function, args, kwargs)
    if bootstrapping(machine, call, f".{name}()") or (
        family == "executor" and daemon_child(machine, call, f".{name}()")
    ):
        return machine.fail(state, call.frame, Raised(None, ("RuntimeError", "AssertionError")))
    parent = _parent_of_pool(machine, call, obj, family)
    start = _start_for(machine, call, obj, name, task(function, args, kwargs), sent, parent)
    if family == "executor":
        launching.fix_by_fresh(machine, state, start.library, start.context, call.site)
    before = len(machine.record.outcomes)
    ways = launching.ways(machine, parent or state, start.library, start.context)
    ended = [_started_by(machine, call, obj, start, way, parent) for way in ways]
    lending.lent_since(machine, state, before, call.site, obj.site)
    return _pool_results(machine, call, state, start, name, ended)


def _start_for(
    machine: Machine,
    call: Call,
    obj: LibraryObject,
    name: str,
    work: Task,
    sent: tuple[Value, ...],
    parent: State | None,
) -> Start:
    """How workers start for a task that a method of a pool, or of an executor, hands over."""
    state = call.state
    family = call.text("family", "pool")
    library = library_of(call)
    single = name in ("submit", "apply", "apply_async")
    several = obj.fields.get("<many>") == TRUE
    serves_one = obj.fields.get("<reused>", TRUE) != TRUE
    several_at_once = _takes_several(call, obj, name) if serves_one else False
    reused = not serves_one or several_at_once is not False
    ends = obj.fields.get("<ends>") == TRUE
    earlier = _earlier_tasks(call, state, work) if single and reused else ()
    given = *(sent or work.args), *(value for _, value in work.kwargs)
    is_inherited = _has_it_by_being_forked(call)
    return Start(
        launcher=_launcher(obj, name),
        family=family,
        anchor=call.site,
        chain=machine.chain(state, call.site, f".{name}() hands work to the workers"),
        many=several and not single and not _single_task(call, machine, state),
        reused=reused,
        daemon=(family == "pool" or call.flag("daemon")) and obj.fields.get("<daemon>") != FALSE,
        failures=_failures_of(call, family),
        library=library,
        initializer=initializer_of(machine, obj, parent or state),
        initializer_anchor=obj.site,
        tasks=(*earlier, work),
        rounds=1 if single else 2,
        pickled=given if is_inherited else (work.function, *given),
        inherited=(obj.fields.get("<initargs>", NONE), *((work.function,) if is_inherited else ())),
        label="pool worker" if family == "pool" else "worker",
        pickler=Pickler.GLOBALS if call.text("pickle") == _TOLD else pickler_of(machine, library),
        shares="<gpu shared>" not in obj.fields,
        adds_up=single and several,
        count=number_of(obj.fields.get("<count>")),
        each=is_length(obj.fields.get("<count>")) or several_at_once is None,
        made=obj.site,
        renewed=ends and family == "pool",
        ends=ends,
        context=obj.fields.get("<context>", NONE),
        keyword=next(iter(strings(obj.fields.get("<keyword>", NONE))), ""),
        place=number_of(obj.fields.get("<place>")) or 0,
        waits=call.path == obj.type or (family == "pool" and name not in _LATER),
        dropped=call.statement,
        listens=_asks_for_failures(machine, call),
    )


def _failures_of(call: Call, family: str) -> dict[str, str]:
    """What becomes of a run when a worker fails: a pool starts others for ever, an executor says so."""
    at_start = "hang" if family == "pool" else "crash"
    return {"body": "crash", "unpickle": at_start, "initializer": at_start, **failures(call)}


def _has_it_by_being_forked(call: Call) -> bool:
    """Whether workers that start for a call have its function by being forked, or find it by its name."""
    return call.text("pickle") in ("fresh", _TOLD)


# What a library says of a function that its workers look up among those that were registered, here and there.
_TOLD = "told"


def _started_by(
    machine: Machine, call: Call, obj: LibraryObject, start: Start, way: launching.Way, parent: State | None
) -> Ended:
    """How the workers end that start in one of the ways in which they may."""
    state = call.state
    work = start.tasks[-1]
    by_name = start.pickler is Pickler.NAMES and machine.options.uses_gpu
    is_there = call.text("pickle") == _TOLD or (_has_it_by_being_forked(call) and way.method == "fork")
    travels = by_name and not is_there
    lost = pickling_errors.unpicklable_task(state, work.function) if travels else None
    if lost is not None:
        return Ended(pickling_errors.lambda_task(machine, state, start, way, lost), [])
    ended = workers.start(machine, state, call.frame, start, way, parent)
    fork_state = parent.process if parent is not None else state.process
    if start.renewed and way.method == "fork" and fork_state.driver is None and ended.failed is None:
        for later in _once_called_back(machine, call, obj, state):
            ended = workers.start(machine, later, call.frame, start, way)
    return ended


# What asks how tasks ended, of which something else than a result may come.
_ASKING = frozenset({"as_completed", "exception", "successful"})


def _asks_for_failures(machine: Machine, call: Call) -> bool:
    """Whether anything of this program waits for what tasks raise."""
    if call.frame.tries > 0 or call.get("error_callback") not in (None, NONE):
        return True
    module = machine.program.module(call.frame.module)
    return module is not None and mentions(module, _ASKING)


# Methods of pools that give what they promise later.
_LATER = frozenset({"apply_async", "imap", "imap_unordered", "map_async", "starmap_async"})


def workers_end(machine: Machine, call: Call) -> Results:
    """``pool.join()``, ``executor.shutdown()``, the end of ``with executor``: all tasks are done.

    ``kind = "killed"``: the workers are ended, and nobody is told of what they were at.
    """
    found = library_object(call)
    if found is None or call.get("wait") == FALSE:
        return [(call.state, NONE)]
    lending.awaited(machine, call.state, found.site)
    if call.text("kind") == "killed":
        return [(call.state, NONE)]
    states = [call.state]
    for future in found.fields.get(_PROMISED, ()):
        states = [after for state in states for after in called_back(machine, call, future, state)]
    return [(state, NONE) for state in states]


# What a pool gave for tasks with callbacks.
_PROMISED = "<promised>"


def _once_called_back(machine: Machine, call: Call, obj: LibraryObject, state: State) -> list[State]:
    """What this process is when a worker is replaced: results of earlier tasks have come, and callbacks with them."""
    states = [state]
    for future in obj.fields.get(_PROMISED, ()):
        states = [after for one in states for after in called_back(machine, call, future, one.clone())]
    return states


def _promise(call: Call, state: State, result: Value, raises: tuple[str, ...] | None = ()) -> Value:
    """What stands for a result that is there later; a pool also keeps it where something is to be called with it.

    ``raises``: by which names the exception is known that comes instead; None where none does, empty if nobody knows.
    """
    is_told = call.text("family", "pool") == "pool" and call.path.endswith("_async")
    callback = (call.get("error_callback" if raises else "callback") if is_told else None) or NONE
    fields: dict[str, Value] = {"<result>": result, **({} if raises == () else {RAISES: const(raises)})}
    if callback == NONE:
        return (state.new(("future", call.site), LibraryObject("cudalint.future", fields, call.site)),)
    future = LibraryObject("cudalint.future", {**fields, CALLBACK: callback}, call.site)
    made: Value = (state.new(("future", call.site), future),)
    pool = state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    if isinstance(pool, LibraryObject) and isinstance(call.receiver, Ref):
        promised = union([pool.fields.get(_PROMISED, ()), made])
        state.store(call.receiver, replace(pool, fields={**pool.fields, _PROMISED: promised}))
    return made


def _launcher(obj: LibraryObject, method: str) -> str:
    """``Pool.map``; of a function that makes its own executor only its own name."""
    kind = obj.type.rpartition(".")[2]
    return method if kind == method else f"{kind}.{method}"


def _earlier_tasks(call: Call, state: State, work: Task) -> tuple[Task, ...]:
    """The task that these workers were given before: a worker may serve both."""
    obj = library_object(call)
    if obj is None or not isinstance(call.receiver, Ref):
        return ()
    before = only(obj.fields.get("<task>", NONE))
    state.store(call.receiver, replace(obj, fields={**obj.fields, "<task>": (work,)}))
    return (before,) if isinstance(before, Task) else ()


def _single_task(call: Call, machine: Machine, state: State) -> bool:
    exact = machine.exact_items(_given(call), state)
    return exact is not None and len(exact) == 1


def _parent_of_pool(machine: Machine, call: Call, obj: LibraryObject, family: str) -> State | None:
    """The state that the workers forked from: a pool's when it was made, an executor's at its first task."""
    kept = kept_state(obj.fields.get("<snapshot>", NONE))
    if kept is not None:
        return kept
    if family == "executor" and isinstance(call.receiver, Ref):
        snapshot: Value = (Snapshot(call.state.clone()),)
        obj = library_object(call) or obj
        call.state.store(call.receiver, replace(obj, fields={**obj.fields, "<snapshot>": snapshot}))
    return None


def _pool_results(machine: Machine, call: Call, state: State, start: Start, name: str, ended: list[Ended]) -> Results:
    if workers.raise_in_parent(machine, state, call.frame, ended):
        return []
    told, is_sure = workers.told_of_tasks(state, ended)
    if told and name not in _LATER | {"submit"} and call.frame.tries:
        for after, raised in told:
            machine.fail(after, call.frame, raised)
        if is_sure:
            return []
    children = [child for e in ended for child in e.children]
    result = returned_values(machine, call, state, children, start.family, start.copies)
    element = result or unknown("result", call.site)
    if name in ("apply", "apply_async", "submit"):
        if name == "apply":
            return [(state, element)]
        names = told[0][1].names if is_sure else () if any(e.raised for e in ended) or not start.listens else None
        return [(state, _promise(call, state, element, names))]
    exact = machine.exact_items(_given(call), state) if isinstance(only(element), Const) else None
    rows = None if exact is None or len(exact) > operators.MOST_KEPT else (element,) * len(exact)
    made = state.new(("results", call.site), Sequence("list", rows, () if rows else element))
    if name.endswith("_async"):
        return [(state, _promise(call, state, (made,)))]
    return [(state, (made,))]


def _context_of_library(call: Call) -> Value | None:
    """The start method that a library chooses for its own pool."""
    method = call.text("method")
    return const(method) if method else None


def _context_of_limited(call: Call) -> Value | None:
    """An executor that replaces its workers after some tasks spawns them, unless the call names a context."""
    limit = call.get("max_tasks_per_child")
    return None if limit is None or limit == NONE else const("spawn")


def subclassed(machine: Machine, call: Call) -> Results:
    """``super().__init__(...)`` of a user's own pool or executor."""
    base = call.path.removesuffix(".__init__")
    spec = machine.library.function(base)
    if spec is None:
        return [(call.state, NONE)]
    results: Results = []
    for state, made in machine.library_call(replace(call, path=base, spec=spec, receiver=None)):
        if call.receiver is not None and _process_class(machine, (call.receiver,), state) is not None:
            # What it makes of them is its own affair: mostly processes that may have children.
            _told_apart(made, state)
        keep_self(replace(call, state=state), made)
        results.append((state, NONE))
    return results


def _told_apart(made: Value, state: State) -> None:
    found = state.get(atom) if isinstance(atom := only(made), Ref) else None
    if isinstance(atom, Ref) and isinstance(found, LibraryObject):
        state.store(atom, replace(found, fields={**found.fields, "<daemon>": FALSE}))


def executor(machine: Machine, call: Call) -> Results:
    """``ProcessPoolExecutor(max_workers, mp_context, initializer, initargs)``: starts nothing yet.

    What a library hands on to it as one dict, ``pool_kwargs={"mp_context": context}``, its model names by ``kwargs``.
    """
    state = call.state
    if call.text("kwargs"):
        call = replace(call, kwargs={**call.kwargs, **named_arguments(state, call.get(call.text("kwargs")))})
    library = library_of(call)
    context = context_of(call)
    if context is None or context == NONE:
        context = _context_of_limited(call) or _context_of_library(call)
    if context is None:
        launching.fix_default(machine, state, library, call.site, "ProcessPoolExecutor()")
    calls = by_number(machine, call, call.text("workers", "max_workers"))
    return [(one.state, (_made_executor(one, library, context),)) for one in calls]


def _made_executor(call: Call, library: str, context: Value | None) -> Ref:
    """An executor, or what starts its workers as one does, when it is first given something to do."""
    workers_ = call.get(call.text("workers", "max_workers"))
    keyword = next((name for name in CONTEXTS if name in call.params), "")
    fields: dict[str, Value] = {
        "<library>": const(library),
        "<context>": context or NONE,
        "<keyword>": const(keyword),
        "<place>": const(call.params.index(keyword) if keyword else 0),
        "<many>": const(_are_many(workers_, call.state)),
        "<count>": workers_ or NONE,
        "<reused>": const(call.get("max_tasks_per_child") != const(1)),
        "<ends>": const(call.get("max_tasks_per_child") not in (None, NONE)),
        "<initializer>": call.get("initializer") or NONE,
        "<initargs>": call.get("initargs") or NONE,
        **_leading_fields(call),
    }
    made = LibraryObject(call.text("type", _EXECUTOR), fields, call.site)
    return call.state.new(("executor", call.site), made)


_EXECUTOR = "concurrent.futures.ProcessPoolExecutor"


def submitting(machine: Machine, call: Call) -> Results:
    """``@concurrent``, ``@concurrent(processes=4)``: a function that workers run, which the first call starts."""
    if not call.args or not is_function(call.args[0], call.state):
        return [(call.state, (Partial((Lib(call.path),), (), tuple(sorted(call.kwargs.items()))),))]
    owner = _made_executor(replace(call, args=[]), library_of(call), None)
    submit = Bound(Lib(f"{call.text('type', _EXECUTOR)}.submit"), owner)
    return [(call.state, (Partial((submit,), (call.args[0],), ()),))]
