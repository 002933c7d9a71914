"""What literals stand for, told without Python's parser where that is plain."""

from __future__ import annotations

import ast
import re

import libcst as cst

from cudalint.text.quiet import quietly

_WORD = re.compile(r"[A-Za-z_]\w*")
# A quote that nothing keeps from ending a text.
_BARE_QUOTE = re.compile(r'(?<!\\)"')
_SPACE = re.compile(r"\s")


def number_of(node: cst.Integer | cst.Float | cst.Imaginary) -> complex:
    """The value of a literal. That of most is told without Python's parser, which tables of numbers would keep busy."""
    match node:
        case cst.Integer():
            return int(node.value, 0)
        case cst.Float():
            return float(node.value)
        case _:
            return node.evaluated_value


def plain_string(literal: str) -> str:
    """What a literal without a prefix and escapes stands for, which needs no parser; nothing for all others."""
    if literal[0] not in "'\"" or "\\" in literal or "\r" in literal:
        return ""
    quotes = 3 if literal[:3] in ('"""', "'''") else 1
    return literal[quotes:-quotes]


def text_of(written: str, is_raw: bool) -> str | None:
    """What a part of an f-string that is text stands for; None where that cannot be told."""
    text = written.replace("{{", "{").replace("}}", "}")
    if is_raw or "\\" not in text:
        return text
    if "\r" in text:
        return None
    try:
        with quietly():
            found = ast.literal_eval('"""' + _BARE_QUOTE.sub(r"\"", text) + '"""')
    except (ValueError, SyntaxError):
        return None
    return found if isinstance(found, str) else None


def with_equals(node: cst.FormattedStringExpression) -> str:
    """``x =`` of ``f"{x = }"``."""
    parts = (node.whitespace_before_expression, node.expression, node.whitespace_after_expression, node.equal)
    return "".join(cst.Module(()).code_for_node(part) for part in parts if part is not None)


def names_in(text: str) -> list[str]:
    """The words of a string that can name a device, a variable or an attribute; strings of prose are left out."""
    return _WORD.findall(text) if _SPACE.search(text) is None else []
