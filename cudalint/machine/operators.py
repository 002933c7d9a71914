"""Operators on values that need no library: constants, containers, device strings."""

from __future__ import annotations

import datetime
import decimal
import fractions
import operator
from collections.abc import Callable, Hashable, Mapping
from types import NoneType
from typing import TypeVar

from cudalint.limits import MOST_BITS
from cudalint.machine import questions, versions
from cudalint.machine.heap import NAMESPACE, Dict, Object, Sequence
from cudalint.machine.questions import MOST_GPUS
from cudalint.machine.values import (
    FALSE,
    TRUE,
    Atom,
    Const,
    Dev,
    Index,
    Lib,
    Other,
    Rank,
    Ref,
    Tensor,
    Unknown,
    Value,
    const,
    constant,
    is_sentinel,
    only,
    union,
    unknown,
)
from cudalint.structs import force_setattr, replace

# What ``-x``, ``+x`` and ``~x`` ask of a class.
UNARY = {"-": "__neg__", "+": "__pos__", "~": "__invert__"}
LONGEST = 200
# How many digits an exact number has at most that is known, before its point or behind it.
MOST_DIGITS = 1_000
# What Python's library computes with that never changes, besides numbers and texts.
COMPUTED = (datetime.date, datetime.time, datetime.timedelta, decimal.Decimal, fractions.Fraction)
# How many items of a list that grows are known one by one.
MOST_KEPT = 8
# How many items two sequences have together whose sum is known one by one: a loop may double them each time.
_MOST_JOINED = 256
# What numbers are computed with, by how many bits they are moved, and to which power they are raised.
_LARGEST, _MOST_BITS, _HIGHEST = 2**62, 64, 16
# What a mapping may say that was laid over another.
LAID_OVER = "laid over"
_WORDS = (str, NoneType)
_Name = TypeVar("_Name", bound=Hashable)


def compare(op: str, left: Value, right: Value, sym: Hashable) -> Value:
    """``left op right``; an unknown result keeps one identity per pair of operands."""
    one, two = only(left), only(right)
    if (one is None or two is None) and (alike := _compared_alike(op, left, right, sym)) is not None:
        return alike
    if one is not None and two is not None and op in _SAME and _is_told_by_sentinel(one, two):
        return const((one == two) is _SAME[op])
    if op in ("==", "!=") and isinstance(one, Dev) and isinstance(two, Dev) and one.kind != two.kind:
        return const(op == "!=")
    if isinstance(one, Dev) and isinstance(two, Const):
        one = Const(device_text(one))
    if isinstance(one, Rank) and isinstance(two, Rank) and one.process and two.process and op in ("==", "is"):
        return const(one.process == two.process)
    for atom, other in ((one, two), (two, one)):
        if op == "==" and isinstance(atom, Other) and isinstance(other, Const) and other.value == atom.than:
            return FALSE
    if isinstance(one, Const) and isinstance(two, Const):
        verdict = _compare_constants(op, one, two)
        if verdict is not None:
            return const(verdict)
    if isinstance(one, Rank) and isinstance(two, Const) and (of_all := _of_each(op, one, two)) is not None:
        return const(of_all)
    by_version = versions.compared(op, one, two)
    if by_version is not None:
        return const(by_version)
    against_none = op in ("is", "is not") and isinstance(two, Const) and two.value is None
    if against_none and left and not any(isinstance(atom, Unknown) or atom == two for atom in left):
        return FALSE if op == "is" else TRUE
    if op in ("==", "is") and one is not None and two is not None and _is_type(one) and _is_type(two):
        return const(one == two)
    if op in ("!=", "is not", "not in"):
        return negate(compare(_POSITIVE[op], left, right, sym))
    first, second = questions.identity(left), questions.identity(right)
    if first is None or second is None:
        return unknown(sym, op, left, right)
    return questions.comparison(op, first, second)


def _compared_alike(op: str, left: Value, right: Value, sym: Hashable) -> Value | None:
    """What a comparison gives whichever of several words two values are; numbers may stand for others of a loop."""
    if not left or not right or not all(isinstance(atom, Const) and atom.kind in _WORDS for atom in (*left, *right)):
        return None
    verdicts = {compare(op, (one,), (two,), sym) for one in left for two in right}
    found = verdicts.pop()
    return None if verdicts else found


def hold_the_same(one: Object | None, two: Object | None) -> bool | None:
    """Whether two lists, tuples or dicts are equal, where what they hold is known."""
    match one, two:
        case Dict(exact=True), Dict(exact=True):
            if one.items.keys() != two.items.keys():
                return False
            pairs = [(value, two.items[key]) for key, value in one.items.items()]
        case Sequence(kind="list" | "tuple", open=False), Sequence(kind="list" | "tuple", open=False):
            if one.kind != two.kind:
                return False
            if one.items is None or two.items is None:
                return None
            if len(one.items) != len(two.items):
                return False
            pairs = list(zip(one.items, two.items, strict=True))
        case _:
            return None
    alike = [_are_alike(left, right) for left, right in pairs]
    if False in alike:
        return False
    return None if None in alike else True


def _are_alike(left: Value, right: Value) -> bool | None:
    """Whether two things that containers hold are equal; of objects only that they are the same, or two classes."""
    one, two = only(left), only(right)
    if isinstance(one, Const) and isinstance(two, Const):
        return one.value == two.value
    if one is None or two is None or not _is_type(one) or not _is_type(two):
        return None
    return one == two


def _is_told_by_sentinel(one: Atom, two: Atom) -> bool:
    """Whether one of two things is an object that nothing else is, and the other is known well enough."""
    if not is_sentinel(one) and not is_sentinel(two):
        return False
    unknowns = isinstance(one, Unknown) and isinstance(two, Unknown)
    return one == two or not unknowns or (is_sentinel(one) and is_sentinel(two))


def _is_type(atom: Atom) -> bool:
    """Whether something is a type that no other name stands for."""
    match atom:
        case Lib(path=path):
            return path in _TYPES
        case Ref(address=(("classobj", *_), _, _)):
            return True
    return False


# Types of what Python itself has.
_TYPES = frozenset({NAMESPACE, *(f"builtins.{t.__name__}" for t in (bool, dict, float, int, list, set, str, tuple))})
_SAME = {"is": True, "==": True, "is not": False, "!=": False}
_POSITIVE = {"!=": "==", "is not": "is", "not in": "in"}


def _compare_constants(op: str, one: Const, two: Const) -> bool | None:
    left, right = one.value, two.value
    if op == "is":
        return one == two
    if op == "is not":
        return one != two
    if op == "==":
        return left == right
    if op == "!=":
        return left != right
    if isinstance(left, str) and isinstance(right, str):
        return (left in right) is (op == "in") if op in ("in", "not in") else _order(op, left, right)
    if isinstance(left, int | float) and isinstance(right, int | float):
        return _order(op, left, right)
    verdict = _applied(op, left, right)
    return verdict if isinstance(verdict, bool) else None


def _of_each(op: str, rank: Rank, other: Const) -> bool | None:
    """What is true, or false, of every number that a rank may be."""
    verdicts = {_compare_constants(op, Const(number), other) for number in rank.numbers or ()}
    return verdicts.pop() if len(verdicts) == 1 else None


def _applied(op: str, left: Hashable, right: Hashable) -> Hashable | None:
    """What Python makes of two things of which at least one is a date, an exact number or the like."""
    are_known = all(isinstance(each, (int, float, *COMPUTED)) for each in (left, right))
    if not are_known or not isinstance(left, COMPUTED) | isinstance(right, COMPUTED) or op not in _APPLIED:
        return None
    try:
        found = _APPLIED[op](left, right)
    except (TypeError, ValueError, ArithmeticError):
        return None
    return found if isinstance(found, (bool, int, float, *COMPUTED)) and is_handy(found) else None


def is_handy(found: object) -> bool:
    """Whether what Python computed is small enough to be known, and to be computed with."""
    if isinstance(found, str | bytes):
        return len(found) <= LONGEST
    if isinstance(found, int):
        return found.bit_length() <= MOST_BITS
    if isinstance(found, fractions.Fraction):
        return is_handy(found.numerator) and is_handy(found.denominator)
    if isinstance(found, decimal.Decimal):
        return not found.is_finite() or (abs(found.adjusted()) <= MOST_DIGITS and len(str(found)) <= MOST_DIGITS)
    if isinstance(found, tuple | list):
        return all(map(is_handy, found))
    return True


_Ordered = TypeVar("_Ordered", str, float)


def _order(op: str, left: _Ordered, right: _Ordered) -> bool | None:
    match op:
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
        case ">=":
            return left >= right
    return None


def negate(value: Value) -> Value:
    """``not value`` of a comparison; the same unknown negated twice is itself."""
    atom = only(value)
    if isinstance(atom, Const):
        return const(not atom.value)
    if isinstance(atom, Unknown):
        if isinstance(atom.sym, tuple) and len(atom.sym) == 2 and atom.sym[0] == "not":
            return (Unknown(atom.sym[1]),)
        return (Unknown(("not", atom.sym)),)
    return unknown("not", value)


def membership(found: Object | None, key: Value) -> Value | None:
    """``key in container`` of an unknown key and known constants; None where it asks anything else."""
    wanted = questions.identity(key)
    if wanted is None:
        return None
    held: list[Hashable] | None = None
    if isinstance(found, Dict) and found.exact:
        held = list(found.items)
    elif isinstance(found, Sequence) and found.items is not None and not found.open:
        held = [constant(item) for item in found.items]
    if held is None or not all(isinstance(c, str | int | None) for c in held):
        return None
    return questions.comparison("in", wanted, Const(frozenset(held)))


def contains(found: Object | None, key: Value) -> bool | None:
    """``key in container`` where both are known."""
    wanted = constant(key)
    if wanted is ...:
        return None
    if isinstance(found, Dict):
        return True if wanted in found.items else (None if _may_have(found, wanted) else False)
    if isinstance(found, Sequence) and found.numbers is not None:
        return wanted in found.numbers if isinstance(wanted, int) else None
    if isinstance(found, Sequence) and found.items is not None and not found.open:
        known = [constant(v) for v in found.items]
        if wanted in known:
            return True
        return None if ... in known else False
    return None


def binary(op: str, left: Value, right: Value, sym: Hashable) -> Value:
    """``left op right`` for constants, arrays, ranks and device strings."""
    one, two = only(left), only(right)
    if isinstance(one, Const) and isinstance(two, Const):
        result = _binary_constants(op, one.value, two.value)
        if result is not None:
            return const(result)
    if op == "+" and isinstance(one, Const) and isinstance(one.value, str):
        return joined([left, right], sym)
    array = next((a for a in (one, two) if isinstance(a, Tensor)), None)
    if array is not None:
        # The numbers do not matter: what is computed with an array is one, on its device.
        return (array.computed,)
    if isinstance(one, Rank) and (op, two) in _ALWAYS_ZERO:
        return const(0)
    if isinstance(one, Rank) and op == "//" and (_exceeds(two, one.among) or _is_of_one_machine(one, two)):
        return const(0)
    if isinstance(one, Rank):
        return (_rank_arithmetic(op, one, two),)
    if isinstance(two, Rank):
        turned = replace(two, derived=two.derived or op != "+")
        return (_rank_arithmetic(op, turned, one),)
    if op in ("%", "//") and _is_nothing(one) and all(_may_be_a_number(atom) for atom in right):
        return const(0)
    return unknown(sym, op, left, right)


def _is_nothing(atom: Atom | None) -> bool:
    return isinstance(atom, Const) and type(atom.value) is int and atom.value == 0


def _may_be_a_number(atom: Atom) -> bool:
    """Whether 0 can be divided by something: ``step % args.every`` is 0 in the first round, whatever it says."""
    return isinstance(atom, Unknown) or (isinstance(atom, Const) and type(atom.value) is int and atom.value != 0)


# What gives 0 of every whole number, so that all ranks get the same.
_ALWAYS_ZERO = frozenset({("%", Const(1)), ("*", Const(0))})


def _exceeds(number: Atom | None, ranks: int | None) -> bool:
    """Whether a number is more than each rank's."""
    match number:
        case Const(value=int(most)):
            return ranks is not None and most >= ranks
    return False


def _is_of_one_machine(rank: Rank, number: Atom | None) -> bool:
    """Whether a rank is divided by the number of GPUs: that gives all ranks of a machine the same."""
    return rank.kind in ("local", "global") and number in questions.DEVICES


def _rank_arithmetic(op: str, rank: Rank, other: Atom | None) -> Rank:
    """A local rank plus an offset is a global one; a rank modulo the number of GPUs, or less an offset, a local one."""
    rank = replace(rank, process=None, among=rank.among if op == "%" else None, numbers=None)
    if op == "%":
        return replace(rank, kind="local") if rank.kind == "global" else rank
    if isinstance(other, Const) or op not in ("+", "-"):
        return replace(rank, derived=True)
    if op == "+" and rank.kind == "local":
        return replace(rank, kind="global")
    return rank


def _binary_constants(op: str, left: Hashable, right: Hashable) -> Hashable | None:
    if isinstance(left, str) and isinstance(right, str) and op == "+" and len(left) + len(right) < LONGEST:
        return left + right
    if op == "*" and isinstance(left, str) and isinstance(right, int):
        return left * right if len(left) * max(right, 0) < LONGEST else None
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        if isinstance(left, bytes) and isinstance(right, bytes) and op == "+" and len(left) + len(right) < LONGEST:
            return left + right
        return _applied(op, left, right)
    if max(abs(left), abs(right)) > _LARGEST:
        return None
    try:
        match op:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
            case "//":
                return left // right
            case "%":
                return left % right
            case "/":
                return left / right
            case "&" | "|" | "^" if isinstance(left, int) and isinstance(right, int):
                return left & right if op == "&" else left | right if op == "|" else left ^ right
            case "<<" | ">>" if isinstance(left, int) and isinstance(right, int) and 0 <= right < _MOST_BITS:
                return left << right if op == "<<" else left >> right
            case "**" if abs(right) < _MOST_BITS and (abs(left) <= 2 or abs(right) <= _HIGHEST):
                return _real(left**right)
    except (ZeroDivisionError, OverflowError):
        return None
    return None


def refuses(op: str, left: Value, right: Value) -> bool:
    """Whether Python has no such operator for two constants: ``None < 1``, ``"a" + 1``."""
    one, two = only(left), only(right)
    if not isinstance(one, Const) or not isinstance(two, Const) or op not in _APPLIED:
        return False
    if not isinstance(one.value, _PLAIN) or not isinstance(two.value, _PLAIN):
        return False
    try:
        _APPLIED[op](_sample(one.value), _sample(two.value))
    except TypeError:
        return True
    except ArithmeticError:
        return False
    return False


def _sample(value: object) -> object:
    """Something of the same kind that is small."""
    return type(value)() if value is not None else None


_PLAIN = (str, int, float, type(None))
_APPLIED: dict[str, Callable[..., object]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "+": operator.add, "-": operator.sub,
    "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
}  # fmt: skip


def _real(number: object) -> int | float | None:
    """A number that is none of the complex ones."""
    return number if isinstance(number, int | float) else None


def joined(parts: list[Value], sym: Hashable) -> Value:
    """An f-string or a sum of strings; ``f"cuda:{rank}"`` is a device."""
    texts: list[str] = []
    for i, part in enumerate(parts):
        atom = only(part)
        if isinstance(atom, Const):
            texts.append(str(atom.value))
            continue
        if isinstance(atom, Dev):
            texts.append(device_text(atom))
            continue
        if "".join(texts) == "cuda:" and i == len(parts) - 1:
            return (_named(atom),) if _may_vary(part) else unknown(sym)
        if len(parts) == 1 or (not "".join(texts) and isinstance(atom, Rank) and i == len(parts) - 1):
            return part
        return unknown(sym, tuple(parts))
    text = "".join(texts)
    return const(text) if len(text) < LONGEST else unknown(sym)


def _named(number: Atom | None) -> Dev:
    """The text that names a GPU whose number differs from process to process."""
    if questions.is_named_in(number, questions.VISIBLE):
        return Dev("cuda", Rank("system"), text=True)
    return Dev("cuda", number if isinstance(number, Rank) else Rank("each"), text=True)


def _may_vary(part: Value) -> bool:
    return all(isinstance(a, Rank | Unknown | Const | Ref) for a in part)


def device_text(device: Dev) -> str:
    """``str(device)``."""
    if isinstance(device.index, int):
        return f"{device.kind}:{device.index}"
    return device.kind


def device_of(value: Value) -> list[Dev]:
    """The devices that a value names: devices, device strings, bare GPU numbers."""
    result: list[Dev] = []
    for atom in value:
        found = _device_of_atom(atom)
        if found is not None:
            result.append(found)
    return result


def _device_of_atom(atom: Atom) -> Dev | None:
    match atom:
        case Dev():
            return replace(atom, text=False) if atom.text else atom
        case Rank():
            return Dev("cuda", atom)
        case Const(value=bool()):
            return None
        case Const(value=int(number)):
            return Dev("cuda", number) if number >= 0 else Dev("cpu")
        case Const(value=str(text)) | Lib(path=text) if text.startswith("torch.") and text.endswith("Tensor"):
            return Dev("cuda") if text.startswith("torch.cuda.") else Dev("cpu")
        case Const(value=str(text)):
            return parse_device(text)
        case Unknown(sym=("int", _)) if questions.is_named_in(atom, questions.VISIBLE):
            return Dev("cuda", Rank("system"))
    return None


def parse_device(text: str) -> Dev | None:
    """``"cuda:1"`` and its like."""
    kind, _, number = text.strip().lower().partition(":")
    if kind in ("gpu", "/gpu"):
        kind = "cuda"
    if kind not in ("cuda", "cpu", "mps", "meta", "xpu", "/cpu"):
        return None
    index: Index = int(number) if number.isdigit() else None
    return Dev(kind.lstrip("/"), index)


# -- containers ----------------------------------------------------------------------------------------


def item(found: Sequence | Dict, key: Value) -> Value:
    """``container[key]``; empty where nothing is known."""
    if found.last is not None and found.last[0] == key:
        return found.last[1]
    wanted = constant(key)
    rank = only(key)
    if isinstance(rank, Rank):
        own = _of_rank(list(found.items.values() if isinstance(found, Dict) else found.items or ()), rank)
        if own is not None:
            return (own,)
    if isinstance(found, Dict):
        if wanted is not ... and wanted in found.items:
            return found.items[wanted]
        if wanted is ...:
            return union([*found.items.values(), found.element])
        return () if found.among is not None and wanted not in found.among else _under(found.element, wanted)
    if found.items is not None:
        if isinstance(wanted, int) and not found.open and -len(found.items) <= wanted < len(found.items):
            return found.items[wanted]
        if found.open and found.items and type(wanted) is int and found.kind != "set":
            return _of_longer(found.items, wanted)
        if found.open and isinstance(rank, Unknown) and (turn := _turn(rank)) is not None:
            later = None if turn < len(found.items) else _of_rank(list(found.items), Rank("each"))
            return (later,) if later is not None else union(found.items[turn : turn + 1] or found.items)
        return union(found.items)
    return found.element


def _of_longer(items: tuple[Value, ...], at: int) -> Value:
    """An item of a list of which the first ones are known, and that others like the last of these may follow.

    What number or text follows that differs from one to the next is not known; a device stands for others.
    """
    if at == 0:
        return items[0]
    found = items[-1] if at < 0 else union(items[1:] or items)
    is_told = 0 < at < len(items) or len(set(items)) == 1
    return found if is_told or not all(map(_is_plain, found)) else ()


def _is_plain(atom: Atom) -> bool:
    """Whether something is a number or a text that names no device."""
    if not isinstance(atom, Const) or not isinstance(atom.value, int | float | str):
        return False
    return not isinstance(atom.value, str) or parse_device(atom.value) is None


def _turn(key: Unknown) -> int | None:
    """The number of a round that takes turns with others: ``gpus[i % len(gpus)]``, of more than are known."""
    match key.sym:
        case (_, "%", (Const(value=int(turn)),), (Unknown(sym=("devices" | "len", *_)),)):
            return turn if turn >= 0 else None
    return None


def lacks(found: Dict, key: Value) -> bool:
    """Whether a dict has nothing under a key: all that it holds is known."""
    wanted = constant(key)
    if found.factory or (wanted is ... and not is_empty(found)) or wanted in found.items:
        return False
    return not (found.element if found.exact else _may_have(found, wanted))


def is_empty(found: Dict) -> bool:
    """Whether a dict has nothing, under whatever key."""
    return found.exact and not found.items and not found.element


def _may_have(found: Dict, key: Hashable) -> bool:
    """Whether a dict may have a key that is not among those which it has for certain."""
    return not found.exact and (found.among is None or key in found.among)


def _others(found: Dict) -> frozenset[Hashable] | None:
    """The keys that a dict may have besides those which it has; None where they may be any."""
    return frozenset() if found.exact and not found.element else found.among


def either(one: Dict, two: Dict) -> frozenset[Hashable] | None:
    """The keys besides that a dict may have which is made of two."""
    first, second = _others(one), _others(two)
    return None if first is None or second is None or not first | second else first | second


def _of_rank(items: list[Value], rank: Rank) -> Atom | None:
    """``devices[rank]``: of GPUs, or their numbers, that lie in a row, each rank has another one.

    Of one that stands alone only the first of several ranks would find it: the list is longer where there are more.
    """
    atoms = [only(item) for item in items]
    numbers = [_gpu_number(atom) for atom in atoms]
    if not numbers or len(set(numbers)) < len(numbers) or None in numbers:
        return None
    # By the rank among all machines only one machine's GPUs lie in a row.
    in_order = numbers == list(range(len(numbers)))
    own = Rank("each" if rank.kind == "global" else rank.kind, derived=rank.derived or not in_order)
    named = any(isinstance(atom, Dev) or (isinstance(atom, Const) and parse_device(str(atom.value))) for atom in atoms)
    return Dev("cuda", own, text=not all(isinstance(atom, Dev) for atom in atoms)) if named else own


def _gpu_number(atom: Atom | None) -> int | None:
    """The number of the GPU that an item names: a device, the text of one, or a number that a device may have."""
    match atom:
        case Dev(index=int(number)) if atom.is_gpu:
            return number
        case Const(value=int(number)) if not isinstance(number, bool) and 0 <= number < MOST_GPUS:
            return number
        case Const(value=str(text)):
            device = parse_device(text)
            return _gpu_number(device) if device is not None else int(text) if text.strip().isdigit() else None
    return None


def with_item(found: Sequence, key: Value, value: Value) -> Sequence:
    """The list after ``row[key] = value``."""
    wanted = constant(key)
    if found.items is not None and isinstance(wanted, int) and 0 <= wanted < len(found.items):
        items = (*found.items[:wanted], value, *found.items[wanted + 1 :])
        return replace(found, items=items)
    made = Sequence(found.kind, None, union([*(found.items or ()), found.element, value]))
    _remember(made, key, value)
    return made


def with_key(found: Dict, key: Value, value: Value) -> Dict:
    """The dict after ``d[key] = value``; under a key that is not known, that may be any setting it holds."""
    wanted = constant(key)
    if wanted is ...:
        items = maybe_set(found.items, key)
        made = replace(found, items=items, element=union([found.element, value]), exact=False, among=None)
        _remember(made, key, value)
        return made
    return replace(found, items={**found.items, wanted: value})


def _remember(made: Sequence | Dict, key: Value, value: Value) -> None:
    """What is looked up under the same unknown key right after it was put there is that, and nothing else.

    A change makes a new container, by ``replace`` too, and that remembers nothing.
    """
    if isinstance(only(key), Unknown):
        force_setattr(made, "last", (key, value))


def maybe_set(settings: Mapping[_Name, Value], key: Value) -> dict[_Name, Value]:
    """Settings of which any may be another one, since one was set whose name is not known.

    Functions and objects are hardly ever set anew like that; arrays are where all of them move.
    """
    atom = only(key)
    if not isinstance(atom, Unknown):
        return dict(settings)
    return {
        name: union([value, unknown(LAID_OVER, atom.sym, name)]) if is_setting(name, value) else value
        for name, value in settings.items()
    }


def unless_given(name: str, default: Value, site: Hashable) -> Value:
    """The default of a parameter which may be among arguments of which nothing is known, ``f(**options)``."""
    return union([default, unknown(LAID_OVER, ("given", site), name)]) if is_setting(name, default) else default


def is_setting(name: Hashable, value: Value) -> bool:
    """Whether a name stands for plain data or for something on a device."""
    return isinstance(name, str) and all(isinstance(atom, Const | Dev | Tensor) for atom in value)


def without_key(found: Dict, key: Value) -> Dict:
    """The dict after ``del d[key]``."""
    wanted = constant(key)
    return replace(found, items={k: v for k, v in found.items.items() if k != wanted})


def merged(one: Dict, two: Dict) -> Dict:
    """``one | two``; where not all keys of the second are known, it may have those of the first."""
    items = {**one.items, **two.items}
    if not two.exact and two.element:
        others = {key: value for key, value in one.items.items() if key not in two.items and _may_have(two, key)}
        items.update({key: union([value, _under(two.element, key)]) for key, value in others.items()})
    element, is_exact = union([one.element, two.element]), one.exact and two.exact
    return replace(one, items=items, element=element, exact=is_exact, among=either(one, two))


def overlaid(found: Dict, mapping: Value, sym: Hashable) -> Dict:
    """``{**found, **mapping}`` of a mapping of which nothing is known: each key may have another value."""
    atom = only(mapping)
    base = atom.sym if isinstance(atom, Unknown) else sym
    items = {key: union([value, unknown(LAID_OVER, base, key)]) for key, value in found.items.items()}
    element = union([found.element, unknown(LAID_OVER, base)])
    return replace(found, items=items, element=element, exact=False, among=None)


def _under(element: Value, key: Hashable) -> Value:
    """What stands under a key that is not known to be there: each of a mapping of which nothing is known is another."""
    match only(element):
        case Unknown(sym=(str(kind), base)) if kind == LAID_OVER:
            return unknown(LAID_OVER, base, key)
    return element


def is_laid_over(value: Value) -> bool:
    """Whether a value is what a mapping has under a key of which nothing is known: that, or the default asked for."""
    match only(value):
        case Unknown(sym=(str(kind), _, _)):
            return kind == LAID_OVER
    return False


def append(found: Sequence, value: Value) -> Sequence:
    """``list.append``; long lists keep the first item and one for all others."""
    if found.most is not None and not found.open and found.items is not None and found.most <= MOST_KEPT:
        return replace(found, items=(*found.items, value)[-found.most :] if found.most else ())
    if found.items is None:
        return replace(found, element=union([found.element, value]))
    if len(found.items) >= MOST_KEPT:
        return Sequence(found.kind, (found.items[0], union([*found.items[1:], value])), (), True)
    return replace(found, items=(*found.items, value))


def extend(found: Sequence, values: list[Value]) -> Sequence:
    """``list.extend`` with what is known of the other."""
    for value in values:
        found = append(found, value)
    return found if values else Sequence(found.kind, None, union([*(found.items or ()), found.element]))


def concatenate(one: Sequence, two: Sequence) -> Sequence:
    """``one + two``; one that becomes very long keeps the first item and one for all others."""
    if one.items is not None and two.items is not None:
        items = (*one.items, *two.items)
        if len(items) > _MOST_JOINED:
            return Sequence(one.kind, (items[0], union(items[1:])), (), True)
        return Sequence(one.kind, items, (), one.open or two.open)
    return Sequence(one.kind, None, union([*(one.items or ()), one.element, *(two.items or ()), two.element]))


def repeat(one: Sequence, times: Value) -> Sequence:
    """``one * times``."""
    count = constant(times)
    if one.items is not None and one.open and isinstance(count, int) and count > 0:
        # The first one, and others like it: so it goes on.
        return one
    if one.items is not None and len(one.items) == 1 and isinstance(count, int) and count > 1:
        return Sequence(one.kind, (one.items[0], one.items[0]), (), True)
    if one.items is not None and count == 1:
        return one
    return Sequence(one.kind, None, union([*(one.items or ()), one.element]))
