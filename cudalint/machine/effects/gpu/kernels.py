"""Kernels that a decorator makes of functions."""

from __future__ import annotations

from cudalint.machine.effects import plain
from cudalint.machine.effects.gpu import cuda
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.values import Atom, Const, Ref, Unknown


def decorate(machine: Machine, call: Call) -> Results:
    """``@cuda.jit(signature)``: compiled there and then, for the GPU that it asks; else at the first launch."""
    framework = call.text("framework")
    if not any(_is_signature(atom, call.state, framework) for atom in call.get("signature") or ()):
        return plain.decorator_factory(machine, call)
    after = cuda.touch(machine, call.state, call.frame, call.site, framework, "use", call.label, context=True)
    return [] if after is None else [(after, plain.IDENTITY)]


def _is_signature(atom: Atom, state: State, framework: str) -> bool:
    """Whether something says which types a kernel takes: a text, a call of a type, or a list of these."""
    match atom, state.get(atom) if isinstance(atom, Ref) else None:
        case Const(value=str()), _:
            return True
        case Unknown(sym=("call", _, _, _, str(path), *_)), _:
            return path.startswith(f"{framework}.")
        case _, Sequence(kind="list" | "tuple"):
            return True
    return False
