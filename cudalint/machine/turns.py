"""Which later turns of a loop over numbers its body asks for: ``if epoch == 5``, ``"cuda" if step > 3 else "cpu"``."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence

from cudalint.ir import nodes as ir
from cudalint.ir.walk import inner_statements

# A loop makes so many turns more, each with the next one, and none of them later than this one.
MOST_LATER = 2
LATEST = 1_000

Numbers = Callable[[str], int | None]
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
}  # fmt: skip
_COMPARING: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def tests_of(body: Iterable[ir.Stmt], name: str) -> tuple[ir.Expr, ...]:
    """What the statements of a loop ask of its number, which has this name."""
    return tuple(test for test in _tests(body) if _mentions(test, name))


def later(tests: Sequence[ir.Expr], name: str, seen: Sequence[int], end: int | None, numbers: Numbers) -> list[int]:
    """The first numbers that answer a test otherwise than all that are ``seen``; ``end`` is none of the loop's.

    The number behind each is among them: what that turn leaves shows in the next one. ``numbers`` tells what other
    names stand for.
    """
    found: set[int] = set()
    after = min(end or LATEST, LATEST)
    for test in tests:
        answers = {_holds(test, {name: number}, numbers) for number in seen}
        if len(answers) != 1 or None in answers:
            continue
        candidates = range(max(seen) + 1, after)
        other = next((n for n in candidates if _holds(test, {name: n}, numbers) not in answers), None)
        if other is not None:
            found.add(other)
    asked = sorted(found)[:MOST_LATER]
    return sorted({*asked, *(n + 1 for n in asked if n + 1 < after)})


def number(node: ir.Expr, known: dict[str, int], numbers: Numbers) -> int | None:
    """The whole number that an expression is; None where it is none, or nothing shows which."""
    match node:
        case ir.Const(value=int(value)) if not isinstance(value, bool):
            return value
        case ir.Name(id=name):
            return known[name] if name in known else numbers(name)
        case ir.Unary(op="-", value=inner):
            found = number(inner, known, numbers)
            return None if found is None else -found
        case ir.Bin(first=first, rest=rest):
            result = number(first, known, numbers)
            for op, part in rest:
                operand = number(part, known, numbers)
                if result is None or operand is None or op not in _ARITHMETIC or (op in "//%" and operand == 0):
                    return None
                result = _ARITHMETIC[op](result, operand)
            return result
    return None


def _holds(test: ir.Expr, known: dict[str, int], numbers: Numbers) -> bool | None:
    match test:
        case ir.Compare(left=left, op=op, right=right) if op in _COMPARING:
            one, other = number(left, known, numbers), number(right, known, numbers)
            return None if one is None or other is None else _COMPARING[op](one, other)
    found = number(test, known, numbers)
    return None if found is None else bool(found)


def _tests(body: Iterable[ir.Stmt]) -> Iterator[ir.Expr]:
    for statement in body:
        match statement:
            case ir.If(test=test):
                yield from _parts(test)
            case ir.ExprStmt(value=value) | ir.Assign(value=value):
                yield from _choices(value)
        yield from _tests(inner_statements(statement))


def _choices(node: ir.Expr) -> Iterator[ir.Expr]:
    """What an expression asks before it is one of two things, or some of its parts are."""
    inner: Iterable[ir.Expr] = ()
    match node:
        case ir.IfExp(test=test, body=body, orelse=orelse):
            yield from _parts(test)
            inner = (body, orelse)
        case ir.Call(func=func, args=args):
            inner = (func, *(arg.value for arg in args))
        case ir.Attr(value=value) | ir.Await(value=value) | ir.Star(value=value):
            inner = (value,)
        case ir.Display(items=items):
            inner = items
        case ir.DictDisplay(items=pairs):
            inner = (value for _, value in pairs)
    for part in inner:
        yield from _choices(part)


def _parts(test: ir.Expr) -> Iterator[ir.Expr]:
    """What a test asks, one by one."""
    match test:
        case ir.Bool(values=values):
            for value in values:
                yield from _parts(value)
        case ir.Not(value=value):
            yield from _parts(value)
        case _:
            yield test


def _mentions(node: ir.Expr, name: str) -> bool:
    match node:
        case ir.Name(id=found):
            return found == name
        case ir.Compare(left=left, right=right):
            return _mentions(left, name) or _mentions(right, name)
        case ir.Unary(value=value):
            return _mentions(value, name)
        case ir.Bin(first=first, rest=rest):
            return _mentions(first, name) or any(_mentions(part, name) for _, part in rest)
    return False
