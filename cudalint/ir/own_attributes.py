"""Which attributes of its object a method sets, and which it reads whenever it is called."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from cudalint.ir import nodes as ir
from cudalint.ir.walk import inner_statements
from cudalint.structs import Struct


@lru_cache(maxsize=1024)
def read(method: ir.Function) -> frozenset[str]:
    """The attributes that it reads on every way, as far as that is plain."""
    own = _own_name(method)
    return frozenset(_read(method.body, own)) if own else frozenset()


@lru_cache(maxsize=1024)
def written(method: ir.Function) -> frozenset[str]:
    """The attributes that it sets, on whatever way."""
    own = _own_name(method)
    return frozenset(_written(method.body, own)) if own else frozenset()


def _own_name(method: ir.Function) -> str:
    return method.params[0].name if method.params else ""


def _read(body: Iterable[ir.Stmt], own: str) -> Iterator[str]:
    for statement in body:
        match statement:
            case ir.Assign(value=value):
                yield from _attributes(value, own)
            case ir.ExprStmt() | ir.Return() | ir.AugAssign():
                yield from _attributes(statement, own)
            case ir.For(iter=iterated, body=inner):
                yield from _attributes(iterated, own)
                yield from _read(inner, own)
            case ir.With(items=items, body=inner):
                for entered, _ in items:
                    yield from _attributes(entered, own)
                yield from _read(inner, own)
            case ir.Try(body=inner, handlers=()):
                yield from _read(inner, own)
            case ir.If(test=test):
                yield from _attributes(test, own)
        if _may_leave(statement):
            return


def _may_leave(statement: ir.Stmt) -> bool:
    """Whether what follows may not be reached."""
    return isinstance(statement, ir.Return | ir.Raise) or any(map(_may_leave, inner_statements(statement)))


def _written(body: Iterable[ir.Stmt], own: str) -> Iterator[str]:
    for statement in body:
        match statement:
            case ir.Assign(targets=targets):
                for target in targets:
                    yield from _attributes(target, own)
            case ir.AugAssign(target=target) | ir.For(target=target):
                yield from _attributes(target, own)
        yield from _written(inner_statements(statement), own)


def _attributes(node: object, own: str) -> Iterator[str]:
    """The attributes of an object that an expression names, but for those in functions within."""
    match node:
        case tuple():
            for each in node:
                yield from _attributes(each, own)
        case ir.Function() | str():
            return
        case ir.Attr(value=ir.Name(id=name), attr=attr):
            if name == own:
                yield attr
        case Struct():
            for name in node.__struct_fields__:
                yield from _attributes(getattr(node, name), own)
