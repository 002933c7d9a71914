"""Conditions written in other ways: the branches swapped, the answer asked of a helper, or kept in a field."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from metamorphic.program import Files
from metamorphic.transformation import Transformation, alone, opening, statements

Test = Callable[[cst.BaseExpression], cst.BaseExpression]
_HELPER = '''\
def as_it_is(answer):
    """Gives an answer back."""
    return answer


'''
_FIELD = '''\
class Kept:
    """Holds an answer."""

    def __init__(self, answer):
        self.answer = answer

    def holds(self):
        if not self.answer:
            return False
        return True


'''


class _Tests(cst.CSTTransformer):
    """Changes the conditions of expressions, and of statements in functions."""

    def __init__(self, test: Test) -> None:
        self.test, self.depth = test, 0

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self.depth += 1

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        self.depth -= 1
        return updated_node

    def leave_If(self, original_node: cst.If, updated_node: cst.If) -> cst.If:
        if not self.depth or _names_what_it_asks(original_node.test):
            return updated_node
        changed = updated_node.with_changes(test=self.test(updated_node.test))
        return changed.with_changes(whitespace_before_test=cst.SimpleWhitespace(" "))

    def leave_IfExp(self, original_node: cst.IfExp, updated_node: cst.IfExp) -> cst.IfExp:
        if _names_what_it_asks(original_node.test):
            return updated_node
        return updated_node.with_changes(test=self.test(updated_node.test))


class _Swapped(_Tests):
    """Puts what is done otherwise first."""

    def leave_If(self, original_node: cst.If, updated_node: cst.If) -> cst.If:
        changed = super().leave_If(original_node, updated_node)
        otherwise = changed.orelse
        if changed is updated_node or isinstance(otherwise, cst.If):
            return updated_node
        if otherwise is None:
            (nothing,) = statements("if x:\n    pass\n")
            assert isinstance(nothing, cst.If)
            return changed.with_changes(body=nothing.body, orelse=cst.Else(changed.body))
        return changed.with_changes(body=otherwise.body, orelse=otherwise.with_changes(body=changed.body))

    def leave_IfExp(self, original_node: cst.IfExp, updated_node: cst.IfExp) -> cst.IfExp:
        changed = super().leave_IfExp(original_node, updated_node)
        if changed is updated_node:
            return updated_node
        return changed.with_changes(body=changed.orelse, orelse=changed.body)


def _names_what_it_asks(test: cst.BaseExpression) -> bool:
    """Whether a test binds a name: that has to stay in its place."""
    found = cst.Module([cst.SimpleStatementLine([cst.Expr(test)])]).code
    return ":=" in found


def _negated(test: cst.BaseExpression) -> cst.BaseExpression:
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return test.expression
    inner = test if test.lpar else test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return cst.UnaryOperation(cst.Not(), inner)


def _called(name: str, *args: cst.BaseExpression) -> cst.Call:
    return cst.Call(cst.Name(name), [cst.Arg(arg) for arg in args])


def _swap(module: cst.Module) -> Files | None:
    return alone(module.visit(_Swapped(_negated)), module)


def _with(module: cst.Module, definition: str, test: Test) -> Files | None:
    changed = module.visit(_Tests(test))
    at = opening(changed.body)
    if changed.code == module.code:
        return None
    return alone(changed.with_changes(body=[*changed.body[:at], *statements(definition), *changed.body[at:]]), module)


def _helper(module: cst.Module) -> Files | None:
    return _with(module, _HELPER, lambda test: _called("as_it_is", test))


def _field(module: cst.Module) -> Files | None:
    return _with(module, _FIELD, lambda test: cst.Call(cst.Attribute(_called("Kept", test), cst.Name("holds"))))


SWAP = Transformation("swap-branches", preserving=True, apply=_swap)
HELPER = Transformation("ask-helper", preserving=True, apply=_helper)
FIELD = Transformation("ask-field", preserving=True, apply=_field)
