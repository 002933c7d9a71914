"""Where generators yield: which of them can be run step by step, and where one goes on that waits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import dropwhile

from cudalint.ir import nodes as ir
from cudalint.structs import Struct


@lru_cache(maxsize=1024)
def has_steps(function: ir.Function) -> bool:
    """Whether each ``yield`` of a generator is a statement, or all that one assigns, where it can be gone on from."""
    if not function.is_generator or function.is_async:
        return False
    found = list(_all_yields(function.body))
    plain = list(_plain_yields(function.body))
    return bool(found) and len(found) == len(plain) and not any(each.each for each in found)


def _all_yields(node: object) -> Iterator[ir.Yield]:
    """Every ``yield`` of a body, but for those of functions within."""
    match node:
        case tuple():
            for each in node:
                yield from _all_yields(each)
        case ir.Function() | ir.Module() | str():
            return
        case Struct():
            if isinstance(node, ir.Yield):
                yield node
            for name in node.__struct_fields__:
                yield from _all_yields(getattr(node, name))


def _plain_yields(body: Iterable[ir.Stmt]) -> Iterator[ir.Yield]:
    """Those that are statements, in blocks that can be entered again."""
    for statement in body:
        match statement:
            case ir.ExprStmt(value=ir.Yield() as found) | ir.Assign(value=ir.Yield() as found):
                yield found
            case ir.AugAssign(value=ir.Yield() as found) | ir.Return(value=ir.Yield() as found):
                yield found
            case ir.If():
                yield from _plain_yields((*statement.body, *statement.orelse))
            case ir.For() | ir.While() | ir.With():
                yield from _plain_yields(statement.body)
            case ir.Try():
                yield from _plain_yields(statement.body)
                # What comes at the end of a statement is lost where one goes on behind it.
                for handler in () if statement.final else statement.handlers:
                    yield from _plain_yields(handler.body)


def from_yield(body: Iterable[ir.Stmt], at: int) -> Iterable[ir.Stmt]:
    """The statements of a block from the one that has a ``yield`` in it."""
    return dropwhile(lambda statement: not holds(statement, at), body)


def holds(node: object, at: int) -> bool:
    """Whether a statement, or a block, has a ``yield`` in it."""
    return any(found.ordinal == at for found in _all_yields((node,)))
