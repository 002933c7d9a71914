"""GPU memory that a process puts into a channel and takes from it itself: torch opens only the memory of another one.

Every channel of multiprocessing fails alike there (H200, torch 2.11, Python 3.12: `CUDA error: invalid device context`
for queues and pipes of every start method, for tensors, parameters, models, views and what has been let go since).
"""

from __future__ import annotations

from cudalint.machine.frame import Call, Raised, Results
from cudalint.machine.heap import LibraryObject
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch.crossing import Carried
from cudalint.machine.outcome import Kind
from cudalint.machine.reporting import outcome_of
from cudalint.machine.state import State
from cudalint.machine.trace import Chain
from cudalint.machine.values import NONE, Const, Ref, constant
from cudalint.structs import Frozen, replace

# The field of a channel that says what its maker has put there and not taken yet, in order.
_LINE = "<own line>"
# More is not remembered of a channel.
_MOST = 16


class _Put(Frozen):
    """Something that stands in a channel; ``where`` it was put there, if that is torch memory of a GPU."""

    sender: tuple[str, ...]
    where: Chain | None = None
    origin: Chain | None = None


def put(machine: Machine, call: Call, channel: Ref, crossing: list[Carried]) -> None:
    """``q.put(x)``: it stands behind what was put there before."""
    state, found = call.state, call.state.get(channel)
    if not isinstance(found, LibraryObject) or not _is_its_own(machine, found, state):
        return
    line = _line(found)
    if line is None or len(line) >= _MOST:
        state.store(channel, lose_count(found))
        return
    memory = next((one for one in crossing if one.certain and one.is_picklable and one.is_shared), None)
    one = _Put(state.process.identity)
    if memory is not None:
        where = machine.chain(state, call.site, f"{call.label} shares GPU memory of this process")
        one = replace(one, where=where, origin=memory.origin)
    state.store(channel, replace(found, fields={**found.fields, _LINE: (Const((*line, one)),)}))


def take(machine: Machine, call: Call, channel: LibraryObject) -> Results | None:
    """``q.get()``: it fails where this process shares with itself; None where it does not."""
    state, ref, line = call.state, call.receiver, _line(channel)
    if not line or not isinstance(ref, Ref) or not _is_its_own(machine, channel, state):
        return None
    state.store(ref, replace(channel, fields={**channel.fields, _LINE: (Const(line[1:]),)}))
    first = line[0]
    if first.where is None or first.sender != state.process.identity:
        return None
    outcome = outcome_of(
        machine,
        state,
        Kind.OWN_MEMORY,
        call.site,
        "crash",
        launcher=call.label,
        subject="CUDA tensor",
        launch=state.process.launch,
    )
    origin = () if first.origin is None else first.origin.steps()
    outcome = replace(outcome, cause=(*origin, first.where.steps()[-1]))
    return machine.fail(state, call.frame, Raised(outcome, ("AcceleratorError", "RuntimeError")))


def lose_count(channel: LibraryObject) -> LibraryObject:
    """The channel, of which somebody else may put something into it or take it."""
    return replace(channel, fields={**channel.fields, _LINE: NONE})


def _is_its_own(machine: Machine, channel: LibraryObject, state: State) -> bool:
    """Whether nobody else can hold a channel: no process has been started, and it leads to none that runs elsewhere."""
    return not machine.record.launches and not state.process.dead and "<users>" not in channel.fields


def _line(channel: LibraryObject) -> tuple[_Put, ...] | None:
    """What stands in a channel; None where that is not known."""
    kept = channel.fields.get(_LINE)
    if kept is None:
        return ()
    line = constant(kept)
    return line if isinstance(line, tuple) else None
