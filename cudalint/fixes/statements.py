"""What a line of a file is: text, an import, or more."""

from __future__ import annotations

import libcst as cst

_Import = cst.Import | cst.ImportFrom
_Text = cst.SimpleString | cst.ConcatenatedString


def is_docstring(statement: cst.CSTNode) -> bool:
    """Whether a line begins with text that stands for itself."""
    first = _first(statement)
    return isinstance(first, cst.Expr) and isinstance(first.value, _Text)


def begins_with_import(statement: cst.CSTNode) -> bool:
    """Whether a line is an import, perhaps with more behind it."""
    return isinstance(_first(statement), _Import)


def is_import(statement: cst.CSTNode) -> bool:
    """Whether a line imports and does nothing else."""
    return isinstance(statement, cst.SimpleStatementLine) and all(isinstance(s, _Import) for s in statement.body)


def _first(statement: cst.CSTNode) -> cst.BaseSmallStatement | None:
    return statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
