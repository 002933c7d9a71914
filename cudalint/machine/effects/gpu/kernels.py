"""Kernels that a decorator makes of functions."""

from __future__ import annotations

from cudalint.machine.effects import plain
from cudalint.machine.effects.gpu import cuda
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import LibraryObject, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.values import Atom, Const, Lib, Ref, Unknown, Value, constant


def decorate(machine: Machine, call: Call) -> Results:
    """``@cuda.jit(signature)``: compiled there and then, for the GPU that it asks; else at the first launch.

    What other kernels call (``device=True``) is never launched.
    """
    framework, is_launched = call.text("framework"), constant(call.kwargs.get("device", ())) is not True
    makes: Value = (Lib(f"{call.text('type')}.of"),) if is_launched else plain.IDENTITY
    if not any(_is_signature(atom, call.state, framework) for atom in call.get("signature") or ()):
        is_bare = bool(call.args) and any(isinstance(atom, Ref) for atom in call.args[0])
        return make(machine, call) if is_bare and is_launched else [(call.state, makes)]
    after = cuda.touch(machine, call.state, call.frame, call.site, framework, "use", call.label, context=True)
    return [] if after is None else [(after, makes)]


def make(machine: Machine, call: Call) -> Results:
    """What stands for a function that is a kernel now."""
    made = LibraryObject(call.text("type"), {}, call.site)
    return [(call.state, (call.state.new(("kernel", call.site), made),))]


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
