"""Functions of Python that only give what follows from what they are given: Python itself computes them.

What is not known of their arguments stands for itself: where such a function looks at it, nothing is computed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass

from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import Dict, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Const, Member, Ref, Value, const, only

# None of these costs more than what it is given is long.
_FUNCTIONS: dict[str, Callable[..., object]] = {
    "builtins.all": all, "builtins.any": any, "builtins.enumerate": enumerate, "builtins.max": max,
    "builtins.min": min, "builtins.reversed": reversed, "builtins.sum": sum, "builtins.zip": zip,
    "itertools.accumulate": itertools.accumulate, "itertools.chain": itertools.chain,
    "itertools.compress": itertools.compress, "itertools.islice": itertools.islice,
    "itertools.pairwise": itertools.pairwise, "itertools.zip_longest": itertools.zip_longest,
    "math.ceil": math.ceil, "math.floor": math.floor, "builtins.abs": abs,
    "builtins.divmod": divmod,
}  # fmt: skip
# How many items are gone through, and how deep tuples are looked into.
_MOST, _DEEPEST = 64, 3


class Unseen(Exception):
    """Something that is not known is looked at."""


@dataclass(eq=False, slots=True)
class _Kept:
    """A value of the program that Python hands on, and cannot look at."""

    value: Value

    def __bool__(self) -> bool:
        raise Unseen

    def __eq__(self, other: object) -> bool:
        raise Unseen

    def __lt__(self, other: object) -> bool:
        raise Unseen

    __gt__ = __le__ = __ge__ = __lt__

    def __hash__(self) -> int:
        raise Unseen

    def __index__(self) -> int:
        raise Unseen


def computed(machine: Machine, call: Call) -> Results | None:
    """What a function gives that Python can compute; None of all others."""
    function = _FUNCTIONS.get(call.path)
    if function is None or call.open or not call.args:
        return None
    try:
        args = [_as_python(machine, value, call.state, 0) for value in call.args]
        kwargs = {name: _as_python(machine, value, call.state, 0) for name, value in call.kwargs.items()}
        found = function(*args, **kwargs)
        rows = None if isinstance(found, int | float | str | bytes | tuple | None | _Kept) else _few(found)
    except (Unseen, TypeError, ValueError, ArithmeticError, AttributeError):
        return None
    if rows is None:
        return [(call.state, _as_value(found, call.state, call.site))]
    items = tuple(_as_value(row, call.state, call.site) for row in rows)
    return [(call.state, (call.state.new(("computed", call.site), Sequence("list", items)),))]


def _few(found: object) -> list[object]:
    if not isinstance(found, Iterable):
        raise Unseen
    rows = list(itertools.islice(found, _MOST + 1))
    if len(rows) > _MOST:
        raise Unseen
    return rows


def _as_python(machine: Machine, value: Value, state: State, depth: int) -> object:
    """An argument as Python has it: constants, tuples, and what is gone through; all else is kept as it is."""
    atom = only(value)
    if isinstance(atom, Const) and not isinstance(atom.value, Member):
        return atom.value
    found = state.get(atom) if isinstance(atom, Ref) else None
    is_seen = depth == 0 or (isinstance(found, Sequence) and found.kind == "tuple" and depth < _DEEPEST)
    if not is_seen or not isinstance(atom, Ref) or machine.grows_on(atom):
        return _Kept(value)
    if isinstance(found, Dict):
        is_plain = found.exact and not found.element and all(isinstance(k, str | int | float) for k in found.items)
        return list(found.items) if is_plain else _Kept(value)
    if not isinstance(found, Sequence) or found.kind not in ("list", "tuple") or found.open:
        return _Kept(value)
    if found.items is None or len(found.items) > _MOST:
        return _Kept(value)
    parts = [_as_python(machine, item, state, depth + 1) for item in found.items]
    return tuple(parts) if found.kind == "tuple" else parts


def _as_value(found: object, state: State, site: Site) -> Value:
    match found:
        case _Kept(value=value):
            return value
        case tuple():
            parts = tuple(_as_value(part, state, site) for part in found)
            return (state.new(("computed", site), Sequence("tuple", parts)),)
        case Hashable():
            return const(found)
    raise Unseen
