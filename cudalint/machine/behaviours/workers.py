"""Starting processes: what a child begins with, what it runs, and what its end means for its parent."""

from __future__ import annotations

from dataclasses import replace

from cudalint.machine.behaviours.crossing import Carried, Pickler, Transfer, carried
from cudalint.machine.behaviours.launching import FRESH, Ended, Start, Way, fix_default, launch_of
from cudalint.machine.behaviours.outcomes import outcome_of
from cudalint.machine.behaviours.pickling import function_sites, refused, unproven
from cudalint.machine.behaviours.sharing import crowd
from cudalint.machine.frame import Frame, Raised
from cudalint.machine.heap import Closure, Scope, Thing
from cudalint.machine.interpreter import Fresh, Machine
from cudalint.machine.joining import merge
from cudalint.machine.launched import Launched
from cudalint.machine.outcome import Kind, Outcome
from cudalint.machine.state import Launch, Method, Process, State
from cudalint.machine.trace import Chain, Site
from cudalint.machine.values import (
    NONE,
    TRUE,
    Atom,
    Bound,
    Const,
    Partial,
    Ref,
    Task,
    Tensor,
    Value,
    strings,
)

_ENDS = frozenset({"crash", "hang", "child-death"})


def start(machine: Machine, state: State, frame: Frame, start: Start, way: Way, parent: State | None = None) -> Ended:
    """Run one worker under one start method. ``parent`` is the state it forks from, if not the present one."""
    if way.method not in FRESH:
        return _started(machine, state, frame, start, way, parent)
    identity = child_identity(parent or state, start)
    made = start.made or start.anchor
    held = parent is not None
    later = state.clone() if start.renewed else None
    fresh = Fresh(start.anchor, way.method, made, identity, parent or state, held, start.inherited, later)
    machine.begins_fresh(fresh, state)
    ended = _started(machine, state, frame, start, way, parent)
    machine.ends_fresh(ended.began, start.family == "loader" and _lends(ended))
    return ended


def _lends(ended: Ended) -> bool:
    """Whether what the workers give back lies in GPU memory of theirs."""
    found = (c.atom for child, value in ended.children for c in carried(value, child, Pickler.NAMES))
    return any(isinstance(atom, Tensor) and atom.device.is_gpu for atom in found)


def child_identity(parent: State, start: Start) -> tuple[str, ...]:
    """By what a child is told from other processes."""
    return (*parent.process.identity, f"{start.family}@{start.anchor.module}:{start.anchor.ordinal}")


def _started(machine: Machine, state: State, frame: Frame, start: Start, way: Way, parent: State | None) -> Ended:
    known = machine.record.launches.get((start.anchor, way.method))
    machine.record.launches[start.anchor, way.method] = _launched(machine, state, start, way).with_doubts_of(known)
    launch = launch_of(start, way, "unpickle", start.anchor)
    fresh = way.method in FRESH
    if fresh:
        if way.certain and way.method != "loky":
            fix_default(machine, state, start.library, start.anchor, "starting a fresh process")
        for anchor in _anchors(start) if way.condition is None else ():
            machine.protect(anchor, state)
        visible_for_children(machine, state)
    before = len(machine.record.outcomes)
    blocked = _crossing(machine, state, start, way, launch, parent or state) or _nameless(machine, state, start, way)
    if blocked is not None and not machine.options.ignores_pickling_errors:
        return Ended(blocked, [])
    children = (
        boot(machine, parent or state, start, way, launch) if fresh else [fork(machine, parent or state, start, launch)]
    )
    if fresh:
        machine.has_booted(children)
    done: list[tuple[State, Value]] = []
    for child in children:
        inner = Frame(Ref(("module", machine.main)), machine.main)
        transfer = Transfer(machine, state, child, start.pickler, child.process.identity)
        needs_copy = fresh or parent is not None
        tasks = [_sent(t, transfer) for t in start.tasks] if needs_copy else list(start.tasks)
        first = start.initializer
        if first is not None and fresh:
            first = _sent(first, transfer)
        if transfer.lost and way.method != "fork":
            lost = _lost(machine, state, start, launch, transfer.lost[0])
            if lost is not None:
                return Ended(lost, [])
        done.extend(_run(machine, child, inner, start, way, first, tasks))
    made = machine.record.outcomes[before:]
    failed = next((o for o in made if o.how in _ENDS and not o.caught and o.within in _anchors(start)), None)
    if failed is not None and not fresh:
        _method_elsewhere(machine, state, start, failed)
    if failed is None and start.shares and (fresh or start.family != "loader"):
        crowd(machine, state, start, way, [c for c, _ in done])
    return Ended(failed, done, began=bool(children))


def _launched(machine: Machine, state: State, start: Start, way: Way) -> Launched:
    """What repairs need to know of a launch."""
    chosen = [f.site for a in start.context if isinstance(a, Ref) and isinstance(f := state.get(a), Thing)]
    where = state.process.method(start.library).where
    if not chosen and start.context == NONE and where is not None:
        chosen = [where.hop.site]
    sent = (*start.pickled, *start.inherited)
    fresh = way.method in FRESH and start.pickler is not Pickler.LOCALS
    targets = [s for t in start.tasks for s in function_sites(t.function, state)]
    # What a loader's worker runs it has from the dataset and the functions that the loader is given.
    given = start.inherited if start.family == "loader" else ()
    first = () if start.initializer is None else start.initializer.function
    prepared = [s for value in (first, *given) for s in function_sites(value, state)]
    return Launched(
        family=start.family,
        library=start.library,
        method=way.method,
        made=start.made or start.anchor,
        settled=chosen[0] if chosen else None,
        unproven=next((reason for v in sent if (reason := unproven(v, state)) is not None), None),
        targets=tuple(dict.fromkeys(targets)),
        prepared=tuple(dict.fromkeys(prepared)),
        keyword=start.keyword,
        refused=refused(sent, state, machine, by_value=start.pickler is Pickler.GLOBALS) if fresh else None,
    )


def visible_for_children(machine: Machine, state: State) -> None:
    """A variable that was set too late for this process was set for the fresh ones it starts."""
    late = set(state.process.late_visible)
    if late:
        machine.record.outcomes = [
            o for o in machine.record.outcomes if o.kind is not Kind.VISIBLE_TOO_LATE or o.anchor not in late
        ]
        state.process = replace(state.process, late_visible=())


def _method_elsewhere(machine: Machine, state: State, start: Start, failed: Outcome) -> None:
    """A start method that came too late, or was set on another library than the one that forks."""
    for library, method in state.process.methods:
        if library == start.library:
            where, kind = method.late, Kind.METHOD_ALREADY_SET
        else:
            reaches = set(method.names or ()) & FRESH
            where, kind = (method.where if reaches else None), Kind.METHOD_WITHOUT_EFFECT
        if where is None:
            continue
        machine.emit(
            replace(
                failed,
                kind=kind,
                anchor=where.hop.site,
                cause=where.hops(),
                detail=start.library,
                subject="",
                within=start.anchor,
            )
        )


def _anchors(start: Start) -> set[Site]:
    return {start.anchor} | ({start.initializer_anchor} if start.initializer_anchor is not None else set())


def _sent(task: Task, transfer: Transfer) -> Task:
    moved = transfer.atom(task)
    return moved if isinstance(moved, Task) else task


def _run(
    machine: Machine,
    child: State,
    frame: Frame,
    start: Start,
    way: Way,
    initializer: Task | None,
    tasks: list[Task],
) -> list[tuple[State, Value]]:
    states: list[tuple[State, Value]] = [(child, ())]
    machine.running.append(start.anchor)
    states = _stages(machine, states, frame, start, way, initializer, tasks)
    for current, _ in states:
        _producer_ends(machine, current, start)
        machine.behaviours.process_ends(machine, current)
    machine.running.pop()
    return states


def _producer_ends(machine: Machine, child: State, start: Start) -> None:
    """GPU tensors that a worker put on a queue with nothing after that keeps it alive."""
    ends = start.family in ("process", "spawn", "fork")
    launch = child.process.launch
    for site, chain, _ in child.process.pending:
        machine.emit(
            outcome_of(
                machine,
                Kind.PRODUCER_ENDS if ends else Kind.CUDA_ACROSS,
                site,
                "crash" if ends else "cost",
                effect=chain,
                launcher=start.launcher,
                subject="CUDA tensor",
                launch=launch,
            )
        )


def _stages(
    machine: Machine,
    states: list[tuple[State, Value]],
    frame: Frame,
    start: Start,
    way: Way,
    initializer: Task | None,
    tasks: list[Task],
) -> list[tuple[State, Value]]:
    child = states[0][0]
    if initializer is not None:
        anchor = start.initializer_anchor or start.anchor
        child.process = replace(child.process, launch=launch_of(start, way, "initializer", anchor))
        states = _perform(machine, states, frame, initializer, start, way)
        for current, _ in states:
            current.process = replace(current.process, launch=launch_of(start, way, "body", start.anchor))
    rounds = start.rounds if start.reused else 1
    for i in range(rounds):
        for current, _ in states:
            launch = current.process.launch
            if launch is None or launch.stage != "body":
                current.process = replace(current.process, launch=launch_of(start, way, "body", start.anchor))
        for j, task in enumerate(tasks):
            for current, _ in states:
                current.second_round = i > 0 or j > 0
                if start.adds_up and j > 0:
                    # What the earlier task opened was counted when it was submitted.
                    current.process = replace(current.process, contexts=frozenset())
            states = _perform(machine, states, frame, task, start, way)
    return states


def _perform(
    machine: Machine, states: list[tuple[State, Value]], frame: Frame, task: Task, start: Start, way: Way
) -> list[tuple[State, Value]]:
    result: list[tuple[State, Value]] = []
    for state, _ in states:
        made = machine.call_value(task.function, list(task.args), dict(task.kwargs), state, frame, start.anchor)
        result.extend(made)
        for _, raised in frame.raises:
            if raised.outcome is not None:
                machine.emit(raised.outcome)
        frame.raises = []
    by_state = merge([s for s, _ in result])
    if len(by_state) < len(result):
        from cudalint.machine.values import union

        value = union([v for _, v in result])
        return [(s, value) for s in by_state]
    return result


def raise_in_parent(machine: Machine, state: State, frame: Frame, ended: list[Ended]) -> bool:
    """Whether the parent's path ends because a worker's failure reaches it or it waits for ever."""
    failed = [e.failed for e in ended if e.failed is not None]
    if not failed or len(failed) < len(ended) or not all(o.certain for o in failed):
        return False
    crashed = next((o for o in failed if o.how == "crash"), None)
    if crashed is not None:
        frame.raises.append((state, Raised(None, ("RuntimeError",), launch=crashed.within)))
        return True
    return any(o.how == "hang" for o in failed)


# -- the child's beginning -------------------------------------------------------------------------------


def fork(machine: Machine, parent: State, start: Start, launch: Launch) -> State:
    """A forked child: everything the parent has, and a driver it must not use if the parent did."""
    child = parent.clone()
    before = parent.process
    poisoned_by = before.asked_by
    poison = before.driver if before.driver is not None else before.poison
    if before.doomed:
        poison = before.poison
    child.process = replace(
        before,
        identity=child_identity(parent, start),
        label=start.label,
        is_main=False,
        launch=launch,
        forked=True,
        forked_unseen=poison is None and (before.unseen or before.forked_unseen),
        daemon=start.daemon,
        driver=None,
        poison=poison,
        asked_by=frozenset(),
        poisoned_by=poisoned_by | (before.poisoned_by if before.driver is None else frozenset()),
        initialised=(),
        contexts=frozenset(),
        crowd=(),
        group=None,
        allocated=None,
        siblings=_siblings(before, start),
        doomed=False,
        misread=False,
        in_thread=False,
        rank=start.rank,
        local_rank_at_hand=before.local_rank_at_hand or start.rank == "local",
        selected=before.selected,
    )
    child.process = _with_environment(child.process, start)
    child.stack = None
    child.second_round = False
    return child


def _with_environment(process: Process, start: Start) -> Process:
    for name, value in start.environment:
        process = process.with_environ(name, value)
    return process


def _siblings(parent: Process, start: Start) -> int | None:
    """How many processes do at the same time what the child does; None where that is not known."""
    if not start.many:
        return parent.siblings
    return None if parent.siblings is None or start.count is None else parent.siblings * start.count


def boot(machine: Machine, parent: State, start: Start, way: Way, launch: Launch) -> list[State]:
    """A fresh interpreter: nothing of the parent but its environment; spawn imports main again."""
    before = parent.process
    poison = _server_poison(machine, parent) if way.method == "forkserver" else None
    process = Process(
        identity=child_identity(parent, start),
        label=start.label,
        is_main=False,
        launch=launch,
        daemon=start.daemon,
        environment=before.environment,
        methods=_child_methods(before, start, way),
        forked=poison is not None,
        poison=poison,
        rank=start.rank,
        siblings=_siblings(before, start),
        local_rank_at_hand=start.rank == "local",
        left_behind=_left_behind(machine, parent),
    )
    process = _with_environment(process, start)
    state = State(process, {})
    if way.method == "loky":
        return [state]
    module = machine.program.module(machine.main)
    if module is None or len(before.identity) > 3:
        return [state]
    inner = Frame(Ref(("module", machine.main)), machine.main)
    state.put(inner.scope, Scope({}, None, machine.main, "module"))
    saved = machine.uncaught
    machine.booting.append(state.process.identity)
    machine.running.append(start.anchor)
    states = machine.run_module(module, "__mp_main__", state)
    machine.running.pop()
    machine.booting.pop()
    for _, raised in machine.uncaught:
        if raised.outcome is not None:
            machine.emit(raised.outcome)
    machine.uncaught = saved
    return states[:2]


def _left_behind(machine: Machine, parent: State) -> frozenset[tuple[str, str]]:
    """The globals that the parent has now and that a fresh process does not get by importing their modules."""
    if machine.options.assumed or machine.options.in_test or machine.record.cut is not None:
        # Without its main, or all of its imports, nothing says what a fresh process would find under a name.
        return frozenset()
    modules = [thing for thing in parent.objects() if isinstance(thing, Scope) and thing.kind == "module"]
    return frozenset(
        (scope.module, name)
        for scope in modules
        for name in machine.program.set_by_main(scope.module)
        if name in scope.variables
    )


def _server_poison(machine: Machine, parent: State) -> Chain | None:
    """The witness of a query in what the fork server imports for its children."""
    for name, site in machine.preloads:
        state = State(Process(identity=("forkserver",), label="fork server", is_main=False), {})
        state.stack = machine.chain(parent, site, f"the fork server imports {name}")
        frame = Frame(Ref(("module", machine.main)), machine.main)
        module = machine.program.module(name)
        after = (
            machine.run_module(module, name, state, frame)
            if module is not None
            else machine.imported(name, state, frame, site)
        )
        for current in after:
            if current.process.driver is not None:
                return current.process.driver
    return None


def _child_methods(before: Process, start: Start, way: Way) -> tuple[tuple[str, Method], ...]:
    """A spawned child starts with its parent's method as its own default, already set."""
    method = before.method(start.library)
    names = method.names if method.names is not None else None
    return ((start.library, Method(names, None, None)),) if names is not None else ()


# -- what crosses ------------------------------------------------------------------------------------------


def _crossing(
    machine: Machine, state: State, start: Start, way: Way, launch: Launch, forked_from: State
) -> Outcome | None:
    """Outcomes of pickling; the first that is certain to fail is returned, and ends the child's path."""
    fresh = way.method in FRESH
    values = [*start.pickled, *(start.inherited if fresh else ())]
    sent: list[Carried] = [c for v in values for c in carried(v, state, start.pickler)]
    blocked: Outcome | None = None
    for found in sent:
        outcome = _crossing_outcome(machine, state, start, way, launch, forked_from, found, fresh)
        if outcome is None:
            continue
        machine.emit(replace(outcome, within=start.anchor))
        if outcome.how in ("crash", "hang", "child-death") and found.certain and way.certain:
            blocked = blocked or outcome
    return blocked


def _crossing_outcome(
    machine: Machine,
    state: State,
    start: Start,
    way: Way,
    launch: Launch,
    forked_from: State,
    found: Carried,
    fresh: bool,
) -> Outcome | None:
    base = outcome_of(
        machine,
        Kind.CUDA_ACROSS,
        start.anchor,
        "cost",
        certain=found.certain and way.certain,
        cause=found.origin,
        launcher=start.launcher,
        subject=found.what,
        condition=way.condition,
        started=start.chain,
    )
    if found.what == "unpicklable":
        return replace(base, kind=Kind.UNPICKLABLE_CUDA, how="crash")
    if found.what == "lock":
        return _lock_outcome(machine, base, found, state, way, start) if fresh else None
    if found.what == "numba.cuda.devicearray":
        return replace(base, kind=Kind.UNPICKLABLE_CUDA, how="crash")
    if way.method == "loky":
        return replace(base, kind=Kind.CUDA_THROUGH_JOBLIB)
    if fresh:
        return base
    parent = forked_from.process
    if parent.driver is None and parent.poison is None:
        # joblib's own pickler copies through the host: it knows nothing of torch's CUDA IPC.
        return replace(base, kind=Kind.CUDA_THROUGH_JOBLIB) if start.family == "joblib" else base
    return replace(base, kind=Kind.CUDA_TO_FORK, how=launch.failure)


def _lock_outcome(
    machine: Machine, base: Outcome, found: Carried, state: State, way: Way, start: Start
) -> Outcome | None:
    thing = state.get(found.atom) if isinstance(found.atom, Ref) else None
    if not isinstance(thing, Thing) or start.family in ("joblib",):
        return None
    methods = strings(thing.fields.get("<lock>", ()))
    if not methods or "fork" not in methods:
        return None
    if not way.explicit and thing.fields.get("<default>") == TRUE:
        # Both follow the default, and so each other, whatever it is.
        return None
    how = start.failures.get("parent", "crash")
    certain = methods == ["fork"] and machine.record.cut is None
    return replace(base, kind=Kind.FOREIGN_LOCK, how=how, certain=certain, detail=thing.type)


def _lost(machine: Machine, state: State, start: Start, launch: Launch, name: str) -> Outcome | None:
    """A worker that the child cannot find by name."""
    if not machine.options.uses_gpu or (
        "<" not in name and (machine.options.assumed or machine.options.in_test or machine.record.cut is not None)
    ):
        # Without its main, or all of its imports, nothing says what a fresh process would find under a name.
        return None
    what = "a lambda" if "<lambda>" in name else f"the local function {name.rpartition('.')[2]}"
    if "<" not in name:
        what = f"{name}, which only the main guard defines"
    outcome = outcome_of(
        machine,
        Kind.UNPICKLABLE_TARGET,
        start.anchor,
        "crash",
        certain=launch.certain,
        launcher=start.launcher,
        subject=what,
        condition=launch.condition,
        within=start.anchor,
        started=start.chain,
    )
    machine.emit(outcome)
    return outcome


def _nameless(machine: Machine, state: State, start: Start, way: Way) -> Outcome | None:
    """A lambda or local function is refused when it is pickled, before the child is anything."""
    if way.method not in FRESH or start.pickler is not Pickler.NAMES:
        return None
    names = [unpicklable_task(state, t.function) for t in (start.initializer, *start.tasks) if t is not None]
    name = next((n for n in names if n is not None), None)
    return None if name is None else lambda_task(machine, state, start, way, name)


def unpicklable_task(state: State, function: Value) -> str | None:
    """The name of a lambda or local function where a task names one: pools pickle tasks under any method."""
    for atom in function:
        target: Atom = atom
        while isinstance(target, Partial | Task):
            target = target.function[0] if target.function else Const(None)
        if isinstance(target, Bound):
            target = target.function
        found = state.get(target) if isinstance(target, Ref) else None
        if isinstance(found, Closure) and "<" in found.address[1]:
            return found.address[1]
    return None


def lambda_task(machine: Machine, state: State, start: Start, way: Way, name: str) -> Outcome | None:
    """A lambda handed to a pool: pickling it fails whatever the start method."""
    return _lost(machine, state, start, launch_of(start, way, "unpickle", start.anchor), name)
