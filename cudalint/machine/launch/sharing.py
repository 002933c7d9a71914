"""Several workers with a context on one GPU."""

from __future__ import annotations

from cudalint.machine import questions
from cudalint.machine.assumed import is_one
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch.launching import FRESH, Start, Way
from cudalint.machine.outcome import Kind
from cudalint.machine.reporting import outcome_of, told_by_worker
from cudalint.machine.state import Context, Process, State
from cudalint.machine.trace import Chain
from cudalint.machine.values import Const, only
from cudalint.structs import replace

# Each reserves most of the GPU: on one H200 four of them at once worked, six and eight did not (JAX 0.11).
_TOO_MANY_JAX = 6


def check_gpu_sharing(machine: Machine, state: State, start: Start, way: Way, children: list[State]) -> None:
    """More than one worker with a context on the same GPU, or a parent that took all its memory.

    The children are the paths of one worker: each adds to what was there before the launch, and not to another path.
    """
    before = dict(state.process.gpu_sharers)
    grown = dict(before)
    ranks: dict[tuple[str, str], set[int | None]] = {}
    started_by = questions.only_rank(state.facts)
    for child in children:
        if _parent_took_all(state, child):
            _shared_outcome(machine, state, start, way, child, "crash", child.process.driver)
            return
        if start.family == "spawn" and machine.record.cut is not None:
            # Ranks choose a device: what was left out may do so, or tell them which.
            continue
        for opened in sorted(filter(_on_one_gpu, child.process.contexts), key=_place):
            key = _place(opened)
            ranks.setdefault(key, set()).add(None if opened.rank == started_by else opened.rank)
            if None not in ranks[key] and len(ranks[key]) == 1:
                continue
            is_repeated = start.many or (start.adds_up and state.process.answering)
            count = before.get(key, 0) + (2 if is_repeated else 1)
            grown[key] = count
            if start.adds_up or start.family in ("process", "fork"):
                state.process = replace(state.process, gpu_sharers=tuple(sorted(grown.items(), key=repr)))
            if not start.many and is_one(questions.DEVICES, state):
                # Workers that are distributed over the GPUs share one only where there is no other.
                continue
            if count > 1 or state.process.siblings != 1:
                known = _at_once(start, count, state.process.siblings)
                memory = _memory(start, way, child.process, known)
                # A number of workers that the machine decides may be more than its GPU holds.
                meant = memory is None and opened.prepared and start.count is not None
                _shared_outcome(machine, state, start, way, child, memory, opened.where, meant)
                # Another path of the worker may come to the same, so that what this one assumes need not be so.
                break


def _at_once(start: Start, seen: int, siblings: int | None) -> int | None:
    """How many such workers there are at the same time, those that siblings of this process start included."""
    own = seen if start.family in ("process", "fork") else start.count
    return None if own is None or siblings is None else own * siblings


def _parent_took_all(state: State, child: State) -> bool:
    """A TensorFlow parent without memory growth leaves nothing for its children."""
    parent = state.process
    return parent.is_initialised("tensorflow") and parent.growth is None and child.process.is_initialised("tensorflow")


def _memory(start: Start, way: Way, child: Process, known: int | None) -> str | None:
    """How so many workers that each reserve GPU memory end: None where they only cost a context."""
    if child.is_initialised("tensorflow") and child.growth is None:
        if known is not None and known < (8 if way.method in FRESH else 4):
            return "cost"
        return "hang" if way.method == "fork" and start.family == "pool" else "crash"
    if child.is_initialised("jax") and not _preallocation_off(child) and (known is None or known >= _TOO_MANY_JAX):
        return "crash"
    return None


def _preallocation_off(process: Process) -> bool:
    if process.environ("XLA_PYTHON_CLIENT_MEM_FRACTION") is not None:
        return True
    if process.environ("XLA_PYTHON_CLIENT_ALLOCATOR") is not None:
        return True
    value = process.environ("XLA_PYTHON_CLIENT_PREALLOCATE")
    return value is not None and value != (Const("true"),)


def _on_one_gpu(opened: Context) -> bool:
    """Whether a context is on the same GPU in all workers."""
    same = not opened.visible or isinstance(only(opened.visible), Const)
    return same and (opened.index is None or isinstance(opened.index, int))


def _place(opened: Context) -> tuple[str, str]:
    return repr(opened.visible), repr(opened.index)


def _shared_outcome(
    machine: Machine,
    state: State,
    start: Start,
    way: Way,
    child: State,
    memory: str | None,
    witness: Chain | None,
    meant: bool = False,
) -> None:
    framework = next(iter(dict(child.process.initialised)), "torch")
    cause = dict(state.process.initialised).get("tensorflow") if memory is not None else None
    machine.emit(
        outcome_of(
            machine,
            told_by_worker(state, child),
            Kind.SHARED_GPU if memory is None else Kind.MEMORY_NOT_SHARED,
            start.anchor,
            "cost" if memory is None else memory,
            certain=way.certain,
            cause=cause,
            effect=witness,
            launcher=start.launcher,
            subject=framework,
            condition=way.condition,
            within=start.anchor,
            started=start.chain,
            benign=meant,
        )
    )
