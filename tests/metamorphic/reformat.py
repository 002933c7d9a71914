"""The same program with other line breaks, parentheses, quotes and comments."""

from __future__ import annotations

import libcst as cst

from metamorphic.program import Files
from metamorphic.transformation import Transformation, alone, is_docstring


def _apply(module: cst.Module) -> Files | None:
    return alone(module.visit(_Spread()), module)


def _line(comment: str | None = None) -> cst.ParenthesizedWhitespace:
    said = cst.TrailingWhitespace(cst.SimpleWhitespace("  "), cst.Comment(f"# {comment}")) if comment else None
    return cst.ParenthesizedWhitespace(
        first_line=said or cst.TrailingWhitespace(), indent=True, last_line=cst.SimpleWhitespace("        ")
    )


class _Spread(cst.CSTTransformer):
    """Every argument on a line of its own; f-strings are left, older Pythons allow no line break in them."""

    def __init__(self) -> None:
        self.formatted = 0

    def visit_FormattedString(self, node: cst.FormattedString) -> None:
        self.formatted += 1

    def leave_FormattedString(
        self, original_node: cst.FormattedString, updated_node: cst.FormattedString
    ) -> cst.FormattedString:
        self.formatted -= 1
        return updated_node

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        if self.formatted or not updated_node.args:
            return updated_node
        args = [
            argument.with_changes(comma=cst.Comma(whitespace_after=_line(f"number {i + 1}")))
            for i, argument in enumerate(updated_node.args[:-1])
        ]
        last = updated_node.args[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=_line())
        return updated_node.with_changes(whitespace_before_args=_line("arguments, one by one"), args=[*args, last])

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(value=self._wrapped(updated_node.value))

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
        return updated_node.with_changes(value=self._wrapped(updated_node.value))

    def leave_Return(self, original_node: cst.Return, updated_node: cst.Return) -> cst.Return:
        return updated_node if updated_node.value is None else _return(self._wrapped(updated_node.value))

    def _wrapped(self, value: cst.BaseExpression) -> cst.BaseExpression:
        if self.formatted or value.lpar:
            return value
        return value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])

    def leave_SimpleString(self, original_node: cst.SimpleString, updated_node: cst.SimpleString) -> cst.SimpleString:
        text = updated_node.value
        if self.formatted or updated_node.prefix or text.startswith(('"""', "'''")) or "\\" in text:
            return updated_node
        other = "'" if text[0] == '"' else '"'
        return updated_node if other in text else updated_node.with_changes(value=f"{other}{text[1:-1]}{other}")

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.FlattenSentinel[cst.SimpleStatementLine]:
        if is_docstring(updated_node):
            return updated_node
        first, *others = updated_node.body
        said = cst.EmptyLine(comment=cst.Comment("# next"))
        lines = [updated_node.with_changes(body=[_last(first)], leading_lines=[*updated_node.leading_lines, said])]
        lines += [cst.SimpleStatementLine([_last(small)]) for small in others]
        return cst.FlattenSentinel(lines)

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        return updated_node.with_changes(indent="  ")


def _return(value: cst.BaseExpression) -> cst.Return:
    return cst.Return(value, whitespace_after_return=cst.SimpleWhitespace(" "))


def _last(small: cst.BaseSmallStatement) -> cst.BaseSmallStatement:
    return small.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)


REFORMAT = Transformation("reformat", preserving=True, apply=_apply)
