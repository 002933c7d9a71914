"""What a trial shows: what every way through a call did to CUDA, to start methods and devices, and what it gave."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from cudalint.deriving.trials import End, Trial
from cudalint.machine.gpu_memory import gpu_atoms
from cudalint.machine.heap import Class, Dict, Instance, LibraryObject, Sequence
from cudalint.machine.outcome import Kind
from cudalint.machine.state import Process, State
from cudalint.machine.values import Const, Dev, Rank, Ref, Tensor, Value, only
from cudalint.structs import Frozen

_DEEPEST = 4
READS = frozenset({Kind.INHERITED_CUDA, Kind.INHERITED_IN_LOADER})
NEEDS_CUDA = frozenset({Kind.CUDA_IN_FORK, Kind.CUDA_IN_LOADER_FORK, Kind.FORK_LAUNCHER})


class Level(IntEnum):
    """How far a process went with the driver."""

    NONE = 0
    QUERY = 1
    INIT = 2


class Shown(Frozen):
    """What a trial shows: ``least`` happens on every way through, ``most`` on some."""

    least: Level
    most: Level
    framework: str
    opens_context: bool


def shown(trial: Trial | None) -> Shown:
    """What a trial did to the driver; a call that was cut or never comes back shows nothing for sure."""
    ends = () if trial is None else trial.ends
    levels = [_level(end.process) for end in ends]
    sure = bool(levels) and trial is not None and not trial.cut
    frameworks = sorted({name for end in ends for name, _ in end.process.initialised})
    frameworks = frameworks or sorted({name for end in ends for name in end.process.asked_by})
    return Shown(
        min(levels) if sure else Level.NONE,
        max(levels, default=Level.NONE),
        frameworks[0] if frameworks else "",
        sure and all(end.process.contexts for end in ends),
    )


def _level(process: Process) -> Level:
    if process.initialised:
        return Level.INIT
    return Level.NONE if process.driver is None else Level.QUERY


def fails_in_fork(trial: Trial | None) -> frozenset[Kind]:
    """What goes wrong first on every way through a call in a forked child; empty where one of them goes well."""
    if trial is None or trial.cut or not trial.record.outcomes:
        return frozenset()
    if any(not end.process.dead for end in trial.ends):
        return frozenset()
    return frozenset(outcome.kind for outcome in trial.record.outcomes)


def may_fail(trial: Trial | None) -> bool:
    """Whether something goes wrong on some way through a call, or may where not all of it was seen."""
    return trial is not None and (trial.partial or bool(trial.record.outcomes))


def tensors(trial: Trial) -> list[Tensor]:
    """The GPU arrays that a call gives; empty where it may give something else."""
    found: list[Tensor] = []
    for end in trial.ends:
        atom = only(end.value)
        if not isinstance(atom, Tensor) or not atom.device.is_gpu:
            return []
        found.append(atom)
    return found


def made(trial: Trial) -> tuple[Class | str, bool] | None:
    """The class whose instance every way through gives, or the library's type; and whether it holds GPU memory."""
    kinds = {_kind(end) for end in trial.ends}
    if len(kinds) != 1 or (kind := next(iter(kinds))) is None:
        return None
    cls, name = kind
    holds = all(_holds(end.value, end.state) for end in trial.ends)
    if cls is None:
        return name, holds
    found = trial.ends[0].state.get(cls)
    return (found, holds) if isinstance(found, Class) else None


def _kind(end: End) -> tuple[Ref | None, str] | None:
    atom = only(end.value)
    found = end.state.get(atom) if isinstance(atom, Ref) else None
    if isinstance(found, Instance):
        return found.cls, ""
    if isinstance(found, LibraryObject) and not found.type.startswith("cudalint."):
        return None, found.type
    return None


def _holds(value: Value, state: State, depth: int = 0) -> bool:
    """Whether GPU memory is reached from a value."""
    if gpu_atoms(value, state):
        return True
    if depth > _DEEPEST:
        return False
    return any(_holds(inner, state, depth + 1) for atom in value for inner in _inside(atom, state))


def _inside(atom: object, state: State) -> Iterable[Value]:
    match state.get(atom) if isinstance(atom, Ref) else None:
        case Instance(attributes=attributes):
            yield from attributes.values()
        case LibraryObject(fields=fields):
            yield from (v for name, v in fields.items() if name != "<snapshot>")
        case Sequence(items=items, element=element):
            yield from (*(items or ()), element)
        case Dict(items=items, element=element):
            yield from (*items.values(), element)


def simple(trial: Trial) -> str:
    """What every way through gives, as ``returns`` says it; empty where that cannot be said."""
    values = {end.value for end in trial.ends}
    atom = only(next(iter(values))) if len(values) == 1 else None
    match atom:
        case Const(value=None):
            return "none"
        case Const(value=bool(truth)):
            return "true" if truth else "false"
        case Const(value=int(number)):
            return f"int:{number}"
        case Const(value=str(text)):
            return f"str:{text}"
        case Dev(kind="cuda", index=None):
            return "device"
    return ""


def start_methods(trial: Trial, before: Process) -> dict[str, str]:
    """The start methods that every way through sets, by library."""
    found: dict[str, str] = {}
    for library, method in trial.ends[0].process.methods if trial.ends else ():
        names = method.names
        if names is None or len(names) != 1 or before.method(library).names == names:
            continue
        if all(end.process.method(library).names == names for end in trial.ends):
            found[library] = names[0]
    return found


def selects_rank(trial: Trial) -> bool:
    """Whether every way through selects the GPU of this process's local rank."""
    chosen = [end.process.device() for end in trial.ends]
    return bool(chosen) and all(c is not None and _is_local(c.index) for c in chosen)


def _is_local(index: object) -> bool:
    return isinstance(index, Rank) and index.kind == "local"


def joins_group(trial: Trial) -> bool:
    """Whether every way through joins a process group."""
    return bool(trial.ends) and all(end.process.group is not None for end in trial.ends)
