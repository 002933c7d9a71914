"""Functions of Python that only give what follows from what they are given: Python itself computes them.

What is not known of their arguments stands for itself: where such a function looks at it, nothing is computed.
"""

from __future__ import annotations

import ast
import base64
import binascii
import bisect
import datetime
import decimal
import difflib
import fnmatch
import fractions
import heapq
import itertools
import json
import keyword
import math
import operator
import os.path
import re
import shlex
import statistics
import string
import struct
import textwrap
from collections.abc import Callable, Hashable, Iterable, Sized

from cudalint.machine import formats, operators, questions
from cudalint.machine.frame import Call, Raised, Results
from cudalint.machine.heap import Dict, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Const, Member, Ref, Value, const, constant, only
from cudalint.structs import MutableUnique, replace


def _in_base(text: object, base: int) -> int:
    """``int("0x1f", 16)``; what has no base is a cast, which knows more than constants."""
    return int(str(text), base)


def _length(thing: Sized) -> int:
    """``len``; a text that names a device stands for any device, of which no length is known."""
    if isinstance(thing, str) and operators.parse_device(thing) is not None:
        raise Unseen
    return len(thing)


def _from_json(text: str) -> object:
    """``json.loads``, of what no setting of a project is."""
    return json.loads(text)


def _grouped(items: Iterable[object]) -> list[tuple[object, list[object]]]:
    return [(key, list(group)) for key, group in itertools.groupby(items)]


# None of these costs more than what it is given is long, but for those that `_is_costly` knows.
_FUNCTIONS: dict[str, Callable[..., object]] = {
    "ast.literal_eval": ast.literal_eval,
    "base64.b64decode": base64.b64decode, "base64.b64encode": base64.b64encode,
    "base64.urlsafe_b64decode": base64.urlsafe_b64decode, "base64.urlsafe_b64encode": base64.urlsafe_b64encode,
    "binascii.hexlify": binascii.hexlify, "binascii.unhexlify": binascii.unhexlify,
    "bisect.bisect": bisect.bisect, "bisect.bisect_left": bisect.bisect_left,
    "bisect.bisect_right": bisect.bisect_right,
    "builtins.abs": abs, "builtins.all": all, "builtins.any": any, "builtins.ascii": ascii, "builtins.bin": bin,
    "builtins.chr": chr, "builtins.divmod": divmod, "builtins.enumerate": enumerate, "builtins.format": format,
    "builtins.hex": hex, "builtins.int": _in_base, "builtins.len": _length, "builtins.max": max, "builtins.min": min,
    "builtins.oct": oct, "builtins.ord": ord, "builtins.repr": repr, "builtins.reversed": reversed,
    "builtins.int.from_bytes": int.from_bytes, "builtins.bytes.fromhex": bytes.fromhex,
    "builtins.float.fromhex": float.fromhex, "builtins.str.maketrans": str.maketrans,
    "builtins.round": round, "builtins.sum": sum, "builtins.zip": zip,
    "datetime.date": datetime.date, "datetime.datetime": datetime.datetime, "datetime.time": datetime.time,
    "datetime.timedelta": datetime.timedelta, "datetime.date.fromisoformat": datetime.date.fromisoformat,
    "datetime.datetime.fromisoformat": datetime.datetime.fromisoformat,
    "datetime.datetime.strptime": datetime.datetime.strptime,
    "datetime.datetime.combine": datetime.datetime.combine,
    "decimal.Decimal": decimal.Decimal, "fractions.Fraction": fractions.Fraction,
    "heapq.nlargest": heapq.nlargest, "heapq.nsmallest": heapq.nsmallest,
    "json.dumps": json.dumps, "json.loads": _from_json,
    "statistics.fmean": statistics.fmean, "statistics.mean": statistics.mean, "statistics.median": statistics.median,
    "struct.calcsize": struct.calcsize, "struct.pack": struct.pack, "struct.unpack": struct.unpack,
    **{f"operator.{f.__name__}": f for f in (
        operator.lt, operator.le, operator.eq, operator.ne, operator.ge, operator.gt, operator.not_, operator.truth,
        operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.neg,
        operator.abs, operator.and_, operator.or_, operator.xor, operator.contains, operator.countOf, operator.indexOf,
    )},
    "difflib.get_close_matches": difflib.get_close_matches, "keyword.iskeyword": keyword.iskeyword,
    "string.capwords": string.capwords,
    "fnmatch.fnmatch": fnmatch.fnmatch, "fnmatch.fnmatchcase": fnmatch.fnmatchcase,
    "itertools.accumulate": itertools.accumulate, "itertools.chain": itertools.chain,
    "itertools.combinations": itertools.combinations, "itertools.compress": itertools.compress,
    "itertools.groupby": _grouped, "itertools.islice": itertools.islice, "itertools.pairwise": itertools.pairwise,
    "itertools.permutations": itertools.permutations, "itertools.product": itertools.product,
    "itertools.zip_longest": itertools.zip_longest,
    "os.path.basename": os.path.basename, "os.path.dirname": os.path.dirname, "os.path.isabs": os.path.isabs,
    "os.path.split": os.path.split, "os.path.splitext": os.path.splitext,
    "shlex.split": shlex.split, "textwrap.dedent": textwrap.dedent, "textwrap.indent": textwrap.indent,
    **{f"math.{f.__name__}": f for f in (
        math.ceil, math.copysign, math.exp, math.fabs, math.floor, math.fsum, math.gcd, math.hypot, math.isclose,
        math.isfinite, math.isinf, math.isnan, math.isqrt, math.lcm, math.log, math.log10, math.log2, math.prod,
        math.sqrt, math.trunc,
    )},
}  # fmt: skip
# Methods that fill a text with what they are given, which may be a device or a rank.
_FILL = frozenset({"format", "format_map", "join"})
# How many items are gone through, how many a text is taken apart into, and how deep tuples are looked into.
_MOST, _MOST_PARTS, _DEEPEST = 64, 4096, 3
# A width beyond this would make a text that fills the memory.
_WIDEST = 10_000
# Functions to which a number says how much they make, and those to which a text does.
_MEASURED = frozenset({
    "builtins.round", "itertools.combinations", "itertools.permutations", "itertools.product", "operator.mul",
})  # fmt: skip
_FORMATTING = frozenset({"builtins.format", "operator.mod", "struct.calcsize", "struct.pack", "struct.unpack"})
_COMPARING = "difflib.get_close_matches"
# A number as a text whose exponent makes it much larger than the text.
_FAR = re.compile(r"[eE][+-]?\d{3}")
# What of Python's own failures follows from what is known.
_FAILURES = (ValueError, LookupError, ArithmeticError)
# What it says of values that it cannot look at, and of texts that are too deep.
_REFUSALS = (TypeError, AttributeError, SyntaxError, AssertionError, RecursionError, MemoryError, struct.error)


class Unseen(Exception):
    """Something that is not known is looked at."""


class _Kept(MutableUnique):
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

    def __repr__(self) -> str:
        raise Unseen

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        raise Unseen


def computed(machine: Machine, call: Call) -> Results | None:
    """What a function, or a method of a constant, gives that Python can compute; None of all others."""
    call = _of_first(call)
    function = _FUNCTIONS.get(call.path) if call.receiver is None else _method_of(call)
    if function is None or call.open or (call.receiver is None and not call.args and not call.kwargs):
        return None
    try:
        args = [_argument(machine, call, value) for value in call.args]
        kwargs = {name: _as_python(machine, value, call.state, 0) for name, value in call.kwargs.items()}
        if _is_costly(call, [*args, *kwargs.values()]):
            return None
        found = function(*args, **kwargs)
        most = _MOST if call.receiver is None else _MOST_PARTS
        rows = None if isinstance(found, _WHOLE) else _few(found, most)
    except Unseen:
        return None
    except _FAILURES as error:
        return _failed(machine, call, error, [*args, *kwargs.values()])
    except _REFUSALS:
        return None
    if not operators.is_handy(found if rows is None else rows):
        return None
    for value in call.args:
        _use_up(value, call.state)
    if rows is None:
        return [(call.state, _as_value(found, call.state, call.site))]
    items = tuple(_as_value(row, call.state, call.site) for row in rows)
    return [(call.state, (call.state.new(("computed", call.site), Sequence("list", items)),))]


def _is_costly(call: Call, given: list[object]) -> bool:
    """Whether Python might make, or look through, much more than it is given."""
    numbers = [each for each in given if isinstance(each, int)]
    texts = [each for each in _parts(given) if isinstance(each, str | bytes)]
    if call.receiver is not None or call.path in _MEASURED:
        return any(abs(number) > _WIDEST for number in numbers)
    if call.path in _FORMATTING:
        return any(formats.is_wide(text if isinstance(text, str) else text.decode("latin-1")) for text in texts)
    if call.path == "fractions.Fraction":
        return any(isinstance(text, str) and _FAR.search(text) is not None for text in texts)
    return call.path == _COMPARING and any(len(text) > operators.LONGEST for text in texts)


def _parts(given: list[object]) -> list[object]:
    return [part for each in given for part in (each if isinstance(each, list) else [each])]


def _use_up(value: Value, state: State) -> None:
    """Of a generator that was gone through nothing is left."""
    found = state.get(atom) if isinstance(atom := only(value), Ref) else None
    if isinstance(atom, Ref) and isinstance(found, Sequence) and found.kind == "iterator":
        state.store(atom, replace(found, items=()))


# What a function gives as it is; all else is gone through.
_WHOLE = (int, float, str, bytes, tuple, dict, type(None), _Kept, *operators.COMPUTED)


def _of_first(call: Call) -> Call:
    """``str.upper(text)`` is ``text.upper()``."""
    if call.receiver is not None or not call.args or call.path in _FUNCTIONS or call.path.count(".") != 2:
        return call
    atom = only(call.args[0])
    own = f"builtins.{type(atom.value).__name__}." if isinstance(atom, Const) else ""
    is_method = isinstance(atom, Const) and isinstance(atom.value, str | bytes) and call.path.startswith(own)
    return replace(call, receiver=atom, args=call.args[1:]) if is_method else call


def _method_of(call: Call) -> Callable[..., object] | None:
    """A method of a text or number that is known."""
    match call.receiver:
        case Const(value=held) if isinstance(held, (str, bytes, int, float, *operators.COMPUTED)):
            kind, _, name = call.path.rpartition(".")
            is_own = kind == f"builtins.{type(held).__name__}" and not name.startswith("_") and name not in _FILL
            return getattr(held, name, None) if is_own else None
    return None


def _failed(machine: Machine, call: Call, error: Exception, given: list[object]) -> Results | None:
    """Where something waits for it, what Python raises for what is known is raised."""
    if not call.frame.tries or not all(map(_is_seen, given)):
        return None
    kinds = type(error).__mro__
    names = tuple(kind.__name__ for kind in kinds[: kinds.index(Exception)])
    return machine.fail(call.state, call.frame, Raised(None, names))


def _is_seen(given: object) -> bool:
    return all(map(_is_seen, given)) if isinstance(given, list | tuple) else not isinstance(given, _Kept)


def _few(found: object, most: int) -> list[object]:
    if not isinstance(found, Iterable):
        raise Unseen
    rows = list(itertools.islice(found, most + 1))
    if len(rows) > most:
        raise Unseen
    return rows


def _argument(machine: Machine, call: Call, value: Value) -> object:
    """An argument of a function; of a method, a dict is a table that it looks into."""
    if call.path == "json.dumps":
        return _deeply(machine, value, call.state, 0)
    if call.path == "ast.literal_eval":
        # Settings, as those of a file: of a variable or an option its default.
        value = questions.if_unset(questions.if_not_given(value))
    atom = only(value)
    found = call.state.get(atom) if isinstance(atom, Ref) and call.receiver is not None else None
    if not isinstance(found, Dict):
        return _as_python(machine, value, call.state, 0)
    held = {key: constant(item) for key, item in found.items.items()}
    return _Kept(value) if ... in held.values() or not found.exact or found.element else held


def _deeply(machine: Machine, value: Value, state: State, depth: int) -> object:
    """What is written as it is, with all that it holds."""
    atom = only(value)
    found = state.get(atom) if isinstance(atom, Ref) and depth < _DEEPEST and not machine.grows_on(atom) else None
    match found:
        case Dict(items=items, exact=True, element=()) if all(isinstance(key, str | int | float) for key in items):
            return {key: _deeply(machine, item, state, depth + 1) for key, item in items.items()}
        case Sequence(kind="list" | "tuple", items=tuple(parts), open=False) if len(parts) <= _MOST:
            return [_deeply(machine, part, state, depth + 1) for part in parts]
    return atom.value if isinstance(atom, Const) and not isinstance(atom.value, Member) else _Kept(value)


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
    if isinstance(found, Sequence) and found.numbers is not None and len(found.numbers) <= _MOST:
        return list(found.numbers)
    kinds = ("list", "tuple", "iterator") if depth == 0 else ("list", "tuple")
    if not isinstance(found, Sequence) or found.kind not in kinds or found.open:
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
        case list():
            return (state.new(("computed", site), Sequence("list", tuple(_as_value(p, state, site) for p in found))),)
        case dict():
            held = {key: _as_value(value, state, site) for key, value in found.items()}
            return (state.new(("computed", site), Dict(held)),)
        case Hashable():
            return const(found)
    raise Unseen
