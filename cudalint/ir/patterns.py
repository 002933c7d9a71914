"""What a pattern of a ``match`` statement asks of its subject, and what it binds, as expressions.

``Point(x=0, y=n)`` asks whether the subject is a Point and its ``x`` is 0, and binds its ``y``. The subject itself is
``ir.Subject``. What a pattern binds that depends on which of several alternatives fits is left to its captured names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import libcst as cst

from cudalint.ir import nodes as ir
from cudalint.structs import Frozen, field

# These take one positional pattern, for the subject itself.
_WHOLE = frozenset(
    {"bool", "bytearray", "bytes", "dict", "float", "frozenset", "int", "list", "set", "str", "tuple"}
)  # fmt: skip


class Lowers(Protocol):
    """What lowers expressions and numbers nodes."""

    def expression(self, node: cst.BaseExpression) -> ir.Expr:
        """An expression of the text."""

    def mark(self, node: cst.CSTNode) -> int:
        """The number of a node that is made for one of the text."""


class Asked(Frozen):
    """What all of it has to hold, and what is bound by name then."""

    tests: list[ir.Expr] = field(default_factory=list)
    bindings: list[tuple[str, ir.Expr]] = field(default_factory=list)

    def add(self, other: Asked) -> None:
        """Ask this as well."""
        self.tests.extend(other.tests)
        self.bindings.extend(other.bindings)


def asked(pattern: cst.MatchPattern, subject: ir.Expr, lowers: Lowers) -> Asked:
    """What a pattern asks of a subject."""
    found = Asked()
    match pattern:
        case cst.MatchValue(value=value):
            found.tests.append(ir.Compare(lowers.mark(pattern), subject, "==", lowers.expression(value)))
        case cst.MatchSingleton(value=value):
            found.tests.append(ir.Compare(lowers.mark(pattern), subject, "is", lowers.expression(value)))
        case cst.MatchAs(pattern=inner, name=name):
            if inner is not None:
                found.add(asked(inner, subject, lowers))
            if name is not None:
                found.bindings.append((name.value, subject))
        case cst.MatchOr():
            found.tests.extend(_any_of(pattern, subject, lowers))
        case cst.MatchClass():
            found.add(_of_class(pattern, subject, lowers))
        case cst.MatchMapping():
            found.add(_of_mapping(pattern, subject, lowers))
        case cst.MatchList(patterns=items) | cst.MatchTuple(patterns=items):
            found.add(_of_sequence(pattern, items, subject, lowers))
    return found


def _any_of(pattern: cst.MatchOr, subject: ir.Expr, lowers: Lowers) -> list[ir.Expr]:
    """One test: whether any alternative fits; none where one of them always does."""
    parts = [asked(element.pattern, subject, lowers).tests for element in pattern.patterns]
    if not all(parts):
        return []
    return [ir.Bool(lowers.mark(pattern), "or", tuple(all_of(tests, pattern, lowers) for tests in parts))]


def all_of(tests: Sequence[ir.Expr], node: cst.CSTNode, lowers: Lowers) -> ir.Expr:
    """Several tests as one."""
    return tests[0] if len(tests) == 1 else ir.Bool(lowers.mark(node), "and", tuple(tests))


def _of_class(pattern: cst.MatchClass, subject: ir.Expr, lowers: Lowers) -> Asked:
    found = Asked([_is_instance(subject, lowers.expression(pattern.cls), pattern, lowers)])
    is_whole = isinstance(pattern.cls, cst.Name) and pattern.cls.value in _WHOLE
    for place, element in enumerate(pattern.patterns):
        part = subject if is_whole else _positional(pattern, place, subject, lowers)
        found.add(asked(element.value, part, lowers))
    for named in pattern.kwds:
        part = ir.Attr(lowers.mark(named), subject, named.key.value)
        found.add(asked(named.pattern, part, lowers))
    return found


def _positional(pattern: cst.MatchClass, place: int, subject: ir.Expr, lowers: Lowers) -> ir.Expr:
    """The attribute of the subject that a class names in this place: in ``__match_args__``."""
    mark = lowers.mark(pattern)
    names = ir.Attr(mark, lowers.expression(pattern.cls), "__match_args__")
    name = ir.Sub(mark, names, ir.Const(mark, place))
    return _call("getattr", (subject, name), pattern, lowers)


def _of_mapping(pattern: cst.MatchMapping, subject: ir.Expr, lowers: Lowers) -> Asked:
    found = Asked([_is_instance(subject, ir.Name(lowers.mark(pattern), "dict"), pattern, lowers)])
    for element in pattern.elements:
        key, again = lowers.expression(element.key), lowers.expression(element.key)
        found.tests.append(ir.Compare(lowers.mark(element), key, "in", subject))
        found.add(asked(element.pattern, ir.Sub(lowers.mark(element), subject, again), lowers))
    if pattern.rest is not None:
        keys = tuple(lowers.expression(element.key) for element in pattern.elements)
        found.bindings.append((pattern.rest.value, _other_items(keys, subject, lowers.mark(pattern.rest))))
    return found


def _other_items(keys: tuple[ir.Expr, ...], subject: ir.Expr, mark: int) -> ir.Expr:
    """``{key: value for key, value in subject.items() if key not in keys}``."""
    key, value = ir.Name(mark, ".key"), ir.Name(mark, ".value")
    items = ir.Call(mark, ir.Attr(mark, subject, "items"), ())
    is_other = ir.Compare(mark, key, "not in", ir.Display(mark, "tuple", keys))
    clause = ir.Generator(ir.Display(mark, "tuple", (key, value)), items, (is_other,))
    return ir.Comprehension(mark, "dict", key, value, (clause,))


def _of_sequence(
    pattern: cst.MatchPattern,
    items: Sequence[cst.MatchSequenceElement | cst.MatchStar],
    subject: ir.Expr,
    lowers: Lowers,
) -> Asked:
    mark = lowers.mark(pattern)
    kinds = ir.Display(mark, "tuple", (ir.Name(mark, "list"), ir.Name(mark, "tuple")))
    starred = next((i for i, item in enumerate(items) if isinstance(item, cst.MatchStar)), None)
    length = ir.Const(mark, len(items) - (starred is not None))
    found = Asked([_is_instance(subject, kinds, pattern, lowers)])
    if starred is None or length.value:
        compares = "==" if starred is None else ">="
        found.tests.append(ir.Compare(mark, _call("len", (subject,), pattern, lowers), compares, length))
    for place, item in enumerate(items):
        if isinstance(item, cst.MatchStar):
            if item.name is not None:
                found.bindings.append((item.name.value, _part(item, subject, place, place + 1 - len(items), lowers)))
            continue
        index = place if starred is None or place < starred else place - len(items)
        found.add(asked(item.value, ir.Sub(lowers.mark(item), subject, ir.Const(mark, index)), lowers))
    return found


def _part(item: cst.MatchStar, subject: ir.Expr, first: int, end: int, lowers: Lowers) -> ir.Expr:
    """``list(subject[first:end])``; an end of zero is that of the subject."""
    mark = lowers.mark(item)
    bounds = ir.Slice(mark, (ir.Const(mark, first), ir.Const(mark, end) if end else None, None))
    return _call("list", (ir.Sub(mark, subject, bounds),), item, lowers)


def _is_instance(subject: ir.Expr, kind: ir.Expr, pattern: cst.CSTNode, lowers: Lowers) -> ir.Expr:
    return _call("isinstance", (subject, kind), pattern, lowers)


def _call(name: str, args: tuple[ir.Expr, ...], node: cst.CSTNode, lowers: Lowers) -> ir.Expr:
    mark = lowers.mark(node)
    return ir.Call(mark, ir.Name(mark, name), tuple(ir.Arg(arg, None, "") for arg in args))


def captures(pattern: cst.CSTNode) -> set[str]:
    """Names that a match pattern binds."""
    found: set[str] = set()
    stack: list[cst.CSTNode] = [pattern]
    while stack:
        node = stack.pop()
        if isinstance(node, cst.MatchAs | cst.MatchStar) and node.name is not None:
            found.add(node.name.value)
        if isinstance(node, cst.MatchMapping) and node.rest is not None:
            found.add(node.rest.value)
        stack.extend(node.children)
    return found


def compared(pattern: cst.MatchPattern | None) -> list[cst.BaseExpression]:
    """What a pattern compares its subject with; empty where it does something else too."""
    match pattern:
        case cst.MatchValue(value=value) | cst.MatchSingleton(value=value):
            return [value]
        case cst.MatchOr(patterns=elements):
            parts = [compared(element.pattern) for element in elements]
            return [value for part in parts for value in part] if all(parts) else []
    return []
