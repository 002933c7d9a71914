"""What loops leave in variables that make more rounds than are run: a number that grew in these grows on in others."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping

from cudalint.machine import operators, questions
from cudalint.machine.heap import Class, Dict, Instance, Scope
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Atom, Const, Member, Ref, Unknown, Value, const, only, union, unknown
from cudalint.structs import replace

_COUNTED = "counted"
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!=", "is": "is", "is not": "is not"}
# How many attributes or items of one thing are looked at.
_MOST = 32
# Stands for how many keys a dict has.
_KEYS = ("keys",)
# Constants, by the thing that holds them and their name there.
Held = dict[tuple[Ref, Hashable], Value]


def held(scope: Ref, states: list[State]) -> Held:
    """The constants in variables of a function or module, and in what these stand for, where all paths agree."""
    first, *others = [dict(_constants(scope, state)) for state in states] or [{}]
    return {at: value for at, value in first.items() if all(other.get(at) == value for other in others)}


def _constants(scope: Ref, state: State) -> Iterator[tuple[tuple[Ref, Hashable], Value]]:
    found = state.get(scope)
    for name, value in found.variables.items() if isinstance(found, Scope) else ():
        atom = only(value)
        if isinstance(atom, Const):
            yield (scope, name), value
        elif isinstance(atom, Ref):
            yield from _within(atom, state)


def _within(ref: Ref, state: State) -> Iterator[tuple[tuple[Ref, Hashable], Value]]:
    """The constants in one thing."""
    match state.get(ref):
        case Instance(attributes=attributes):
            yield from _few(ref, attributes)
        case Dict(items=items, exact=True):
            yield (ref, _KEYS), const(len(items))
            yield from _few(ref, items)
        case Class(scope=scope) if isinstance(body := state.get(scope), Scope):
            yield from _few(scope, body.variables)


def _few(
    ref: Ref, parts: Mapping[str, Value] | Mapping[Hashable, Value]
) -> Iterator[tuple[tuple[Ref, Hashable], Value]]:
    """The constants among the parts of one thing, where these are not many."""
    if len(parts) <= _MOST:
        yield from (((ref, name), value) for name, value in parts.items() if isinstance(only(value), Const))


def count_on(states: list[State], before: Held, now: Held, site: Site, is_bound: bool) -> None:
    """What changed from one round to the next changes on in those that are not run.

    ``is_bound``: all rounds that were run are made, so that a number that grew is no less than it was then.
    """
    for (ref, name), value in now.items():
        if (ref, name) not in before or before[ref, name] == value:
            continue
        later = after_more(before[ref, name], value, str(name), site) if is_bound else _any(value, str(name), site)
        for state in states if later != value else ():
            _put(ref, name, later, site, state)


def _put(ref: Ref, name: Hashable, later: Value, site: Site, state: State) -> None:
    match state.get(ref):
        case Scope():
            state.set_variable(ref, str(name), later)
        case Instance(attributes=attributes) as instance:
            state.store(ref, replace(instance, attributes={**attributes, str(name): later}))
        case Dict() as found if name == _KEYS:
            more = union([*found.items.values(), found.element])
            told = more if any(map(_stands_for_others, more)) else unknown("later", site, ref.address)
            state.store(ref, replace(found, exact=False, element=told, among=None))
        case Dict(items=items) as found:
            state.store(ref, replace(found, items={**items, name: later}))


def _stands_for_others(atom: Atom) -> bool:
    return not isinstance(atom, Const) or _is_kept(atom)


def _any(now: Value, name: str, site: Site) -> Value:
    atom = only(now)
    return now if atom is None or _stands_for_others(atom) else unknown("later", site, name)


def after_more(before: Value, now: Value, name: str, site: Site) -> Value:
    """What a variable holds after rounds that are not run, by what the last two that are run left in it."""
    one, two = only(before), only(now)
    if not isinstance(one, Const) or not isinstance(two, Const) or one == two or _is_kept(two):
        return now
    first, second = one.value, two.value
    are_numbers = isinstance(first, int) and isinstance(second, int) and bool not in (one.kind, two.kind)
    if not are_numbers or not isinstance(first, int) or not isinstance(second, int):
        return unknown("later", site, name)
    return unknown(_COUNTED, "up" if second > first else "down", second, site, name)


def _is_kept(now: Const) -> bool:
    """Whether something stands for others of its kind: the text of a device, a member, nothing at all."""
    if now.value is None or isinstance(now.value, Member):
        return True
    return isinstance(now.value, str) and operators.parse_device(now.value) is not None


def compared(op: str, left: Atom | None, right: Atom | None) -> bool | None:
    """What is known of a comparison of a number that a loop counts up or down with another one."""
    match left, right:
        case Unknown(sym=(str(kind), str(way), int(reached), *_)), Const(value=int(other)) if kind == _COUNTED:
            return _at_least(op, reached, other) if way == "up" else _at_most(op, reached, other)
        case Const(), Unknown(sym=(str(kind), *_)) if kind == _COUNTED and op in _TURNED:
            return compared(_TURNED[op], right, left)
    return None


def truth(sym: Hashable) -> bool | None:
    """Whether a number that a loop counts, or one of processors, is another one than 0."""
    return True if _is_of_processors(sym) else compared("!=", Unknown(sym), Const(0))


def at_least(value: Value) -> int | None:
    """The number that a value is at the least; None where that is not known."""
    match only(value):
        case Const(value=int(number)):
            return number
        case Unknown(sym=(str(kind), "up", int(reached), *_)) if kind == _COUNTED:
            return reached
        case Unknown(sym=sym) as counted if _is_of_processors(sym) or counted == questions.DEVICES[0]:
            return 1
    return None


def at_most(value: Value) -> int | None:
    """The number that a value is at the most; None where that is not known."""
    match only(value):
        case Const(value=int(number)):
            return number
        case Unknown(sym=(str(kind), "down", int(reached), *_)) if kind == _COUNTED:
            return reached
    return None


def some_number(least: int, name: str, site: Site) -> Value:
    """A number of which only that is known."""
    return unknown(_COUNTED, "up", least, site, name)


def no_more_than(most: int, name: str, site: Site) -> Value:
    """A number of which only that is known."""
    return unknown(_COUNTED, "down", most, site, name)


def _is_of_processors(sym: Hashable) -> bool:
    """Whether something is how many processors there are, which Linux always knows."""
    match sym:
        case ("asks", "os.cpu_count" | "os.process_cpu_count" | "multiprocessing.cpu_count", _):
            return True
        case ("len", Unknown(sym=("asks", "os.sched_getaffinity", _))):
            return True
    return False


def _at_least(op: str, least: int, other: int) -> bool | None:
    return _AT_LEAST[op](least, other) if op in _AT_LEAST else None


def _at_most(op: str, most: int, other: int) -> bool | None:
    return _AT_LEAST[_TURNED[op]](-most, -other) if op in _AT_LEAST else None


def _when(holds: bool, answer: bool) -> bool | None:
    return answer if holds else None


_AT_LEAST: dict[str, Callable[[int, int], bool | None]] = {
    ">": lambda least, other: _when(least > other, True),
    ">=": lambda least, other: _when(least >= other, True),
    "<": lambda least, other: _when(least >= other, False),
    "<=": lambda least, other: _when(least > other, False),
    "==": lambda least, other: _when(least > other, False),
    "!=": lambda least, other: _when(least > other, True),
}
