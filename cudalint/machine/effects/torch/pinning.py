"""Pinned batches: what a loader pins, and what refuses to be pinned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cudalint.machine import gpu_memory, mappings
from cudalint.machine.effects.gpu import queries
from cudalint.machine.frame import Call, Frame, Raised, Results
from cudalint.machine.heap import Dict, Instance, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.outcome import Kind, Outcome
from cudalint.machine.reporting import outcome_of
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Atom, Bound, Ref, Tensor, Value
from cudalint.structs import replace

# How deep a batch lies in the containers that a loader pins.
_DEEPEST = 3


def pins_gpu(machine: Machine, call: Call, state: State, batch: Value, anchor: Site) -> Outcome | None:
    """Pinning a batch that is on the GPU raises."""
    found = gpu_memory.tensors_in(parts(machine, batch, state), state)
    tensors = [a for a in found if isinstance(a, Tensor)]
    if not tensors:
        return None
    origin = tensors[0].origin
    return outcome_of(
        machine,
        state,
        Kind.PIN_OF_CUDA,
        anchor,
        "crash",
        cause=origin,
        effect=machine.chain(state, call.site, "the loader pins a batch that is on the GPU"),
    )


def pinned(machine: Machine, call: Call, state: State, batch: Value, anchor: Site) -> Results:
    """A batch after pinning: tensors are pinned, and an object of the program is asked to do it, if it can."""
    outcome = pins_gpu(machine, call, state, batch, anchor)
    if outcome is not None:
        return fails_to_pin(machine, call, state, outcome)
    results: Results = []
    for i, atom in enumerate(batch):
        current = state if i == len(batch) - 1 else state.clone()
        results.extend(_asked_to_pin(machine, call, atom, current, anchor))
    return results


def parts(machine: Machine, value: Value, state: State, depth: int = 0) -> Iterator[Value]:
    """A batch and what lies in it, where a loader goes through it: lists, tuples, also with names, and dicts."""
    yield value
    if depth == _DEEPEST:
        return
    for atom in value:
        inside: Iterable[Value] = ()
        held = mappings.content_of(atom, state) or atom
        match state.get(held) if isinstance(held, Ref) else None:
            case Sequence(items=items, element=element):
                inside = items or (element,)
            case Dict(items=entries, element=element):
                inside = (*entries.values(), element)
            case Instance() as found:
                inside = machine._row_of(found, state) or ()
        for one in inside:
            yield from parts(machine, one, state, depth + 1)


def _asked_to_pin(machine: Machine, call: Call, atom: Atom, state: State, anchor: Site, depth: int = 0) -> Results:
    found = state.get(atom) if isinstance(atom, Ref) else None
    method = machine.user_method(found, "pin_memory", state) if isinstance(found, Instance) else None
    if method is None:
        held = {a: None for value in parts(machine, (atom,), state) for a in value} if not depth else {}
        states = [state]
        for one in held:
            states = [after for s in states for after, _ in _asked_to_pin(machine, call, one, s, anchor, depth + 1)]
        return [(after, (atom,)) for after in states]
    frame = Frame(call.frame.scope, call.frame.module, call.frame.function, tries=call.frame.tries)
    results = machine.call_value((Bound(method, atom),), [], {}, state, frame, call.site)
    for after, raised in frame.raises:
        outcome = raised.outcome
        if outcome is not None and outcome.kind is Kind.PIN_OF_CUDA:
            results.extend(fails_to_pin(machine, call, after, replace(outcome, anchor=anchor)))
        else:
            call.frame.raises.append((after, raised))
    return results


def pin(machine: Machine, call: Call) -> Results:
    """``x.pin_memory()``: of a tensor on the GPU it raises, which is told where a loader asked for it."""
    held = call.receiver
    if not isinstance(held, Tensor) or held.framework != "torch" or not held.device.is_gpu:
        return queries.gpu_call(machine, call)
    outcome = outcome_of(
        machine,
        call.state,
        Kind.PIN_OF_CUDA,
        call.site,
        "crash",
        cause=held.origin,
        effect=machine.chain(call.state, call.site, "the batch pins a tensor that is on the GPU"),
    )
    return machine.fail(call.state, call.frame, Raised(outcome, ("RuntimeError",), harmless=True))


def fails_to_pin(machine: Machine, call: Call, state: State, outcome: Outcome) -> Results:
    """Pinning fails on this path; whoever catches that is told of it there."""
    if call.frame.tries == 0:
        machine.emit(outcome)
        return machine.fail(state, call.frame, Raised(None, ("RuntimeError",)))
    # Whoever catches it may go on.
    return machine.fail(state, call.frame, Raised(outcome, ("RuntimeError",)))
