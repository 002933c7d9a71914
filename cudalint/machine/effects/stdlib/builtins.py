"""Builtins of single values: casts, isinstance, print, names of the builtins themselves."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Hashable, Iterator

from cudalint.machine import exceptions, gpu_memory, operators, paths
from cudalint.machine.effects.gpu import cuda
from cudalint.machine.effects.stdlib.types import is_a_class, is_callable
from cudalint.machine.frame import Call, Raised, Results
from cudalint.machine.heap import TAKEN_OF, Dict, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.values import (
    NONE,
    Atom,
    Const,
    Dev,
    Lib,
    Rank,
    Ref,
    Tensor,
    Unknown,
    Value,
    const,
    constant,
    only,
    unknown,
)
from cudalint.structs import replace


def cast(machine: Machine, call: Call) -> Results:
    """``int``, ``str``, ``float``, ``bool``: constants and ranks keep what they mean."""
    kind = call.path.rpartition(".")[2]
    value = call.args[0] if call.args else const(_EMPTY[kind])
    state = call.state
    for atom in gpu_memory.gpu_atoms(value, state):
        after = cuda.read(machine, atom, state, call.frame, call.site, f"{kind}()")
        if after is None:
            return []
        state = after
    one = only(value)
    if call.frame.tries and isinstance(one, Const) and isinstance(one.value, str) and not _is_number(kind, one.value):
        return machine.fail(state, call.frame, Raised(None, ("ValueError",)))
    if call.frame.tries and kind in ("int", "float") and value == NONE:
        return machine.fail(state, call.frame, Raised(None, ("TypeError",)))
    said = machine.special(value, _CAST_BY.get(kind, ()), [], state, call.frame, call.site)
    if said is not None:
        return said
    if kind == "str" and (text := exceptions.text(value, state)) is not None:
        return [(state, text)]
    if kind == "bool":
        return [(s, _as_truth(machine, v, s, call)) for s, v in machine.judged([(state, value)], call.frame, call.site)]
    return [(state, tuple(dict.fromkeys(_cast_atom(kind, a, call) for a in value)))]


def _as_truth(machine: Machine, value: Value, state: State, call: Call) -> Value:
    verdict, _ = machine.truth(value, state)
    return tuple(dict.fromkeys(_cast_atom("bool", a, call) for a in value)) if verdict is None else const(verdict)


def _is_number(kind: str, text: str) -> bool:
    """Whether a text can be made a number, where one is asked for."""
    if kind not in ("int", "float"):
        return True
    try:
        _CASTS[kind](text)
    except ValueError:
        return False
    return True


# By what a class says what its objects are as texts and numbers.
_CAST_BY = {"str": ("__str__", "__repr__"), "int": ("__int__", "__index__"), "float": ("__float__", "__index__")}
_EMPTY: dict[str, Hashable] = {"int": 0, "str": "", "float": 0.0, "bool": False}


def _cast_atom(kind: str, atom: object, call: Call) -> Const | Rank | Dev | Unknown:
    match atom:
        case Rank():
            return atom
        case Dev(index=index) if kind == "str":
            return replace(atom, text=True) if isinstance(index, Rank) else Const(operators.device_text(atom))
        case Dev():
            return Unknown(("cast", call.site))
        case Const(value=value):
            try:
                return Const(_CASTS[kind](value))
            except (TypeError, ValueError, OverflowError):
                return Unknown(("cast", call.site))
        case Lib(path=path) if kind == "str" and _is_type(path):
            return Const(f"<class '{path.removeprefix('builtins.')}'>")
        case Unknown(sym=sym) if kind == "str" and (written := paths.written(sym)) is not None:
            return Const(str(written))
        case Unknown(sym=sym):
            return Unknown((kind, sym))
    return Unknown((kind, call.site))


def _is_type(path: str) -> bool:
    """Whether this is a type of Python's builtins."""
    name = path.removeprefix("builtins.")
    return path != name and isinstance(getattr(builtins, name, None), type)


def _to_int(value: object) -> Hashable:
    return int(value) if isinstance(value, str | int | float) else 0


def _to_float(value: object) -> Hashable:
    return float(value) if isinstance(value, str | int | float) else 0.0


_CASTS: dict[str, Callable[[object], Hashable]] = {"int": _to_int, "str": str, "float": _to_float, "bool": bool}


def callable_(machine: Machine, call: Call) -> Results:
    """``callable(x)``."""
    return _asks_each(machine, call, is_callable)


def is_class(machine: Machine, call: Call) -> Results:
    """``inspect.isclass(x)``."""
    return _asks_each(machine, call, is_a_class)


def _asks_each(machine: Machine, call: Call, ask: Callable[[Machine, Atom, State], bool | None]) -> Results:
    """A question about a value, where its answer is the same for all that it may be; else what follows from that."""
    verdict = None
    if len(call.args) == 1:
        verdict = _agreed({ask(machine, atom, call.state) for atom in call.args[0]})
    return [(call.state, unknown("follows", call.path, *call.args) if verdict is None else const(verdict))]


def _agreed(verdicts: set[bool | None]) -> bool | None:
    """What is true of a value whichever of its alternatives it is."""
    return verdicts.pop() if len(verdicts) == 1 else None


def show(machine: Machine, call: Call) -> Results:
    """``print`` and ``repr``: a GPU tensor is read to be shown, also one that a container holds."""
    state = call.state
    for value in (*call.args, *call.kwargs.values()):
        for atom in _shown(machine, value, state):
            if not isinstance(atom, Tensor):
                continue
            after = cuda.read(machine, atom, state, call.frame, call.site, call.label)
            if after is None:
                return []
            state = after
    names = ("__str__", "__repr__")
    if call.path not in ("builtins.repr", "builtins.format") or not call.args:
        return [(after, NONE) for after in machine.shown(call.args, names, state, call.frame, call.site)]
    conversion, spec = ("r", const("")) if call.path.endswith("repr") else ("", [*call.args, const("")][1])
    return machine.as_text(call.args[0], conversion, spec, state, call.frame, call.site)


def _shown(machine: Machine, value: Value, state: State) -> Iterator[Atom]:
    yield from gpu_memory.gpu_atoms(value, state)
    for atom in value:
        found = state.get(atom) if isinstance(atom, Ref) else None
        held: list[Value] = []
        if isinstance(found, Dict):
            held = [*found.items.values(), found.element]
        elif isinstance(found, Sequence) and found.kind not in TAKEN_OF:
            held = machine.elements((atom,), state)
        for inner in held:
            yield from gpu_memory.gpu_atoms(inner, state)


def builtin_name(machine: Machine, call: Call) -> Results:
    """``"__IPYTHON__" in builtins.__dict__``: a program that is started is no notebook, unless it is one."""
    name = constant(call.args[0]) if call.args else ...
    if name == "__IPYTHON__" and machine.program.is_notebook(machine.main):
        return [(call.state, const(True))]
    known = isinstance(name, str)
    return [(call.state, const(hasattr(builtins, str(name))) if known else unknown("builtins", call.site))]
