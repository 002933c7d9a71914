"""Starting processes: what they run, and what their end means for their parent."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial

from cudalint.machine import questions
from cudalint.machine.frame import Frame, Raised
from cudalint.machine.heap import Instance, LibraryObject
from cudalint.machine.interpreter import Beginning, Machine
from cudalint.machine.joining import merge
from cudalint.machine.launch.children import boot, child_identity, fork, server_poison, tell
from cudalint.machine.launch.crossing import Pickler, Transfer, carried, pickles_itself, reachable
from cudalint.machine.launch.launching import FRESH, Ended, Start, Way, fix_default, launch_of
from cudalint.machine.launch.noting import note_launch, note_process
from cudalint.machine.launch.pickling import function_sites, is_plain, refused, runs_code, runs_code_by_value, unproven
from cudalint.machine.launch.pickling_errors import (
    arriving_error,
    crossing_error,
    lookup_error,
    module_error,
    nameless_error,
    refusal,
)
from cudalint.machine.launch.sharing import check_gpu_sharing
from cudalint.machine.launched import Launched
from cudalint.machine.outcome import Kind, Outcome
from cudalint.machine.reporting import outcome_of
from cudalint.machine.state import Launch, State
from cudalint.machine.trace import Site
from cudalint.machine.values import NONE, Rank, Ref, Task, Tensor, Unknown, Value, union
from cudalint.structs import replace

_ENDS = frozenset({"crash", "hang", "child-death"})
# So many processes are followed, each of which the one before it started.
_GENERATIONS = 4
# So many that begin at the same call: a worker that starts workers like itself does so without an end.
_OWN_GENERATIONS = 1
# Workers of these give back what their tasks return, as it lies in the memory of their GPU.
_GIVES_BACK = frozenset({"loader", "pool", "executor"})


def start(machine: Machine, state: State, frame: Frame, start: Start, way: Way, parent: State | None = None) -> Ended:
    """Run one worker under one start method. ``parent`` is the state it forks from, if not the present one."""
    is_deep = len((parent or state).process.identity) > _GENERATIONS
    if is_deep or machine.running.count(start.anchor) > _OWN_GENERATIONS:
        machine.record.cut = machine.record.cut or "processes nested too deeply"
        return Ended(None, [], began=False)
    identity = child_identity(parent or state, start)
    made = start.made or start.anchor
    held = parent is not None
    is_fresh = way.method in FRESH
    later = state.clone() if start.renewed and is_fresh else None
    launch = Beginning(
        start.anchor, way.method, made, identity, parent or state, held, start.inherited, later, start.waits
    )
    machine.begins_process(launch)
    if is_fresh:
        machine.begins_fresh(launch, state)
    ended = _started(machine, state, frame, start, way, parent)
    machine.gives_back(ended.children, ended.raised)
    if start.family in _GIVES_BACK and not start.dropped:
        for child, value in ended.children:
            machine.tells(value, child)
    if is_fresh:
        machine.ends_fresh(ended.began, start.family in _GIVES_BACK and not start.dropped and _lends(ended))
    machine.ends_process()
    return ended


def _worst(made: Sequence[Outcome], anchors: set[Site]) -> Outcome | None:
    """How workers of a launch fail: what their parent is told of first, in whatever order their paths were taken."""
    ends = [o for o in made if o.how in _ENDS and not o.caught and o.within in anchors]
    return next((o for o in ends if o.how == "crash"), ends[0] if ends else None)


def _lends(ended: Ended) -> bool:
    """Whether what the workers give back lies in GPU memory of theirs."""
    found = (c.atom for child, value in ended.children for c in carried(value, child, Pickler.NAMES))
    return any(isinstance(atom, Tensor) and atom.device.is_gpu for atom in found)


def _started(machine: Machine, state: State, frame: Frame, start: Start, way: Way, parent: State | None) -> Ended:
    known = machine.record.launches.get((start.anchor, way.method))
    launched = _launched(machine, state, start, way)
    machine.record.launches[start.anchor, way.method] = launched.with_doubts_of(known)
    noted = machine.record.processes_noted
    if noted is not None:
        note_launch(machine, state, start, way, parent, launched.settled)
    launch = launch_of(start, way, "unpickle", start.anchor)
    fresh = way.method in FRESH
    if fresh:
        if way.certain and way.method != "loky":
            fix_default(machine, state, start.library, start.anchor, "starting a fresh process")
        of_server = way.method == "forkserver" and server_poison(machine, parent or state) is not None
        for anchor in _anchors(start) if way.condition is None and not of_server else ():
            machine.protect(anchor, state)
        forget_late_variable(machine, state)
    before = len(machine.record.outcomes)
    blocked = crossing_error(machine, state, start, way, launch, parent or state) or nameless_error(
        machine, state, start, way
    )
    if blocked is not None and not machine.options.ignores_pickling_errors:
        return Ended(blocked, [])
    children = (
        boot(machine, parent or state, start, way, launch) if fresh else [fork(machine, parent or state, start, launch)]
    )
    if fresh:
        machine.has_booted(children)
        found = (arriving_error(machine, state, start, way, launch, child.process) for child in children)
        if (blocked := next(filter(None, found), None)) is not None:
            return Ended(blocked, [])
    done: list[tuple[State, Value]] = []
    raised: list[tuple[State, Raised]] = []
    for child in children:
        if parent is not None:
            tell(child, state, start)
        inner = Frame(Ref(("module", machine.main)), machine.main, tries=int(start.listens))
        transfer = Transfer(machine, state, child, start.pickler, child.process.identity, copied=start.copies)
        needs_copy = fresh or parent is not None or _pickled_by_itself(start, state)
        tasks = [_sent(t, transfer) for t in start.tasks] if needs_copy else list(start.tasks)
        first = start.initializer
        if first is not None and fresh:
            first = _sent(first, transfer)
        if (lost := _lost(machine, state, start, way, launch, transfer)) is not None:
            return Ended(lost, [])
        if fresh and start.copies:
            _unpickled(machine, child, inner, start, tasks if first is None else [first, *tasks])
        done.extend(_run(machine, child, inner, start, way, first, tasks))
        raised.extend(inner.raises)
    if noted is not None:
        for child, _ in done:
            note_process(noted, child.process)
    made = machine.record.outcomes[before:] = [
        _of_worker(outcome, state, _anchors(start)) for outcome in machine.record.outcomes[before:]
    ]
    failed = _worst(made, _anchors(start))
    if failed is not None and not fresh:
        _method_elsewhere(machine, state, start, failed)
    if failed is None and start.shares and (fresh or start.family != "loader"):
        check_gpu_sharing(machine, state, start, way, [c for c, _ in done])
    return Ended(failed, done, began=bool(children), raised=raised)


def _lost(machine: Machine, state: State, start: Start, way: Way, launch: Launch, transfer: Transfer) -> Outcome | None:
    """What a worker cannot be sent, or does not find where it starts; the first that is told."""
    found: Outcome | None = None
    if transfer.lost and way.method != "fork":
        found = lookup_error(machine, state, start, launch, transfer.lost[0])
    if found is None and transfer.refused and way.method != "fork":
        found = refusal(machine, state, start, launch, transfer.refused[0])
    if found is None and transfer.unfound and way.method in FRESH:
        found = module_error(machine, state, start, launch, transfer.unfound[0])
    return found


def _of_worker(outcome: Outcome, parent: State, anchors: set[Site]) -> Outcome:
    """An outcome in a worker, told which of its facts were settled before, or by who started the program."""
    if outcome.outside is not None or outcome.within not in anchors:
        return outcome
    outside = tuple(fact for fact in outcome.facts if fact in parent.facts or questions.is_of_the_run(fact[0]))
    return replace(outcome, outside=outside)


def _launched(machine: Machine, state: State, start: Start, way: Way) -> Launched:
    """What repairs need to know of a launch."""
    chosen = [f.site for a in start.context if isinstance(a, Ref) and isinstance(f := state.get(a), LibraryObject)]
    where = state.process.method(start.library).where
    if not chosen and start.context == NONE and where is not None:
        chosen = [where.step.site]
    sent = (*start.pickled, *start.inherited)
    plain = partial(is_plain, library=machine.library)
    fresh = way.method in FRESH and start.pickler is not Pickler.LOCALS
    held = refused(sent, state, machine, by_value=start.pickler is Pickler.GLOBALS)
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
        unproven=next((reason for reason in _unproven(start, state, plain, machine.main) if reason is not None), None),
        targets=tuple(dict.fromkeys(targets)),
        prepared=tuple(dict.fromkeys(prepared)),
        keyword=start.keyword,
        place=start.place,
        ends=start.ends,
        refused=held if fresh else None,
        held=held,
    )


def _unproven(start: Start, state: State, plain: Callable[[Unknown], bool], main: str) -> Iterator[str | None]:
    """What may not arrive in a fresh process that a forked one would have."""
    if start.pickler is Pickler.GLOBALS:
        yield runs_code_by_value((*start.pickled, *start.inherited), state, main)
    for value in start.pickled:
        # A fork pickles it as well, and it arrives as it did; only the code that runs then may find something else.
        # But joblib's workers have picklers of their own.
        yield unproven(value, state, plain) if start.family == "joblib" else runs_code(value, state)
    for value in start.inherited:
        yield unproven(value, state, plain)


def forget_late_variable(machine: Machine, state: State) -> None:
    """A variable that was set too late for this process does no harm.

    It was set for the fresh processes that this one starts, or beside a call that chooses the device as well.
    """
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
                anchor=where.step.site,
                cause=where.steps(),
                detail=start.library,
                subject="",
                within=start.anchor,
            )
        )


def _anchors(start: Start) -> set[Site]:
    return {start.anchor} | ({start.initializer_anchor} if start.initializer_anchor is not None else set())


def _pickled_by_itself(start: Start, state: State) -> bool:
    """Whether an object that travels to a forked worker says itself what arrives there: it is not the inherited one."""
    found = (state.get(ref) for ref in reachable(tuple(a for value in start.pickled for a in value), state))
    return any(isinstance(one, Instance) and pickles_itself(one, state) for one in found)


def _sent(task: Task, transfer: Transfer) -> Task:
    moved = transfer.atom(task)
    return moved if isinstance(moved, Task) else task


def _unpickled(machine: Machine, child: State, frame: Frame, start: Start, tasks: list[Task]) -> None:
    """What of the tasks lies on a GPU is there in the worker before it can select another."""
    for found in carried(tuple(tasks), child, start.pickler):
        if found.certain and found.memory is not None:
            machine.effects.unpickled(machine, child, frame, start.anchor, found.memory)


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
        machine.effects.process_ends(machine, current)
    machine.running.pop()
    return states


def _producer_ends(machine: Machine, child: State, start: Start) -> None:
    """GPU tensors that a worker put on a queue, after which nothing keeps the worker alive.

    Whoever ends because the other end of a pipe told it to go on no longer sends what that does not wait for.
    """
    for sent in child.process.pending:
        ends = start.family in ("process", "spawn", "fork")
        is_dismissed = ends and questions.was_told_no(child.facts, sent.channel)
        if not sent.on_gpu:
            machine.leaves_unsent(sent.site, child)
            continue
        ends = ends and not is_dismissed
        machine.emit(
            outcome_of(
                machine,
                child,
                Kind.PRODUCER_ENDS if ends else Kind.CUDA_ACROSS,
                sent.site,
                "crash" if ends else "cost",
                effect=sent.where,
                launcher=start.launcher,
                subject="CUDA tensor",
                launch=child.process.launch,
                benign=is_dismissed,
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
    answered = child.facts
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
                # One task stands for all; it is run twice, also where it is the only one.
                is_first = j == 0 and not (i > 0 and start.many)
                machine.begins_task(current, is_first, (*task.args, *(value for _, value in task.kwargs)))
                if current.second_round:
                    # It has other arguments: what was answered of those of the first tells nothing of these.
                    current.facts = tuple(f for f in current.facts if f in answered or not _is_about(f[0], task))
                if start.adds_up and j > 0:
                    # What the earlier task opened was counted when it was submitted.
                    current.process = replace(current.process, contexts=frozenset())
            states = _perform(machine, states, frame, task, start, way)
    return states


def _is_about(question: Hashable, task: Task) -> bool:
    """Whether an answer is about an argument of a task."""
    given = {part for value in task.args for part in (value, *value)}
    stack: list[Hashable] = [question]
    while stack:
        part = stack.pop()
        if part in given:
            return True
        if isinstance(part, tuple):
            stack.extend(part)
    return False


def _perform(
    machine: Machine, states: list[tuple[State, Value]], frame: Frame, task: Task, start: Start, way: Way
) -> list[tuple[State, Value]]:
    result: list[tuple[State, Value]] = []
    before, frame.raises = frame.raises, []
    for state, _ in states:
        made = machine.call_value(task.function, list(task.args), dict(task.kwargs), state, frame, start.anchor)
        result.extend(made)
        for _, raised in frame.raises:
            if raised.outcome is not None:
                machine.emit(raised.outcome)
        machine.ends_task(bool(frame.raises))
        if not start.waits:
            machine.record.refused.extend(ended.facts for ended, raised in frame.raises if is_own(raised))
        # In what else it fails, that is told where it does.
        before.extend((ended, raised) for ended, raised in frame.raises if is_own(raised))
        frame.raises = []
    frame.raises = before
    by_state = merge([s for s, _ in result])
    if len(by_state) < len(result):
        value = union([v for _, v in result])
        return [(s, value) for s in by_state]
    return result


def is_own(raised: Raised) -> bool:
    """Whether it is an exception of the program's own, and no failure that a model describes."""
    is_told = raised.outcome is not None or raised.launch is not None or raised.missing is not None
    return not is_told and not raised.hidden and bool(raised.names)


def told_of_tasks(state: State, ended: list[Ended]) -> tuple[list[tuple[State, Raised]], bool]:
    """The exceptions of tasks that reach their parent, each on the path where it does, and whether one certainly does.

    Of a task that fails for some arguments only, that is known where all these are.
    """
    told: list[tuple[State, Raised]] = []
    is_sure = all(e.failed is None and not e.children for e in ended)
    for child, raised in ((child, raised) for each in ended for child, raised in each.raised):
        new = [fact for fact in child.facts if fact not in state.facts]
        ranks = {rank for sym, _ in new if isinstance(rank := questions.read(sym)[0], Rank)}
        if not all(map(_is_told, ranks)):
            continue
        after = state.clone()
        for sym, answer in new:
            if not isinstance(questions.read(sym)[0], Rank):
                after.assume(sym, answer)
        is_sure = is_sure or after.facts == state.facts
        told.append((after, replace(raised, value=())))
    return told, is_sure and bool(told)


def _is_told(rank: Rank) -> bool:
    return rank.numbers is not None


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
