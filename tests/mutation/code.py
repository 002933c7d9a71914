"""Mutants of code: another member of an enum, a test that is turned round, a message with other words.

A function is changed in place, by exchanging its code, so that whoever holds it runs the mutant; a statement of a
module's top level is run once more and its value put wherever the old one is.
"""

from __future__ import annotations

import ast
import copy
import importlib
import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from cudalint.finding import Applicability, Severity, StepKind
from cudalint.machine.outcome import Doubt, Kind
from cudalint.rules.base import RepairLevel
from mutation.mutant import Mutant
from mutation.watching import RULES_READ, Watch

_ENUMS: dict[str, type[Enum]] = {
    one.__name__: one for one in (Applicability, Severity, StepKind, Doubt, Kind, RepairLevel)
}
_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
}
_MARK = " (mutant)"
_RULES = "cudalint.rules"


@dataclass(frozen=True, slots=True)
class CodeMutant(Mutant):
    """One node of a module, by its number in the order of `ast.walk`, changed as ``how`` says."""

    module: str
    number: int
    how: str
    rows: tuple[int, int]
    # Where the function begins that it lies in; None for the top level of its module.
    function: tuple[str, int] | None

    def watch(self, watch: Watch) -> None:
        if self.function is not None:
            watch.codes.add((_path(self.module), *self.function))

    def noticed_by(self, watch: Watch) -> set[str]:
        if self.function is None:
            known = watch.of([("rule", self.module), RULES_READ]) if self.module.startswith(_RULES) else None
            return known or watch.tests
        file = _path(self.module)
        return watch.of((file, row) for row in range(self.rows[0], self.rows[1] + 1))

    def apply(self) -> None:
        module = importlib.import_module(self.module)
        tree = _tree(self.module)
        node = list(ast.walk(tree))[self.number]
        _change(node, self.how)
        ast.fix_missing_locations(tree)
        if self.function is None:
            _run_again(module, tree, self.rows[0])
            return
        code = compile(tree, _path(self.module), "exec")
        name, row = self.function
        for function in _functions_at(module, name, row):
            function.__code__ = next(c for c in _codes(code) if (c.co_name, c.co_firstlineno) == self.function)
            defaults = _defaults(tree, self.function, function)
            function.__defaults__, function.__kwdefaults__ = defaults.__defaults__, defaults.__kwdefaults__


def code_mutants(kind: str, module: str) -> Iterator[CodeMutant]:
    """All mutants of a module."""
    tree = _tree(module)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    file = Path(_path(module)).as_posix().rpartition("cudalint/")[2]
    decorating = {
        id(n) for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) for d in f.decorator_list for n in ast.walk(d)
    }
    for number, node in enumerate(ast.walk(tree)):
        # What decorates a function has done so already, and is no part of its code.
        for how in _ways(node, parents) if id(node) not in decorating else ():
            function = _around(node, parents)
            statement: ast.AST = node
            while not isinstance(statement, ast.stmt):
                statement = parents[statement]
            if function is None and not (
                isinstance(statement, ast.Assign) and isinstance(parents[statement], ast.Module)
            ):
                continue
            assert isinstance(node, (ast.expr, ast.stmt))
            rows = (node.lineno, node.end_lineno or node.lineno)
            if isinstance(statement, (ast.If, ast.While)):
                rows = (statement.test.lineno, statement.test.end_lineno or statement.test.lineno)
            elif function is not None:
                rows = (statement.lineno, statement.end_lineno or statement.lineno)
            words = ast.unparse(node).partition("\n")[0][:60]
            what = f"{node.lineno}: {words} -> {how}"
            where = None if function is None else (function.name, _first_row(function))
            top = (statement.lineno, rows[1]) if function is None else rows
            yield CodeMutant(kind, file, what, module, number, how, top, where)


def _ways(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> Iterator[str]:
    """How a node can be changed."""
    match node:
        case ast.Attribute(value=ast.Name(id=name), attr=member, ctx=ast.Load()) if name in _ENUMS:
            members = [m.name for m in _ENUMS[name]]
            if member in members:
                yield members[(members.index(member) + 1) % len(members)]
        case ast.Compare(ops=[op]) if type(op) in _OPPOSITE:
            yield "the opposite"
        case ast.UnaryOp(op=ast.Not()):
            yield "without not"
        case ast.BoolOp():
            yield "and for or, or for and"
        case ast.If(test=test) if not isinstance(test, (ast.Compare, ast.BoolOp)):
            yield "never"
        case ast.Constant(value=bool()) if not isinstance(parents[node], (ast.Match, ast.match_case)):
            yield "the other truth value"
        case ast.Constant(value=str()) if _is_said(node, parents):
            yield "other words"


def _is_said(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether a text is one that users read: it has spaces, and is no docstring."""
    assert isinstance(node, ast.Constant)
    return " " in str(node.value).strip() and not isinstance(
        parents[node], (ast.Expr, ast.JoinedStr, ast.FormattedValue)
    )


def _change(node: ast.AST, how: str) -> None:
    match node:
        case ast.Attribute():
            node.attr = how
        case ast.Compare(ops=[op]):
            node.ops = [_OPPOSITE[type(op)]()]
        case ast.UnaryOp():
            node.op = ast.Not()
            node.operand = ast.UnaryOp(ast.Not(), node.operand)
        case ast.BoolOp():
            node.op = ast.And() if isinstance(node.op, ast.Or) else ast.Or()
        case ast.If():
            node.test = ast.Constant(False)
        case ast.Constant(value=bool()):
            node.value = not node.value
        case ast.Constant():
            node.value = f"{node.value}{_MARK}"


def _around(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> ast.FunctionDef | None:
    """The outermost function around a node."""
    found = None
    while node in parents:
        node = parents[node]
        if isinstance(node, ast.FunctionDef):
            found = node
    return found


def _first_row(function: ast.FunctionDef) -> int:
    return min([function.lineno, *(d.lineno for d in function.decorator_list)])


def _tree(module: str) -> ast.Module:
    return ast.parse(Path(_path(module)).read_text(encoding="utf-8"))


def _path(module: str) -> str:
    found = importlib.import_module(module).__file__
    assert found is not None
    return found


def _codes(code: CodeType) -> Iterator[CodeType]:
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield one
            yield from _codes(one)


def _functions_at(module: ModuleType, name: str, row: int) -> Iterator[FunctionType]:
    """The function that begins in a row, whatever is wrapped around it: a property, another function, a command."""
    holders: list[Any] = [module, *(c for c in vars(module).values() if inspect.isclass(c))]
    for holder in holders:
        found: Any = vars(holder).get(name)
        found = getattr(found, "fget", None) or getattr(found, "__func__", None) or getattr(found, "callback", found)
        while (found is not None and not isinstance(found, FunctionType)) or hasattr(found, "__wrapped__"):
            found = getattr(found, "__wrapped__", None)
        if found is not None and found.__code__.co_firstlineno == row:
            yield found


def _defaults(tree: ast.Module, where: tuple[str, int], function: FunctionType) -> FunctionType:
    """A function with the defaults that a changed one would have: they are no part of its code."""
    found = next(n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and (n.name, _first_row(n)) == where)
    made = ast.parse(f"from __future__ import annotations\ndef {found.name}(): pass")
    alone = made.body[1]
    assert isinstance(alone, ast.FunctionDef)
    alone.args = found.args
    names: dict[str, Any] = dict(function.__globals__)
    exec(compile(made, function.__code__.co_filename, "exec", dont_inherit=True), names)
    result = names[found.name]
    assert isinstance(result, FunctionType)
    return result


def _run_again(module: ModuleType, tree: ast.Module, row: int) -> None:
    """Run one statement of a top level, and put what it binds wherever the old value is."""
    statement = next(s for s in tree.body if s.lineno <= row <= (s.end_lineno or s.lineno))
    names = dict(vars(module))
    alone = ast.Module([copy.deepcopy(statement)], [])
    exec(compile(alone, _path(module.__name__), "exec"), names)
    for name, old in list(vars(module).items()):
        new = names.get(name)
        if new is old:
            continue
        for other in [m for m in sys.modules.values() if isinstance(m, ModuleType)]:
            for key, value in list(vars(other).items()):
                if value is old:
                    setattr(other, key, new)
