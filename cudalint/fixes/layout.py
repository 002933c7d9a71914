"""Moving whole statements: under a main guard, or above others."""

from __future__ import annotations

import libcst as cst

from cudalint.fixes.edits import Change
from cudalint.fixes.view import View


def under_main_guard(view: View, statement: cst.BaseStatement) -> list[Change]:
    """Put a top-level statement and all that follow it, definitions left where they are, under a main guard."""
    rest = view.siblings(statement)
    rest = rest[rest.index(statement) :]
    if any(isinstance(s, cst.FunctionDef | cst.ClassDef) for s in rest) or any(is_guard(view, s) for s in rest):
        return _into_guard(view, statement, rest)
    first, last = view.row(rest[0]), view.last_row(rest[-1])
    at = view.row_start(first)
    indent = view.tree.default_indent
    return [Change(at, at, f'if __name__ == "__main__":{view.newline}'), *indented(view, first, last, indent)]


def _into_guard(view: View, statement: cst.BaseStatement, rest: list[cst.CSTNode]) -> list[Change]:
    """Move one statement to the top of the guard that follows it, or under one at the end of the file."""
    moved = view.text[view.row_start(view.row(statement)) : view.row_start(view.last_row(statement) + 1)]
    indent = view.tree.default_indent
    text = _indented_text(moved, indent)
    for other in rest:
        if is_guard(view, other) and isinstance(other, cst.If) and isinstance(other.body, cst.IndentedBlock):
            first = other.body.body[0]
            inner = view.indentation(first)
            at = view.row_start(view.row(first))
            return [_removed(view, statement), Change(at, at, _indented_text(moved, inner))]
    last = rest[-1]
    end = view.row_start(view.last_row(last) + 1)
    lead = "" if end and view.text[end - 1] in "\r\n" else view.newline
    block = f'{lead}{view.newline}{view.newline}if __name__ == "__main__":{view.newline}{text}'
    return [_removed(view, statement), Change(end, end, block)]


def _removed(view: View, statement: cst.CSTNode) -> Change:
    return Change(view.row_start(view.row(statement)), view.row_start(view.last_row(statement) + 1), "")


def guarded(view: View) -> cst.CSTNode | None:
    """The first statement under the main guard."""
    for statement in view.tree.body:
        if is_guard(view, statement) and isinstance(statement, cst.If):
            return next(iter(statement.body.body), None) if isinstance(statement.body, cst.IndentedBlock) else None
    return None


def is_guard(view: View, statement: cst.CSTNode | None) -> bool:
    """Whether a statement is ``if __name__ == "__main__":``."""
    return isinstance(statement, cst.If) and "__main__" in view.source(statement.test)


def _indented_text(text: str, indent: str) -> str:
    rows = text.splitlines(keepends=True)
    return "".join(indent + row if row.strip() else row for row in rows)


def indented(view: View, first: int, last: int, indent: str) -> list[Change]:
    """Indent rows; those that begin inside a string stay as they are, and blank ones too."""
    inside = _rows_inside_strings(view)
    changes: list[Change] = []
    for row in range(first, last + 1):
        start, end = view.row_start(row), view.row_start(row + 1)
        if row not in inside and view.text[start:end].strip():
            changes.append(Change(start, start, indent))
    return changes


def _rows_inside_strings(view: View) -> set[int]:
    rows: set[int] = set()
    for node in view.inside(view.tree):
        if isinstance(node, cst.SimpleString | cst.FormattedString) and view.last_row(node) > view.row(node):
            rows.update(range(view.row(node) + 1, view.last_row(node) + 1))
    return rows


def moved_above(view: View, statement: cst.BaseStatement, target: cst.CSTNode) -> list[Change]:
    """Move a statement above another; its own indentation becomes that of its new place."""
    first, after = view.row_start(view.row(statement)), view.row_start(view.last_row(statement) + 1)
    own, wanted = view.indentation(statement), view.indentation(target)
    rows = view.text[first:after].splitlines(keepends=True)
    text = "".join(_reindented(row, own, wanted) for row in rows)
    if text and text[-1] not in "\r\n":
        text += view.newline
    at = view.row_start(view.row(target))
    return [Change(at, at, text), *taken_out(view, statement)]


def taken_out(view: View, statement: cst.BaseStatement) -> list[Change]:
    """Remove a statement with its row; what would leave a block empty leaves ``pass``."""
    first, after = view.row_start(view.row(statement)), view.row_start(view.last_row(statement) + 1)
    if len(view.siblings(statement)) == 1 and not isinstance(view.parent(statement), cst.Module):
        return [Change(first, after, f"{view.indentation(statement)}pass{view.newline}")]
    return [Change(first, after, "")]


def _reindented(row: str, own: str, wanted: str) -> str:
    return wanted + row.removeprefix(own) if row.strip() else row


def has_own_rows(view: View, statement: cst.CSTNode) -> bool:
    """Whether a statement shares its rows with no other: then it can be moved as rows."""
    if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) != 1:
        return False
    start = view.row_start(view.row(statement))
    return not view.text[start : view.start(statement)].strip() and isinstance(
        view.parent(statement), cst.Module | cst.IndentedBlock
    )
