"""Start methods, processes, pools, executors, threads, queues, joblib, and libraries that fork inside."""

from __future__ import annotations

from dataclasses import replace

from cudalint.machine import operators
from cudalint.machine.behaviours import gpu, workers
from cudalint.machine.behaviours.crossing import carried, reachable
from cudalint.machine.behaviours.workers import Ended, Start, Way, arguments, count_of, failures, task
from cudalint.machine.frame import Call, Raised, Results
from cudalint.machine.heap import Class, Generator, Instance, Sequence, Thing
from cudalint.machine.interpret import Machine
from cudalint.machine.outcome import Kind, Outcome
from cudalint.machine.state import Launch, Method, State, merge
from cudalint.machine.trace import Chain, Site
from cudalint.machine.values import (
    EACH,
    NONE,
    TRUE,
    Bound,
    Const,
    Dev,
    Lib,
    Partial,
    Rank,
    Ref,
    Snapshot,
    Task,
    Tensor,
    Unknown,
    Value,
    const,
    constant,
    only,
    strings,
    union,
    unknown,
)


def library_of(call: Call) -> str:
    """The multiprocessing library that a call belongs to: each keeps a default start method of its own."""
    thing = _thing(call)
    if thing is not None and "<library>" in thing.fields:
        return strings(thing.fields["<library>"])[0]
    given = call.text("library")
    root = call.path.split(".")[0]
    return given or (root if root in ("multiprocess", "billiard") else "multiprocessing")


def _thing(call: Call) -> Thing | None:
    found = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    return found if isinstance(found, Thing) else None


def _context(call: Call) -> Value | None:
    """The context object a launcher was taken from or given."""
    thing = _thing(call)
    if thing is not None and "<method>" in thing.fields and isinstance(call.receiver, Ref):
        return (call.receiver,)
    return call.get("mp_context") or call.get("context") or call.get("multiprocessing_context")


# -- start methods -------------------------------------------------------------------------------------------


def set_start_method(machine: Machine, call: Call) -> Results:
    """``set_start_method(method, force=False)``: once, and before anything used the default."""
    state = call.state
    library = library_of(call)
    value = call.get("method") or unknown("method", call.site)
    forced = call.get("force")
    force = workers.constant_bool(forced, False)
    method = state.process.method(library)
    if machine.is_import_of_main(state) and force is not True and _by_spawn(state):
        if call.frame.tries == 0:
            _imported_again(machine, call, state, "set_start_method()", "crash")
        return machine.fail(state, call.frame, Raised(None, ("RuntimeError",)))
    if method.fixed is not None and force is not True:
        outcome = _method_outcome(machine, call, state, method.fixed, Kind.METHOD_ALREADY_SET)
        late = machine.chain(state, call.site, "sets the start method too late")
        if set(strings(value)) & workers.FRESH:
            state.process = state.process.with_method(library, replace(method, late=late))
        return machine.fail(state, call.frame, Raised(outcome, ("RuntimeError",)))
    where = machine.chain(state, call.site, "sets the start method")
    if value == NONE:
        made = Method(None, None, where)
    else:
        names = tuple(strings(value))
        made = Method(names if len(names) == len(value) else (*names, "?"), where, where)
    state.process = state.process.with_method(library, made)
    return [(state, NONE)]


def _method_outcome(machine: Machine, call: Call, state: State, cause: Chain, kind: Kind) -> Outcome:
    return Outcome(
        kind=kind,
        anchor=call.site,
        how="crash",
        certain=True,
        assumed=machine.assumed,
        cause=cause.hops(),
        effect=machine.chain(state, call.site, "the context has already been set").hops(),
        in_test=machine.in_test,
    )


def _by_spawn(state: State) -> bool:
    launch = state.process.launch
    return launch is not None and launch.method in ("spawn", "forkserver")


def _imported_again(
    machine: Machine, call: Call, state: State, what: str, how: str, anchor: Site | None = None
) -> None:
    if not machine.uses_gpu:
        return
    launch = state.process.launch
    machine.emit(
        Outcome(
            kind=Kind.IMPORTED_AGAIN,
            anchor=anchor or call.site,
            how=_again(launch, how),
            certain=launch is None or launch.certain,
            assumed=machine.assumed,
            launch=() if launch is None else launch.chain.hops(),
            effect=machine.chain(state, call.site, f"{what} runs again while the child imports main").hops(),
            launcher="" if launch is None else launch.launcher,
            subject=what,
            condition=None if launch is None else launch.condition,
            in_test=machine.in_test,
        )
    )


def _again(launch: Launch | None, how: str) -> str:
    """How a child that dies while importing main shows: a pool restarts it for ever, a spawn reports it."""
    if launch is None:
        return how
    return {"pool": "hang", "spawn": "crash", "process": "child-death"}.get(launch.family, how)


def _bootstrapping(machine: Machine, call: Call, what: str, anchor: Site | None = None) -> bool:
    """Whether a start happens while a spawned child imports main: it raises there."""
    state = call.state
    if not (machine.is_import_of_main(state) and _by_spawn(state)):
        return False
    _imported_again(machine, call, state, what, "child-death", anchor)
    return True


def get_context(machine: Machine, call: Call) -> Results:
    """``get_context("spawn")``: a context object; without an argument the default, settled."""
    state = call.state
    library = library_of(call)
    value = call.get("method")
    if value is None or value == NONE:
        value = _default_names(machine, state, library)
        workers.fix_default(machine, state, library, call.site, "get_context()")
    fields: dict[str, Value] = {"<method>": value, "<library>": const(library)}
    made = Thing(f"{library}.context", fields, call.site)
    return [(state, (state.new(("context", call.site), made),))]


def _default_names(machine: Machine, state: State, library: str) -> Value:
    found = workers.ways(machine, state, library, None)
    return tuple(Const(w.method) for w in found) or const("default")


def get_start_method(machine: Machine, call: Call) -> Results:
    """``get_start_method()``: settles the default."""
    state = call.state
    library = library_of(call)
    method = state.process.method(library)
    if call.get("allow_none") == TRUE and method.names is None and method.fixed is None:
        return [(state, NONE)]
    value = _default_names(machine, state, library)
    if call.get("allow_none") != TRUE:
        workers.fix_default(machine, state, library, call.site, "get_start_method()")
    return [(state, value)]


def forkserver_preload(machine: Machine, call: Call) -> Results:
    """``set_forkserver_preload([...])``: what the server imports, all its children inherit."""
    names = call.args[0] if call.args else ()
    for value in machine.elements(names, call.state):
        machine.preloads.extend((name, call.site) for name in strings(value))
    return [(call.state, NONE)]


# -- daemons ----------------------------------------------------------------------------------------------------


def _daemon_child(machine: Machine, call: Call, what: str, anchor: Site | None = None) -> bool:
    """Whether a start fails because the present process is a daemon."""
    state = call.state
    process = state.process
    if not process.daemon or process.doomed or not machine.uses_gpu:
        return False
    launch = process.launch
    machine.emit(
        Outcome(
            kind=Kind.DAEMON_CHILD,
            anchor=anchor or call.site,
            how="crash" if launch is None else launch.failure,
            certain=True,
            assumed=machine.assumed,
            launch=() if launch is None else launch.chain.hops(),
            effect=machine.chain(state, call.site, f"{what} in a daemonic process").hops(),
            launcher="" if launch is None else launch.launcher,
            subject=what,
            in_test=machine.in_test,
        )
    )
    state.process = replace(process, doomed=True)
    return True


# -- pools -------------------------------------------------------------------------------------------------------


def pool(machine: Machine, call: Call) -> Results:
    """``Pool(n, initializer, initargs)``: forks here, runs initializers here."""
    state = call.state
    if _bootstrapping(machine, call, "Pool()") or _daemon_child(machine, call, "Pool()"):
        return machine.fail(state, call.frame, Raised(None, ("RuntimeError", "AssertionError")))
    library = library_of(call)
    context = _context(call)
    if context is None:
        workers.fix_default(machine, state, library, call.site, "Pool()")
    workers_ = call.get("processes")
    fields: dict[str, Value] = {
        "<library>": const(library),
        "<context>": context or NONE,
        "<many>": const(count_of(workers_)),
        "<reused>": const(call.get("maxtasksperchild") != const(1)),
        "<respawns>": const(call.get("maxtasksperchild") not in (None, NONE)),
        "<initializer>": call.get("initializer") or NONE,
        "<initargs>": call.get("initargs") or NONE,
        "<snapshot>": (Snapshot(state.clone()),),
        "<count>": workers_ or NONE,
    }
    ref = state.new(("pool", call.site), Thing(call.text("type", "multiprocessing.Pool"), fields, call.site))
    if fields["<initializer>"] != NONE:
        before = len(machine.outcomes)
        ended = _initialize(machine, call, state, fields, library)
        if any(o.kind in (Kind.SHARED_GPU, Kind.MEMORY_NOT_SHARED) for o in machine.outcomes[before:]):
            state.put(ref, Thing(call.text("type"), {**fields, "<crowded>": TRUE}, call.site))
        if ended and all(e.failed is not None and e.failed.certain for e in ended):
            return []
    return [(state, (ref,))]


def _initialize(machine: Machine, call: Call, state: State, fields: dict[str, Value], library: str) -> list[Ended]:
    ended: list[Ended] = []
    chain = machine.chain(state, call.site, "starts the workers")
    for way in workers.ways(machine, state, library, fields["<context>"]):
        first = task(fields["<initializer>"], arguments(machine, state, fields["<initargs>"]))
        start = Start(
            launcher="Pool(initializer=...)",
            family="pool",
            anchor=call.site,
            chain=chain,
            many=fields["<many>"] == TRUE,
            reused=False,
            daemon=True,
            failures={"initializer": "hang", "unpickle": "crash", "body": "hang", **failures(call)},
            library=library,
            initializer=first,
            initializer_anchor=call.site,
            inherited=(fields["<initializer>"], fields["<initargs>"]),
            label="pool worker",
            count=workers.number_of(fields["<count>"]),
        )
        ended.append(workers.start(machine, state, call.frame, start, way))
    return ended


def pool_map(machine: Machine, call: Call) -> Results:
    """``pool.map(f, xs)`` and its like: each item is one task."""
    function = call.get("func") or call.get("fn") or ()
    state = call.state
    name = call.path.rpartition(".")[2]
    if call.flag("star"):
        items = vary(machine, state, _items(machine, call, call.get("iterable") or ()), call.site)
        args = arguments(machine, state, items)
    elif call.text("iterables"):
        args = [_element(machine, call, v, i) for i, v in enumerate(call.args[1:])]
    else:
        args = [_element(machine, call, call.get("iterable") or (), 0)]
    return _pool_run(machine, call, name, function, args, {})


def pool_apply(machine: Machine, call: Call) -> Results:
    """``pool.apply(f, args, kwds)`` and ``executor.submit(f, *args)``."""
    name = call.path.rpartition(".")[2]
    if call.text("args"):
        function = call.get("func") or ()
        args = arguments(machine, call.state, call.get("args"))
        kwargs = workers.named_arguments(call.state, call.get("kwds"))
    else:
        function = call.args[0] if call.args else call.kwargs.get("fn", ())
        args = list(call.args[1:])
        kwargs = {k: v for k, v in call.kwargs.items() if k != "fn"}
    return _pool_run(machine, call, name, function, args, kwargs)


def _items(machine: Machine, call: Call, value: Value) -> list[Value]:
    """What iterating the tasks of a pool gives; a generator runs here, in the parent."""
    atom = only(value)
    found = call.state.get(atom) if isinstance(atom, Ref) else None
    if isinstance(found, Generator | Instance | Thing) or isinstance(atom, Tensor):
        rounds = machine.iterate(value, call.state, call.frame, call.site)
        return rounds[0][1] if rounds else []
    return machine.elements(value, call.state)


def _element(machine: Machine, call: Call, value: Value, position: int) -> Value:
    state = call.state
    found = vary(machine, state, _items(machine, call, value), call.site)
    if found:
        return found
    atom = only(value)
    if isinstance(atom, Unknown):
        return EACH
    return unknown("task", call.site, position)


def vary(machine: Machine, state: State, values: list[Value], site: Site, depth: int = 0) -> Value:
    """One value that stands for the different items of tasks: numbers become one that differs each time."""
    distinct = list(dict.fromkeys(values))
    if len(distinct) <= 1:
        return distinct[0] if distinct else ()
    atoms = [only(v) for v in distinct]
    if all(isinstance(a, Const) and isinstance(a.value, int) for a in atoms) or all(isinstance(a, Rank) for a in atoms):
        return EACH
    devices = [operators.device_of(v) for v in distinct]
    if all(len(d) == 1 and d[0].is_gpu for d in devices) and all(isinstance(a, Const | Dev) for a in atoms):
        return (Dev("cuda", Rank("each")),)
    rows = [machine.exact_items(v, state) for v in distinct]
    if depth < 3 and all(r is not None and len(r) == len(rows[0] or []) for r in rows):
        columns = zip(*[r for r in rows if r is not None], strict=True)
        items = tuple(vary(machine, state, list(c), site, depth + 1) for c in columns)
        return (state.new(("varying", site, depth), Sequence("tuple", items)),)
    return union(distinct)


def _pool_run(
    machine: Machine, call: Call, name: str, function: Value, args: list[Value], kwargs: dict[str, Value]
) -> Results:
    state = call.state
    thing = _thing(call)
    if thing is None:
        return [(state, unknown("pool", call.site))]
    family = call.text("family", "pool")
    if family == "thread":
        return _in_thread(machine, call, function, args, kwargs)
    if _bootstrapping(machine, call, f".{name}()") or (
        family == "executor" and _daemon_child(machine, call, f".{name}()")
    ):
        return machine.fail(state, call.frame, Raised(None, ("RuntimeError", "AssertionError")))
    library = library_of(call)
    context = thing.fields.get("<context>", NONE)
    parent = _parent_of_pool(machine, call, thing, family)
    work = task(function, args, kwargs)
    single = name in ("submit", "apply", "apply_async")
    several = thing.fields.get("<many>") == TRUE
    reused = thing.fields.get("<reused>", TRUE) == TRUE
    earlier = _earlier_tasks(call, state, work) if single and reused else ()
    chain = machine.chain(state, call.site, f".{name}() hands work to the workers")
    start = Start(
        launcher=f"{'Pool' if family == 'pool' else 'ProcessPoolExecutor'}.{name}",
        family=family,
        anchor=call.site,
        chain=chain,
        many=several and not single and not _single_task(call, machine, state),
        reused=reused,
        daemon=family == "pool",
        failures={
            "body": "crash",
            "unpickle": "hang" if family == "pool" else "crash",
            "initializer": "hang" if family == "pool" else "crash",
            **failures(call),
        },
        library=library,
        initializer=_initializer_of(machine, thing, parent or state),
        initializer_anchor=thing.site,
        tasks=(*earlier, work),
        rounds=1 if single else 2,
        pickled=(function, *args, *kwargs.values()),
        inherited=(thing.fields.get("<initargs>", NONE),),
        label="pool worker" if family == "pool" else "worker",
        shares="<crowded>" not in thing.fields,
        adds_up=single and several,
        count=workers.number_of(thing.fields.get("<count>")),
    )
    ended: list[Ended] = []
    fork_state = parent.process if parent is not None else state.process
    for way in _pool_ways(machine, state, parent, library, context):
        lost = workers.unpicklable_task(state, function) if machine.uses_gpu else None
        if lost is not None:
            ended.append(Ended(workers.lambda_task(machine, state, start, way, lost), []))
            continue
        ended.append(workers.start(machine, state, call.frame, start, way, parent))
        respawns = thing.fields.get("<respawns>") == TRUE
        if respawns and way.method == "fork" and fork_state.driver is None and ended[-1].failed is None:
            ended[-1] = workers.start(machine, state, call.frame, start, way)
    return _pool_results(machine, call, state, family, name, ended)


def _earlier_tasks(call: Call, state: State, work: Task) -> tuple[Task, ...]:
    """The task that was handed to these workers before: a worker may serve both."""
    thing = _thing(call)
    if thing is None or not isinstance(call.receiver, Ref):
        return ()
    before = only(thing.fields.get("<task>", NONE))
    state.put(call.receiver, replace(thing, fields={**thing.fields, "<task>": (work,)}))
    return (before,) if isinstance(before, Task) else ()


def _pool_ways(machine: Machine, state: State, parent: State | None, library: str, context: Value) -> list[Way]:
    return workers.ways(machine, parent or state, library, context)


def _single_task(call: Call, machine: Machine, state: State) -> bool:
    exact = machine.exact_items(call.get("iterable") or (), state)
    return exact is not None and len(exact) == 1


def _initializer_of(machine: Machine, thing: Thing, state: State) -> Task | None:
    value = thing.fields.get("<initializer>", NONE)
    if value == NONE:
        return None
    return task(value, arguments(machine, state, thing.fields.get("<initargs>")))


def _parent_of_pool(machine: Machine, call: Call, thing: Thing, family: str) -> State | None:
    """The state that the workers forked from: a pool's when it was made, an executor's at its first task."""
    held = only(thing.fields.get("<snapshot>", NONE))
    if isinstance(held, Snapshot) and isinstance(held.state, State):
        return held.state.clone()
    if family == "executor" and isinstance(call.receiver, Ref):
        snapshot: Value = (Snapshot(call.state.clone()),)
        thing = _thing(call) or thing
        call.state.put(call.receiver, replace(thing, fields={**thing.fields, "<snapshot>": snapshot}))
    return None


def _pool_results(machine: Machine, call: Call, state: State, family: str, name: str, ended: list[Ended]) -> Results:
    if workers.raise_in_parent(machine, state, call.frame, ended):
        return []
    values = [v for e in ended for _, v in e.children]
    result = _returned_values(machine, call, state, values, family)
    element = result or unknown("result", call.site)
    if name in ("apply", "apply_async", "submit"):
        if name == "apply":
            return [(state, element)]
        fields: dict[str, Value] = {"<result>": element}
        return [(state, (state.new(("future", call.site), Thing("cudalint.future", fields, call.site)),))]
    made = state.new(("results", call.site), Sequence("list", None, element))
    if name.endswith("_async"):
        return [
            (state, (state.new(("future", call.site), Thing("cudalint.future", {"<result>": (made,)}, call.site)),))
        ]
    return [(state, (made,))]


def _returned_values(machine: Machine, call: Call, state: State, values: list[Value], family: str) -> Value:
    """What workers return: a GPU tensor comes back through CUDA IPC, or through the host."""
    result: list[Value] = []
    for value in values:
        kept: list[object] = []
        for atom in value:
            if isinstance(atom, Tensor) and atom.device.is_gpu:
                kind = Kind.CUDA_THROUGH_JOBLIB if family == "joblib" else Kind.CUDA_ACROSS
                _result_outcome(machine, call, state, atom, kind)
                after = gpu.touch(
                    machine, state, call.frame, call.site, atom.framework, "init", "receiving a CUDA tensor"
                )
                del after
                result.append((replace(atom, owner=state.process.identity),))
            elif isinstance(atom, Ref | Bound | Partial | Snapshot):
                continue
            else:
                kept.append(atom)
                result.append((atom,))
    return union(result)


def _result_outcome(machine: Machine, call: Call, state: State, tensor: Tensor, kind: Kind) -> None:
    machine.emit(
        Outcome(
            kind=kind,
            anchor=call.site,
            how="cost",
            certain=True,
            assumed=machine.assumed,
            cause=() if tensor.origin is None else tensor.origin.hops(),
            launch=machine.chain(state, call.site, "the worker returns it").hops(),
            launcher=gpu.label(call),
            subject="result",
            in_test=machine.in_test,
        )
    )


def future_result(machine: Machine, call: Call) -> Results:
    """``future.result()``, ``async_result.get()``."""
    thing = _thing(call)
    if thing is None:
        return [(call.state, unknown("future", call.site))]
    return [(call.state, thing.fields.get("<result>", unknown("future", call.site)))]


def executor(machine: Machine, call: Call) -> Results:
    """``ProcessPoolExecutor(max_workers, mp_context, initializer, initargs)``: starts nothing yet."""
    state = call.state
    library = library_of(call)
    context = _context(call)
    if context is None or context == NONE:
        workers.fix_default(machine, state, library, call.site, "ProcessPoolExecutor()")
    fields: dict[str, Value] = {
        "<library>": const(library),
        "<context>": context or NONE,
        "<many>": const(count_of(call.get("max_workers"))),
        "<count>": call.get("max_workers") or NONE,
        "<reused>": const(call.get("max_tasks_per_child") != const(1)),
        "<initializer>": call.get("initializer") or NONE,
        "<initargs>": call.get("initargs") or NONE,
    }
    kind = call.text("type", "concurrent.futures.ProcessPoolExecutor")
    return [(state, (state.new(("executor", call.site), Thing(kind, fields, call.site)),))]


# -- processes ----------------------------------------------------------------------------------------------------


def process(machine: Machine, call: Call) -> Results:
    """``Process(target=, args=)``."""
    state = call.state
    fields: dict[str, Value] = {
        "<library>": const(library_of(call)),
        "<context>": _context(call) or NONE,
        "<target>": call.get("target") or NONE,
        "<args>": call.get("args") or NONE,
        "<kwargs>": call.get("kwargs") or NONE,
        "daemon": call.get("daemon") or NONE,
    }
    if isinstance(call.receiver, Ref) and isinstance(found := state.get(call.receiver), Instance):
        state.put(call.receiver, replace(found, attributes={**fields, **found.attributes}))
        return [(state, NONE)]
    origin = machine.chain(state, call.site, "makes the process")
    ref = state.new(
        ("process", call.site), Thing(call.text("type", "multiprocessing.Process"), fields, call.site, origin)
    )
    return [(state, (ref,))]


def process_start(machine: Machine, call: Call) -> Results:
    """``p.start()``: forks or spawns here."""
    state = call.state
    ref = call.receiver
    found = state.get(ref) if isinstance(ref, Ref) else None
    if not isinstance(ref, Ref) or not isinstance(found, Thing | Instance):
        return [(state, NONE)]
    fields = found.fields if isinstance(found, Thing) else found.attributes
    if _bootstrapping(machine, call, "Process.start()", found.site) or _daemon_child(machine, call, "Process.start()"):
        return machine.fail(state, call.frame, Raised(None, ("RuntimeError", "AssertionError")))
    library = (strings(fields.get("<library>", ())) or ["multiprocessing"])[0]
    context = fields.get("<context>", NONE)
    if context == NONE and isinstance(found, Instance):
        context = _class_context(found.cls, state)
    if context == NONE:
        workers.fix_default(machine, state, library, call.site, "Process.start()")
    work, inherited = _process_work(machine, state, ref, found, fields)
    chain = machine.chain(state, call.site, ".start() starts the process")
    start = Start(
        launcher="Process",
        family="process",
        anchor=found.site,
        chain=chain,
        many=False,
        reused=False,
        daemon=constant(fields.get("daemon", NONE)) is True,
        failures={"body": "child-death", "unpickle": "child-death", "parent": "crash"},
        library=library,
        tasks=() if work is None else (work,),
        inherited=tuple(inherited),
        label=_process_label(machine, state, fields),
    )
    ended = [
        workers.start(machine, state, call.frame, start, way) for way in workers.ways(machine, state, library, context)
    ]
    _queue_users(machine, state, start, inherited, ended)
    if any(e.failed is not None and e.failed.how == "crash" and e.failed.certain for e in ended):
        return machine.fail(state, call.frame, Raised(None, ("RuntimeError", "PicklingError")))
    return [(state, NONE)]


def _class_context(cls: Ref, state: State) -> Value:
    """The context that a class took its ``Process`` base from: ``class W(ctx.Process)``."""
    stack = [cls]
    while stack:
        found = state.get(stack.pop())
        for base in found.bases if isinstance(found, Class) else ():
            for atom in base:
                if isinstance(atom, Bound):
                    return (atom.receiver,)
                if isinstance(atom, Ref):
                    stack.append(atom)
    return NONE


def _process_label(machine: Machine, state: State, fields: dict[str, Value]) -> str:
    del machine
    atom = only(fields.get("<target>", NONE))
    found = state.get(atom) if isinstance(atom, Ref) else None
    name = getattr(getattr(found, "function", None), "name", None)
    return f"child process {name}" if isinstance(name, str) else "child process"


def _process_work(
    machine: Machine, state: State, ref: Ref, found: Thing | Instance, fields: dict[str, Value]
) -> tuple[Task | None, list[Value]]:
    if isinstance(found, Instance):
        run = machine.user_method(found, "run", state)
        if run is not None:
            return task((Bound(run, ref),), []), [(ref,)]
    target = fields.get("<target>", NONE)
    if target == NONE:
        return None, []
    args = arguments(machine, state, fields.get("<args>"))
    kwargs = workers.named_arguments(state, fields.get("<kwargs>"))
    return task(target, args, kwargs), [target, *args, *kwargs.values()]


def process_join(machine: Machine, call: Call) -> Results:
    """``p.join()``: the child has ended; the GPU has room again."""
    state = call.state
    if state.process.crowd:
        state.process = replace(state.process, crowd=())
    return [(state, NONE)]


def fork(machine: Machine, call: Call) -> Results:
    """``os.fork()``: both processes go on from here."""
    state = call.state
    chain = machine.chain(state, call.site, "os.fork() makes a child")
    start = Start(
        launcher="os.fork",
        family="fork",
        anchor=call.site,
        chain=chain,
        many=False,
        reused=False,
        daemon=False,
        failures={"body": "child-death"},
        label="forked child",
    )
    machine.launched.add(call.site)
    launch = workers._launch(start, Way("fork", True, explicit=True), "body", call.site)
    child = workers.fork(machine, state, start, launch)
    if call.path == "pty.fork":
        pairs = []
        for current, pid in ((child, 0), (state, 4242)):
            pair = Sequence("tuple", (const(pid), unknown("fd", call.site)))
            pairs.append((current, (current.new(("pty", call.site), pair),)))
        return list(pairs)
    return [(child, const(0)), (state, const(4242))]


def spawn(machine: Machine, call: Call) -> Results:
    """``torch.multiprocessing.spawn`` and ``start_processes``: ranks, by spawn unless told otherwise."""
    state = call.state
    name = call.path.rpartition(".")[2]
    if _bootstrapping(machine, call, f"{name}()") or _daemon_child(machine, call, f"{name}()"):
        return machine.fail(state, call.frame, Raised(None, ("RuntimeError", "AssertionError")))
    given = call.get("start_method") if name == "start_processes" else None
    methods = ["spawn"] if given is None else strings(given)
    function = call.get("fn") or ()
    many = count_of(call.get("nprocs"), default_many=False)
    args: list[Value] = [(Rank("local"),), *arguments(machine, state, call.get("args"))]
    daemon = constant(call.get("daemon") or NONE) is True
    waits = constant(call.get("join") or TRUE) is True
    start = Start(
        launcher=f"mp.{name}",
        family="spawn",
        anchor=call.site,
        chain=machine.chain(state, call.site, f"{name}() starts the ranks"),
        many=many,
        reused=False,
        daemon=daemon,
        failures={"body": "crash" if waits else "child-death", "unpickle": "crash"},
        tasks=(task(function, args),),
        inherited=(function, *args),
        rank="local",
        label="rank",
    )
    ended = [
        workers.start(machine, state, call.frame, start, Way(m, len(methods) == 1, explicit=True)) for m in methods
    ]
    if workers.raise_in_parent(machine, state, call.frame, ended):
        return []
    return [(state, unknown("spawned", call.site))]


# -- libraries that fork inside ----------------------------------------------------------------------------------


def fork_launcher(machine: Machine, call: Call) -> Results:
    """A library function that forks: accelerate.notebook_launcher, datasets.map(num_proc=)."""
    state = call.state
    workers_ = call.get(call.text("workers")) if call.text("workers") else None
    function = call.get(call.text("function", "function")) or ()
    element = _dataset_element(call, state)
    library = call.text("library", "multiprocessing")
    if call.text("workers") and (workers_ is None or workers_ in (NONE, const(0)) or not function):
        if call.text("kind") == "map" and function:
            results = machine.call_value(function, [element], {}, state, call.frame, call.site)
            merged = merge([s for s, _ in results])
            return [(s, _mapped(call, s)) for s in merged] or []
        if call.text("kind") != "map" and workers_ in (NONE, const(0), const(1)):
            args = arguments(machine, state, call.get("args"))
            return machine.call_value(function, args, {}, state, call.frame, call.site)
    many = count_of(workers_)
    if call.text("kind") != "map" and workers_ is not None and not many:
        args = arguments(machine, state, call.get("args"))
        return machine.call_value(function, args, {}, state, call.frame, call.site)
    args = [element] if call.text("kind") == "map" else arguments(machine, state, call.get("args"))
    ways = (
        [Way("fork", True, explicit=True)]
        if call.text("method") == "fork"
        else workers.ways(machine, state, library, None)
    )
    certain_count = workers_ is None or isinstance(only(workers_), Const)
    start = Start(
        launcher=gpu.label(call),
        family="fork-launcher",
        anchor=call.site,
        chain=machine.chain(state, call.site, f"{gpu.label(call)} forks workers"),
        many=many,
        reused=call.text("kind") == "map",
        daemon=call.text("kind") == "map",
        failures={"body": "crash", "unpickle": "crash", **failures(call)},
        library=library,
        tasks=(task(function, args),),
        inherited=(function,),
        by_value=call.text("pickle") == "value",
        rank="local" if call.text("kind") == "ranks" else None,
        label="forked worker",
    )
    ended = [
        workers.start(machine, state, call.frame, start, replace(w, certain=w.certain and certain_count)) for w in ways
    ]
    if workers.raise_in_parent(machine, state, call.frame, ended):
        return []
    return [(state, _mapped(call, state))]


def _dataset_element(call: Call, state: State) -> Value:
    return unknown("example", call.site)


def _mapped(call: Call, state: State) -> Value:
    if call.text("kind") == "map" and call.receiver is not None:
        return (call.receiver,)
    return unknown("launched", call.site)


# -- joblib --------------------------------------------------------------------------------------------------------


def parallel(machine: Machine, call: Call) -> Results:
    """``Parallel(n_jobs=, backend=)``."""
    fields: dict[str, Value] = {
        "<jobs>": call.get("n_jobs") or call.state.process.joblib_jobs or NONE,
        "<backend>": call.get("backend") or call.state.process.joblib_backend or NONE,
        "<prefer>": call.get("prefer") or NONE,
        "<require>": call.get("require") or NONE,
    }
    return [(call.state, (call.state.new(("parallel", call.site), Thing("joblib.Parallel", fields, call.site)),))]


def parallel_backend(machine: Machine, call: Call) -> Results:
    """``with parallel_config(backend=...)``: the backend of what follows."""
    state = call.state
    backend = call.get("backend") or ()
    fields: dict[str, Value] = {"<before>": state.process.joblib_backend or NONE}
    fields["<jobs before>"] = state.process.joblib_jobs or NONE
    jobs = call.get("n_jobs") or ()
    state.process = replace(
        state.process,
        joblib_backend=backend or state.process.joblib_backend,
        joblib_jobs=jobs or state.process.joblib_jobs,
    )
    return [(state, (state.new(("config", call.site), Thing("joblib.parallel_config", fields, call.site)),))]


def parallel_backend_exit(machine: Machine, call: Call) -> Results:
    """Leaving it restores the backend."""
    thing = _thing(call)
    before = NONE if thing is None else thing.fields.get("<before>", NONE)
    jobs = NONE if thing is None else thing.fields.get("<jobs before>", NONE)
    call.state.process = replace(
        call.state.process,
        joblib_backend=() if before == NONE else before,
        joblib_jobs=() if jobs == NONE else jobs,
    )
    return [(call.state, NONE)]


def delayed(machine: Machine, call: Call) -> Results:
    """``delayed(f)``."""
    function = call.args[0] if call.args else ()
    return [(call.state, (Partial((Lib("joblib.task"),), (function,), ()),))]


def joblib_task(machine: Machine, call: Call) -> Results:
    """``delayed(f)(x)``: a task, run by nobody yet."""
    if not call.args:
        return [(call.state, unknown("task", call.site))]
    return [(call.state, (task(call.args[0], call.args[1:], call.kwargs),))]


def parallel_call(machine: Machine, call: Call) -> Results:
    """``Parallel(...)(tasks)``: by fresh workers, forks or threads, as the backend says."""
    state = call.state
    thing = _thing(call)
    values = machine.elements(call.args[0], state) if call.args else []
    tasks = [a for v in values for a in v if isinstance(a, Task)]
    if thing is None or not tasks:
        return [(state, unknown("parallel", call.site))]
    backend = _backend(thing, state)
    joined = _one_task(machine, state, tasks, call.site)
    if backend is None or backend == "threading" or thing.fields["<jobs>"] in (const(1), NONE):
        if backend == "threading":
            return _in_thread(machine, call, joined.function, list(joined.args), dict(joined.kwargs))
        return _here(machine, call, joined, backend)
    if backend == "multiprocessing" and _daemon_child(machine, call, "Parallel()"):
        return machine.fail(state, call.frame, Raised(None, ("AssertionError",)))
    one = len(values) == 1 and machine.exact_items(call.args[0], state) is not None
    many = count_of(thing.fields["<jobs>"]) and not one
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
        by_value=backend == "loky",
        label="joblib worker",
        count=_jobs(thing.fields["<jobs>"]),
    )
    ways = [Way("loky", True)] if backend == "loky" else workers.ways(machine, state, "multiprocessing", None)
    ended = [workers.start(machine, state, call.frame, start, way) for way in ways]
    if workers.raise_in_parent(machine, state, call.frame, ended):
        return []
    returned = [v for e in ended for _, v in e.children]
    result = _returned_values(machine, call, state, returned, "joblib")
    made = Sequence("list", None, result or unknown("result", call.site))
    return [(state, (state.new(("results", call.site), made),))]


def _jobs(value: Value) -> int | None:
    """A number of jobs; -1 and its like depend on the machine."""
    number = workers.number_of(value)
    return number if number is not None and number > 0 else None


def _backend(thing: Thing, state: State) -> str | None:
    if strings(thing.fields["<require>"]) == ["sharedmem"]:
        return "threading"
    given = strings(thing.fields["<backend>"])
    if len(given) == 1:
        return given[0]
    if thing.fields["<backend>"] != NONE:
        return None
    if strings(thing.fields["<prefer>"]) == ["threads"]:
        return "threading"
    return "loky"


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


def _one_task(machine: Machine, state: State, tasks: list[Task], site: Site) -> Task:
    """One task that stands for all: arguments that differ become ones that differ each time."""
    first = tasks[0]
    if len(tasks) == 1:
        return first
    functions = union([t.function for t in tasks])
    width = min(len(t.args) for t in tasks)
    args = tuple(vary(machine, state, [t.args[i] for t in tasks], site, 1) for i in range(width))
    names = {k for t in tasks for k, _ in t.kwargs}
    kwargs = tuple(
        (k, vary(machine, state, [v for t in tasks for n, v in t.kwargs if n == k], site, 1)) for k in sorted(names)
    )
    return Task(functions, args, kwargs)


# -- threads --------------------------------------------------------------------------------------------------------


def thread(machine: Machine, call: Call) -> Results:
    """``Thread(target=, args=)``."""
    fields: dict[str, Value] = {
        "<target>": call.get("target") or NONE,
        "<args>": call.get("args") or NONE,
        "<kwargs>": call.get("kwargs") or NONE,
    }
    state = call.state
    if isinstance(call.receiver, Ref) and isinstance(found := state.get(call.receiver), Instance):
        state.put(call.receiver, replace(found, attributes={**fields, **found.attributes}))
        return [(state, NONE)]
    return [(state, (state.new(("thread", call.site), Thing("threading.Thread", fields, call.site)),))]


def thread_start(machine: Machine, call: Call) -> Results:
    """``t.start()``: runs with a device of its own."""
    state = call.state
    ref = call.receiver
    found = state.get(ref) if isinstance(ref, Ref) else None
    if not isinstance(ref, Ref) or not isinstance(found, Thing | Instance):
        return [(state, NONE)]
    fields = found.fields if isinstance(found, Thing) else found.attributes
    function, args, kwargs = fields.get("<target>", NONE), fields.get("<args>"), fields.get("<kwargs>")
    given = arguments(machine, state, args)
    if isinstance(found, Instance):
        run = machine.user_method(found, "run", state)
        if run is not None:
            function, given = (Bound(run, ref),), []
    if function == NONE:
        return [(state, NONE)]
    named = workers.named_arguments(state, kwargs)
    return _threaded(machine, call, found.site, function, given, named, None)


def _in_thread(machine: Machine, call: Call, function: Value, args: list[Value], kwargs: dict[str, Value]) -> Results:
    thing = _thing(call)
    initializer = None if thing is None else _initializer_of(machine, thing, call.state)
    results = _threaded(machine, call, call.site, function, args, kwargs, initializer)
    made: Results = []
    for state, value in results:
        name = call.path.rpartition(".")[2]
        if name in ("submit", "apply_async"):
            future = Thing("cudalint.future", {"<result>": value}, call.site)
            made.append((state, (state.new(("future", call.site), future),)))
        elif name == "apply":
            made.append((state, value))
        else:
            made.append((state, (state.new(("results", call.site), Sequence("list", None, value)),)))
    return made


def _threaded(
    machine: Machine,
    call: Call,
    anchor: Site,
    function: Value,
    args: list[Value],
    kwargs: dict[str, Value],
    initializer: Task | None,
) -> Results:
    state = call.state
    before = state.process
    name = f"{before.thread}/{anchor.module}:{anchor.ordinal}"
    chain = machine.chain(state, call.site, "starts a thread")
    kept = tuple((t, s) for t, s in before.selected if t != name)
    state.process = replace(before, thread=name, selected=kept, in_thread=True, thread_start=(anchor, chain))
    states = [state]
    if initializer is not None:
        states = [
            s
            for s, _ in machine.call_value(
                initializer.function, list(initializer.args), dict(initializer.kwargs), state, call.frame, call.site
            )
        ]
    results: Results = []
    for current in states:
        results.extend(machine.call_value(function, args, kwargs, current, call.frame, call.site))
    for after, _ in results:
        after.process = replace(
            after.process, thread=before.thread, in_thread=before.in_thread, thread_start=before.thread_start
        )
    return results


# -- queues and locks ------------------------------------------------------------------------------------------------


def lock(machine: Machine, call: Call) -> Results:
    """``Queue()``, ``Lock()``, ``Event()``, ``Value()``: of the context they are made by."""
    state = call.state
    library = library_of(call)
    context = _context(call)
    found = workers.ways(machine, state, library, context)
    if context is None:
        workers.fix_default(machine, state, library, call.site, gpu.label(call))
    names: Value = tuple(dict.fromkeys(Const(w.method) for w in found)) or const("?")
    kind = call.text("type") or f"multiprocessing.{call.path.rpartition('.')[2]}"
    fields: dict[str, Value] = {"<lock>": names, "element": unknown("received", call.site)}
    origin = machine.chain(state, call.site, f"{gpu.label(call)} belongs to the {'/'.join(strings(names))} context")
    return [(state, (state.new(("lock", call.site), Thing(kind, fields, call.site, origin)),))]


def pipe(machine: Machine, call: Call) -> Results:
    """``Pipe()``: two ends."""
    state = call.state
    ends: list[Value] = []
    for i in range(2):
        fields: dict[str, Value] = {"<channel>": const(True)}
        ends.append((state.new(("pipe", call.site, i), Thing("multiprocessing.Connection", fields, call.site)),))
    return [(state, (state.new(("pipe", call.site), Sequence("tuple", tuple(ends))),))]


def put(machine: Machine, call: Call) -> Results:
    """``q.put(x)`` and ``conn.send(x)``: x is pickled for whoever reads."""
    state = call.state
    value = call.args[0] if call.args else NONE
    ref = call.receiver
    thing = _thing(call)
    if not isinstance(ref, Ref) or thing is None:
        return [(state, NONE)]
    found = [c for c in carried(value, state, False) if c.what not in ("lock", "unpicklable")]
    bad = [c for c in carried(value, state, False) if c.what == "unpicklable"]
    for one in bad:
        # A pipe pickles in the caller, a queue in its feeder thread.
        how = "crash" if call.path.endswith(".send") else "child-death"
        machine.emit(replace(_put_outcome(machine, call, state, Kind.UNPICKLABLE_CUDA, one.origin), how=how))
    if not found:
        return [(state, NONE)]
    process = state.process
    if process.doomed:
        return [(state, NONE)]
    if process.launch is not None:
        chain = machine.chain(state, call.site, f"{gpu.label(call)} shares GPU memory of this process")
        state.process = replace(process, pending=(*process.pending, (call.site, chain, "put")))
        return [(state, NONE)]
    _put_in_parent(machine, call, state, ref, thing, found[0].origin)
    return [(state, NONE)]


def _put_in_parent(machine: Machine, call: Call, state: State, ref: Ref, thing: Thing, origin: Chain | None) -> None:
    users = strings(thing.fields.get("<users>", ()))
    chain = machine.chain(state, call.site, f"{gpu.label(call)} shares GPU memory")
    machine.puts.setdefault(ref.address, []).append((call.site, chain, origin))
    if "poisoned" in users:
        machine.emit(replace(_put_outcome(machine, call, state, Kind.CUDA_TO_FORK, origin), how="child-death"))
    elif users:
        machine.emit(_put_outcome(machine, call, state, Kind.CUDA_ACROSS, origin))


def _put_outcome(machine: Machine, call: Call, state: State, kind: Kind, origin: Chain | None) -> Outcome:
    return Outcome(
        kind=kind,
        anchor=call.site,
        how="cost",
        certain=True,
        assumed=machine.assumed,
        cause=() if origin is None else origin.hops(),
        launch=machine.chain(state, call.site, f"{gpu.label(call)} sends it").hops(),
        launcher=gpu.label(call),
        subject="CUDA tensor",
        in_test=machine.in_test,
    )


def _queue_users(machine: Machine, state: State, start: Start, inherited: list[Value], ended: list[Ended]) -> None:
    """A started process that holds a queue: what its parent puts there, this process unpickles."""
    process = state.process
    for way in workers.ways(machine, state, start.library, None)[:1]:
        poisoned = any(_forks(e) for e in ended) and (process.driver is not None or process.poison is not None)
        del way
        mark = "poisoned" if poisoned else "clean"
        for value in inherited:
            for ref in _channels(value, state):
                thing = state.get(ref)
                if not isinstance(thing, Thing):
                    continue
                users = union([thing.fields.get("<users>", ()), const(mark)])
                state.put(ref, replace(thing, fields={**thing.fields, "<users>": users}))
                for site, chain, origin in machine.puts.get(ref.address, []):
                    kind = Kind.CUDA_TO_FORK if poisoned else Kind.CUDA_ACROSS
                    machine.emit(
                        Outcome(
                            kind=kind,
                            anchor=site,
                            how="child-death" if poisoned else "cost",
                            certain=True,
                            assumed=machine.assumed,
                            cause=() if origin is None else origin.hops(),
                            launch=chain.hops(),
                            launcher="Queue.put",
                            subject="CUDA tensor",
                            in_test=machine.in_test,
                        )
                    )


def _forks(ended: Ended) -> bool:
    return any(child.process.forked for child, _ in ended.children) or (
        ended.failed is not None and ended.failed.kind in (Kind.CUDA_IN_FORK, Kind.INHERITED_CUDA)
    )


def _channels(value: Value, state: State) -> list[Ref]:
    """The queues and pipes in a value; for one end of a pipe, the other."""
    result: list[Ref] = []
    for ref in reachable(value, state):
        found = state.get(ref)
        if isinstance(found, Thing) and ("<lock>" in found.fields or "<channel>" in found.fields):
            result.append(ref)
            other = _other_end(ref)
            if other is not None:
                result.append(other)
    return result


def _other_end(ref: Ref) -> Ref | None:
    """What is sent into one end of a pipe comes out of the other."""
    match ref.address:
        case (("pipe", site, int(i)), count, identity):
            return Ref((("pipe", site, 1 - i), count, identity))
    return None


def wait(machine: Machine, call: Call) -> Results:
    """``q.get()``, ``event.wait()``, ``conn.recv()``: this process stays alive until another answers."""
    state = call.state
    pending = state.process.pending
    if pending:
        launch = state.process.launch
        for site, chain, _ in pending:
            machine.emit(
                Outcome(
                    kind=Kind.CUDA_ACROSS,
                    anchor=site,
                    how="cost",
                    certain=True,
                    assumed=machine.assumed,
                    launch=() if launch is None else launch.chain.hops(),
                    effect=chain.hops(),
                    launcher="" if launch is None else launch.launcher,
                    subject="CUDA tensor",
                    in_test=machine.in_test,
                )
            )
        state.process = replace(state.process, pending=())
    return [(state, unknown("received", call.site, state.process.identity))]


def manager(machine: Machine, call: Call) -> Results:
    """``Manager()``: a server process of its own."""
    if _daemon_child(machine, call, "Manager()"):
        return machine.fail(call.state, call.frame, Raised(None, ("AssertionError",)))
    if _context(call) is None:
        workers.fix_default(machine, call.state, library_of(call), call.site, "Manager()")
    return [(call.state, (call.state.new(("manager", call.site), Thing("multiprocessing.Manager", {}, call.site)),))]


def trainer(machine: Machine, call: Call) -> Results:
    """``Trainer(strategy=)``: starts nothing yet."""
    fields: dict[str, Value] = {"<strategy>": call.get("strategy") or NONE}
    return [(call.state, (call.state.new(("trainer", call.site), Thing("lightning.Trainer", fields, call.site)),))]


def trainer_fit(machine: Machine, call: Call) -> Results:
    """``trainer.fit(model)``: strategies that fork refuse a process that initialised CUDA."""
    state = call.state
    thing = _thing(call)
    strategies = [] if thing is None else strings(thing.fields.get("<strategy>", ()))
    if not any(s.startswith(("ddp_fork", "ddp_notebook")) for s in strategies):
        return [(state, unknown("fit", call.site))]
    driver = state.process.driver
    if driver is None:
        return [(state, unknown("fit", call.site))]
    machine.emit(
        Outcome(
            kind=Kind.FORK_LAUNCHER,
            anchor=call.site,
            how="crash",
            certain=len(strategies) == 1,
            assumed=machine.assumed,
            cause=driver.hops(),
            launch=machine.chain(state, call.site, f"strategy {strategies[0]} forks the ranks").hops(),
            launcher="Trainer.fit",
            subject="training",
            in_test=machine.in_test,
        )
    )
    return machine.fail(state, call.frame, Raised(None, ("RuntimeError",)))


def unknown_map(machine: Machine, call: Call) -> Results:
    """``x.map(f, num_proc=4)`` of something unknown: only ``num_proc`` tells that it is a dataset."""
    if "num_proc" not in call.kwargs:
        return [(call.state, unknown("map", call.site, call.state.process.identity))]
    return fork_launcher(machine, call)


def fresh_process(machine: Machine, call: Call) -> Results:
    """``subprocess.run`` and its like: a fresh program, which reads the environment as it is now."""
    workers.visible_for_children(machine, call.state)
    return [(call.state, unknown("subprocess", call.site))]


# -- servers that fork before they work -----------------------------------------------------------------------------


def celery_app(machine: Machine, call: Call) -> Results:
    """``Celery(...)``: gathers its tasks."""
    return [(call.state, (call.state.new(("celery", call.site), Thing("celery.Celery", {}, call.site)),))]


def celery_task(machine: Machine, call: Call) -> Results:
    """``@app.task``: the function is run by workers later."""
    thing = _thing(call)
    function = call.args[0] if call.args else ()
    if thing is None or not isinstance(call.receiver, Ref):
        return [(call.state, function or unknown("task", call.site))]
    if not function:
        return [(call.state, (Bound(Lib("celery.Celery.task"), call.receiver),))]
    tasks = union([thing.fields.get("<tasks>", ()), function])
    call.state.put(call.receiver, replace(thing, fields={**thing.fields, "<tasks>": tasks}))
    return [(call.state, function)]


def celery_worker(machine: Machine, call: Call) -> Results:
    """``app.worker_main(argv)``: the prefork pool forks this process, as it is, for its workers."""
    state = call.state
    thing = _thing(call)
    options = [s for v in machine.elements(call.args[0], state) for s in strings(v)] if call.args else []
    pool = next((o.partition("=")[2] for o in options if o.startswith("--pool=")), "prefork")
    if "-P" in options and options.index("-P") + 1 < len(options):
        pool = options[options.index("-P") + 1]
    if thing is None or pool != "prefork":
        return [(state, NONE)]
    for function in thing.fields.get("<tasks>", ()):
        _prefork(machine, call, state, task((function,), [unknown("argument", call.site)]), "Celery.worker_main")
    return [(state, NONE)]


def gunicorn_run(machine: Machine, call: Call) -> Results:
    """``Application().run()``: with preload_app the application is made before the workers fork."""
    state = call.state
    ref = call.receiver
    found = state.get(ref) if isinstance(ref, Ref) else None
    if not isinstance(ref, Ref) or not isinstance(found, Instance):
        return [(state, NONE)]
    load = machine.user_method(found, "load", state)
    module = machine.program.module(call.frame.module)
    if load is None or module is None or "preload_app" not in module.words:
        return [(state, NONE)]
    for after, app in machine.call_value((Bound(load, ref),), [], {}, state, call.frame, call.site):
        request: list[Value] = [unknown("environ", call.site), unknown("start_response", call.site)]
        _prefork(machine, call, after, task(app, request), "gunicorn")
    return [(state, NONE)]


def _prefork(machine: Machine, call: Call, state: State, work: Task, name: str) -> None:
    start = Start(
        launcher=name,
        family="fork-launcher",
        anchor=call.site,
        chain=machine.chain(state, call.site, f"{name} forks its workers"),
        many=True,
        reused=True,
        daemon=False,
        failures={"body": "crash"},
        tasks=(work,),
        label="server worker",
        shares=False,
    )
    workers.start(machine, state, call.frame, start, Way("fork", True, explicit=True))
