"""Moving whole statements: under a main guard, or above others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import libcst as cst

from cudalint.fixes.edits import Change, apply
from cudalint.fixes.statements import is_import
from cudalint.fixes.view import View

_GUARD = 'if __name__ == "__main__":'


def under_main_guard(view: View, statement: cst.BaseStatement) -> Iterator[list[Change]]:
    """Ways to put a top-level statement under a main guard, with or without the statements that follow it.

    Definitions and imports stay where they are, so that other modules and fresh processes find them.
    """
    rest = view.siblings(statement)
    rest = rest[rest.index(statement) :]
    known = next((s for s in rest if is_guard(view, s)), None)
    if known is not None:
        between = rest[: rest.index(known)]
        yield _into_guard(view, [statement], known)
        yield _into_guard(view, _acting(between), known)
        return
    if not any(isinstance(s, cst.FunctionDef | cst.ClassDef) for s in rest):
        first, last = first_row(view, rest[0]), view.last_row(rest[-1])
        at = view.row_start(first)
        indent = view.tree.default_indent
        yield [Change(at, at, f"{_GUARD}{view.newline}"), *indented(view, first, last, indent)]
        return
    yield _at_end(view, _acting(rest), rest[-1])
    yield _at_end(view, [statement], rest[-1])


def _acting(statements: Iterable[cst.CSTNode]) -> list[cst.CSTNode]:
    """The statements that do something: neither definitions nor imports."""
    return [s for s in statements if not isinstance(s, cst.FunctionDef | cst.ClassDef) and not is_import(s)]


def _into_guard(view: View, moved: list[cst.CSTNode], guard: cst.CSTNode) -> list[Change]:
    """Statements at the top of the guard that follows them."""
    assert isinstance(guard, cst.If)
    if not isinstance(guard.body, cst.IndentedBlock):
        return []
    first = guard.body.body[0]
    at = view.row_start(first_row(view, first))
    text = "".join(_moved_text(view, s, view.indentation(first)) for s in moved)
    return [*(_removed(view, s) for s in moved), Change(at, at, text)]


def _at_end(view: View, moved: list[cst.CSTNode], last: cst.CSTNode) -> list[Change]:
    """Statements under a guard at the end of the file."""
    end = view.row_start(view.last_row(last) + 1)
    lead = "" if end and view.text[end - 1] in "\r\n" else view.newline
    text = "".join(_moved_text(view, s, view.tree.default_indent) for s in moved)
    block = f"{lead}{view.newline}{view.newline}{_GUARD}{view.newline}{text}"
    return [*(_removed(view, s) for s in moved), Change(end, end, block)]


def _moved_text(view: View, statement: cst.CSTNode, indent: str) -> str:
    """The rows of a statement, indented, but for those that begin inside a string."""
    first, last = first_row(view, statement), view.last_row(statement)
    inside = _rows_inside_strings(view)
    rows = [(row, view.text[view.row_start(row) : view.row_start(row + 1)]) for row in range(first, last + 1)]
    text = "".join(indent + line if line.strip() and row not in inside else line for row, line in rows)
    return text if text.endswith(("\n", "\r")) else text + view.newline


def _removed(view: View, statement: cst.CSTNode) -> Change:
    return Change(view.row_start(first_row(view, statement)), view.row_start(view.last_row(statement) + 1), "")


def first_row(view: View, statement: cst.CSTNode) -> int:
    """The row that a statement begins in, with the comments right above it."""
    row = view.row(statement)
    while row > 1 and view.text[view.row_start(row - 1) : view.row_start(row)].lstrip().startswith("#"):
        row -= 1
    return row


def guarded(view: View) -> cst.CSTNode | None:
    """The first statement under the main guard."""
    for statement in view.tree.body:
        if is_guard(view, statement) and isinstance(statement, cst.If):
            return next(iter(statement.body.body), None) if isinstance(statement.body, cst.IndentedBlock) else None
    return None


def is_guard(view: View, statement: cst.CSTNode | None) -> bool:
    """Whether a statement is ``if __name__ == "__main__":``."""
    return isinstance(statement, cst.If) and "__main__" in view.source(statement.test)


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
    at = view.row_start(view.row(target))
    text = _reindented(view, statement, view.row(statement), view.indentation(target))
    return [Change(at, at, text), *taken_out(view, statement)]


def moved_below(view: View, statement: cst.BaseStatement, target: cst.CSTNode) -> list[Change]:
    """Move a statement right below another; its own indentation becomes that of its new place."""
    text = _reindented(view, statement, view.row(statement), view.indentation(target))
    below = view.lines_after(target, ())
    return [Change(below.start, below.end, below.content + text), *taken_out(view, statement)]


def lifted(view: View, function: cst.FunctionDef, target: cst.CSTNode, inside: Sequence[Change]) -> list[Change]:
    """Move a function, with comments right above it and with changes inside of it, above a statement at the top."""
    first = first_row(view, function)
    start, end = view.row_start(first), view.row_start(view.last_row(function) + 1)
    own = [change for change in inside if start <= change.start and change.end <= end]
    text = _reindented(view, function, first, view.indentation(target), own).strip("\r\n")
    at = view.row_start(first_row(view, target))
    gone = Change(start, end, "")
    if len(view.siblings(function)) == 1:
        gone = Change(start, end, f"{view.indentation(function)}pass{view.newline}")
    rest = [change for change in inside if change not in own]
    return [Change(at, at, text + view.newline * 3), *rest, closed_up(view, gone)]


def closed_up(view: View, gone: Change) -> Change:
    """A removal that does not leave the blank rows of both sides behind."""
    if gone.content or gone.end >= len(view.text):
        return gone
    before = view.text[: gone.start].splitlines(keepends=True)
    end = gone.end
    opens = not before or not before[-1].strip() or before[-1].rstrip().endswith(":")
    for row in view.text[gone.end :].splitlines(keepends=True) if opens else ():
        if row.strip():
            break
        end += len(row)
    return Change(gone.start, end, "")


def taken_out(view: View, statement: cst.BaseStatement) -> list[Change]:
    """Remove a statement with its row; what would leave a block empty leaves ``pass``."""
    first, after = view.row_start(view.row(statement)), view.row_start(view.last_row(statement) + 1)
    if len(view.siblings(statement)) == 1 and not isinstance(view.parent(statement), cst.Module):
        return [Change(first, after, f"{view.indentation(statement)}pass{view.newline}")]
    return [Change(first, after, "")]


def dropped(view: View, statement: cst.BaseStatement) -> list[Change]:
    """Remove a statement for good; a comment on its row stays, on a row of its own."""
    (change,) = taken_out(view, statement)
    rest = view.text[view.end(statement) : change.end]
    comment = rest.strip()
    if not comment.startswith("#"):
        return [change]
    return [Change(change.start, change.end, f"{view.indentation(statement)}{comment}{view.newline}{change.content}")]


def _reindented(
    view: View, statement: cst.BaseStatement, first: int, wanted: str, inside: Sequence[Change] = ()
) -> str:
    """The rows of a statement from ``first`` on at another depth, with changes inside of rows; strings stay."""
    own = view.indentation(statement)
    kept = _rows_inside_strings(view)
    text = ""
    for row in range(first, view.last_row(statement) + 1):
        start, end = view.row_start(row), view.row_start(row + 1)
        here = [Change(c.start - start, c.end - start, c.content) for c in inside if start <= c.start < end]
        line = apply(view.text[start:end], here)
        text += line if row in kept or not line.strip() else wanted + line.removeprefix(own)
    return text if not text or text[-1] in "\r\n" else text + view.newline


def has_own_rows(view: View, statement: cst.CSTNode) -> bool:
    """Whether a statement shares its rows with no other: then it can be moved as rows."""
    if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) != 1:
        return False
    start = view.row_start(view.row(statement))
    return not view.text[start : view.start(statement)].strip() and isinstance(
        view.parent(statement), cst.Module | cst.IndentedBlock
    )


def with_keyword_only(view: View, function: cst.FunctionDef, added: Sequence[str], is_marked: bool = False) -> Change:
    """A function with parameters more, that are given by name; ``is_marked``: others before them are made so."""
    text = keyword_only(function.params, added, is_marked)
    given = [n for p in all_parameters(function.params) for n in (p.name, p.annotation, p.default) if n is not None]
    last = max((view.after(n, "").start for n in given), default=None)
    if last is not None:
        return Change(last, last, f", {text}")
    at = view.text.index("(", view.end(function.name)) + 1
    return Change(at, at, text)


def keyword_only(params: cst.Parameters, added: Sequence[str], is_marked: bool = False) -> str:
    """Names as they stand at the end of parameters, to be given by name."""
    named = ", ".join(added)
    return named if is_marked or params.kwonly_params or isinstance(params.star_arg, cst.Param) else f"*, {named}"


def all_parameters(params: cst.Parameters) -> list[cst.Param]:
    """The parameters in the order in which they stand, but for ``**kwargs``."""
    star = [params.star_arg] if isinstance(params.star_arg, cst.Param) else []
    return [*params.posonly_params, *params.params, *star, *params.kwonly_params]
