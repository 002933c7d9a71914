"""Which part of what passes between processes lies on a GPU, and which part of it a process has taken."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from cudalint.machine import questions
from cudalint.machine.gpu_memory import memory_of
from cudalint.machine.heap import Dict, Instance, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.interpreter.core import Part
from cudalint.machine.slices import is_slice
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import VIEWS, Atom, Const, Ref, Unknown, Value

# Any row of what was sent, or all of it.
_ANY = "any"
# How deep messages are nested.
_DEEPEST = 3


def on_gpu(machine: Machine, value: Value, state: State, depth: int = 0) -> Iterator[Part]:
    """The ways from a message to what of it lies on a GPU: by the number, the key or the name of each part."""
    for atom in value:
        if memory_of(atom, state) is not None:
            yield ()
        elif isinstance(atom, Ref) and depth < _DEEPEST:
            for step, inner in _steps(machine, atom, state):
                for rest in on_gpu(machine, inner, state, depth + 1):
                    yield (step, *rest)


def _steps(machine: Machine, ref: Ref, state: State) -> Iterator[tuple[Hashable, Value]]:
    match state.get(ref):
        case Sequence(items=items) if items is not None:
            yield from enumerate(items)
        case Dict(items=items):
            yield from items.items()
        case Instance(attributes=attributes):
            yield from attributes.items()
            yield from enumerate(machine.exact_items((ref,), state) or ())


def taken(atom: Atom) -> tuple[tuple[str, ...], Site, Part] | None:
    """Who took something out of a channel, out of which, and by which way from the message; None of all else."""
    way: list[Hashable] = []
    sym = atom.sym if isinstance(atom, Unknown) else None
    while True:
        match sym:
            case (questions.RECEIVED, Site(), tuple(receiver), Site() as channel):
                return receiver, channel, tuple(reversed(way))
            case (base, ".", str(name)):
                way.append(name)
            case (base, "[]", ("part", _, _, int(position))):
                way.append(position)
            case (base, "[]", (Const(value=key),)):
                way.append(key)
            case (base, "each", int()):
                way.append(_ANY)
            case ("call", Site(), tuple(), int(), (kind, base)) if kind == VIEWS:
                way.append(_ANY)
            case (base, "[]", tuple(bounds)) if is_slice(bounds):
                way.append(_ANY)
            case _:
                return None
        sym = base


def leads(received: Part, sent: Part) -> bool:
    """Whether a part of a message that was taken is, or holds, what was sent there, or is a view of it."""
    shared = zip(received, sent, strict=False)
    rows = received[len(sent) :]
    return all(step == other or (step == _ANY and isinstance(other, int)) for step, other in shared) and all(
        isinstance(row, int) or row == _ANY for row in rows
    )
