"""Rounds of loops and comprehensions: which of many are run, and how many."""

from __future__ import annotations

from cudalint.ir import nodes as ir
from cudalint.machine.heap import Object, Sequence
from cudalint.machine.state import State
from cudalint.machine.values import Bound, Partial, Ref, Task, Value, const, only, union

ROUNDS = 2
MOST_TURNS = 6
# Other items: of four questions, such as which variable a launcher has set, a path would forget the first.
MOST_ITEMS = 3
# Functions and objects that a loop goes through one by one, and what it goes through in short rounds that ask nothing.
MOST_STEPS = 12
# The steps of a short round, and those that a loop may take in all before what is left of it is one round.
MOST_OF_ROUND = 3
MOST_OF_LOOP = 48


def few_rounds(items: list[Value], most: int = MOST_ITEMS) -> list[Value]:
    """The first item, then all the others at once; few, and steps of a program, come one after the other."""
    most = max(most, MOST_STEPS) if all(_is_step(item) for item in items) else most
    return items if len(items) <= most else [items[0], union(items[1:])]


def told_apart(rounds: list[Value]) -> list[Value]:
    """Rounds for a test: one for each object that an item may be, since the test is true of some and not of others."""
    parts: list[Value] = []
    for value in rounds:
        objects = [atom for atom in value if isinstance(atom, Ref)]
        others = tuple(atom for atom in value if not isinstance(atom, Ref))
        parts.extend((atom,) for atom in objects)
        parts.extend([others] if others or not objects else [])
    return parts


def _is_step(value: Value) -> bool:
    """Whether an item of a loop does something of its own: a function, a method, an object."""
    return isinstance(only(value), Ref | Bound | Partial | Task)


def rows_of(iterator: Object | None, element: Value) -> list[Value]:
    """The rounds over what a generator gave: one after the other where their order is known."""
    if isinstance(iterator, Sequence) and iterator.items:
        return list(iterator.items)
    return [element, element]


def numbers_of(iterable: Value, state: State) -> list[Value] | None:
    """All numbers of a range, where these are few."""
    atom = only(iterable)
    found = state.get(atom) if isinstance(atom, Ref) else None
    numbers = found.numbers if isinstance(found, Sequence) else None
    return None if numbers is None or len(numbers) > MOST_STEPS else [const(number) for number in numbers]


def is_plain(node: ir.Expr) -> bool:
    """Whether an expression takes no longer than it is long, unlike a call of a function by its name."""
    match node:
        case ir.Const() | ir.Name():
            return True
        case ir.Attr(value=value) | ir.Not(value=value) | ir.Unary(value=value):
            return is_plain(value)
        case ir.Call(func=ir.Attr(value=value), args=args):
            return is_plain(value) and all(is_plain(arg.value) for arg in args)
        case ir.Sub(value=value, index=index):
            return is_plain(value) and is_plain(index)
        case ir.Compare(left=left, right=right):
            return is_plain(left) and is_plain(right)
        case ir.Bool(values=parts) | ir.Display(items=parts):
            return all(map(is_plain, parts))
        case ir.Bin(first=first, rest=rest):
            return is_plain(first) and all(is_plain(part) for _, part in rest)
        case ir.IfExp(test=test, body=body, orelse=orelse):
            return all(map(is_plain, (test, body, orelse)))
        case ir.DictDisplay(items=entries):
            return all(is_plain(part) for pair in entries for part in pair if part is not None)
    return False


def is_long(steps: int, rounds: int) -> bool:
    """Whether so many rounds of a loop took so many steps that no more are run one by one."""
    return steps > max(rounds * MOST_OF_ROUND, MOST_OF_LOOP)


def stand_for_more(iterable: Value, state: State) -> bool:
    """Whether the rounds of a loop stand for more of their kind."""
    atom = only(iterable)
    found = state.get(atom) if isinstance(atom, Ref) else None
    return isinstance(found, Sequence) and found.open
