"""Statements within statements, names within targets and expressions."""

from __future__ import annotations

from collections.abc import Iterable, Set

from cudalint.ir import nodes as ir


def inner_statements(statement: ir.Stmt) -> Iterable[ir.Stmt]:
    """The statements of the blocks of a statement; those of functions and classes are not its own."""
    match statement:
        case ir.If(body=body, orelse=orelse) | ir.For(body=body, orelse=orelse) | ir.While(body=body, orelse=orelse):
            yield from (*body, *orelse)
        case ir.With(body=body):
            yield from body
        case ir.Try(body=body, handlers=handlers, orelse=orelse, final=final):
            yield from (*body, *orelse, *final)
            for handler in handlers:
                yield from handler.body
        case ir.Match(cases=cases):
            for case in cases:
                yield from case.body


def bound_names(target: ir.Expr) -> Iterable[str]:
    """The names that an assignment to a target binds."""
    match target:
        case ir.Name(id=name):
            yield name
        case ir.Display(items=items):
            for item in items:
                yield from bound_names(item)
        case ir.Star(value=value):
            yield from bound_names(value)


def last_name(node: ir.Expr) -> str:
    """The name by which an expression mentions something: ``c`` of ``a.b.c``; empty where it is no name."""
    match node:
        case ir.Attr(attr=attr):
            return attr
        case ir.Name(id=name):
            return name
    return ""


def called_in(node: ir.Expr) -> Iterable[int]:
    """The ordinals of the calls that a test makes, as far as it is made of calls, comparisons and the like."""
    match node:
        case ir.Call(func=callee, args=args):
            yield node.ordinal
            yield from called_in(callee)
            for arg in args:
                yield from called_in(arg.value)
        case ir.Attr(value=value) | ir.Not(value=value):
            yield from called_in(value)
        case ir.Compare(left=left, right=right):
            yield from called_in(left)
            yield from called_in(right)
        case ir.Bool(values=values):
            for value in values:
                yield from called_in(value)


def functions(body: Iterable[ir.Stmt]) -> Iterable[ir.Function]:
    """The functions of a module and the methods of its classes, outermost only, in order."""
    for statement in body:
        match statement:
            case ir.FunctionDef(function=function):
                yield function
            case ir.ClassDef(body=inner):
                yield from functions(inner)
            case _:
                yield from functions(inner_statements(statement))


# Decorators of methods that are called without an instance.
_OF_CLASSES = frozenset({"classmethod", "staticmethod"})


def is_of_class(module: ir.Module, method: ir.Function) -> bool:
    """Whether a method of a class at the top of a module is called on the class, and not on an instance."""
    return any(
        isinstance(inner, ir.FunctionDef)
        and inner.function is method
        and any(last_name(decorator) in _OF_CLASSES for decorator in inner.decorators)
        for statement in module.body
        if isinstance(statement, ir.ClassDef)
        for inner in statement.body
    )


def constructor(module: ir.Module, cls: str) -> ir.Function | None:
    """The constructor that a class of a module defines itself."""
    return next((f for f in functions(module.body) if f.qualname == f"{cls}.__init__"), None)


def mentions(module: ir.Module, words: Set[str]) -> bool:
    """Whether one of these words stands anywhere in a module."""
    return not module.words.isdisjoint(words) or any(f.mentions(words) for f in functions(module.body))


def imports_all(body: Iterable[ir.Stmt]) -> bool:
    """Whether a module's own statements have a ``from module import *`` among them."""
    return any(
        (isinstance(statement, ir.ImportFrom) and statement.names is None) or imports_all(inner_statements(statement))
        for statement in body
    )


def binds(body: Iterable[ir.Stmt], name: str) -> bool:
    """Whether statements of a block, or of blocks within, bind a name."""
    return any(name in names_bound_by(s) or binds(inner_statements(s), name) for s in body)


def names_bound_by(statement: ir.Stmt) -> Iterable[str]:
    """The names that a statement itself binds, not those that statements in it do."""
    match statement:
        case ir.FunctionDef(bound=name) | ir.ClassDef(name=name):
            yield name
        case ir.Assign(targets=targets):
            for target in targets:
                yield from bound_names(target)
        case ir.For(target=target):
            yield from bound_names(target)
        case ir.With(items=items):
            for _, bound in items:
                if bound is not None:
                    yield from bound_names(bound)
        case ir.Import(names=names):
            for dotted, alias in names:
                yield alias or dotted.partition(".")[0]
        case ir.ImportFrom(names=tuple(names)):
            for name, alias in names:
                yield alias or name
