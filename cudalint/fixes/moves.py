"""Statements at another place: moved up with what they need, or put before another one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from cudalint.fixes import layout, names
from cudalint.fixes.edits import Change
from cudalint.fixes.statements import begins_with_import, is_docstring
from cudalint.fixes.view import View


def inserted_before(view: View, node: cst.CSTNode, lines: Sequence[str]) -> list[Change]:
    """Put simple statements before the one that a node is part of; inline where that one shares its row."""
    small = _small(view, node)
    if small is not None:
        line = view.parent(small)
        first = isinstance(line, cst.SimpleStatementLine) and line.body[0] is small
        if not first:
            return [view.before(small, "".join(f"{text}; " for text in lines))]
    statement = view.statement(node)
    while statement is not None and _is_continued(view, statement):
        above = view.parent(statement)
        statement = None if above is None else view.statement(above)
    return [] if statement is None else [view.lines_before(statement, lines)]


def _small(view: View, node: cst.CSTNode) -> cst.BaseSmallStatement | None:
    for around in (node, *view.around(node)):
        if isinstance(around, cst.BaseSmallStatement):
            return around
        if isinstance(around, cst.BaseStatement):
            return None
    return None


def _is_continued(view: View, statement: cst.CSTNode) -> bool:
    """``elif`` is a statement of its own in the tree, but nothing can stand before it."""
    above = view.parent(statement)
    return isinstance(above, cst.If) and above.orelse is statement


def at_top(view: View, function: cst.FunctionDef, lines: Sequence[str]) -> list[Change]:
    """Put simple statements at the beginning of a function, below its docstring."""
    body = list(function.body.body)
    first = body[0] if body else None
    if first is None:
        return []
    if is_docstring(first):
        return inserted_before(view, body[1], lines) if len(body) > 1 else [view.lines_after(first, lines)]
    return inserted_before(view, first.body[0] if isinstance(first, cst.SimpleStatementLine) else first, lines)


def below_imports(view: View, lines: Sequence[str]) -> list[Change]:
    """Put simple statements below the imports at the top of the module."""
    last: cst.CSTNode | None = None
    for statement in view.tree.body:
        if begins_with_import(statement):
            last = statement
        elif not is_docstring(statement):
            break
    if last is None:
        first = next((s for s in view.tree.body if not is_docstring(s)), None)
        return [] if first is None else [view.lines_before(first, [*lines, ""])]
    change = view.lines_after(last, lines)
    return [Change(change.start, change.end, view.newline + change.content)]


def moved_up(view: View, statement: cst.BaseStatement, target: cst.CSTNode) -> list[Change]:
    """Move a statement above another of the same scope, with the assignments it needs; empty where that fails."""
    place = _block_statement(view, target)
    if place is None:
        return []
    carried = _carried(view, statement, place)
    return [change for moved in carried for change in layout.moved_above(view, moved, place)]


def _block_statement(view: View, node: cst.CSTNode) -> cst.BaseStatement | None:
    """The statement of a node, where another can be put before it as rows of its own."""
    statement = view.statement(node)
    while statement is not None and (_is_continued(view, statement) or not _begins_row(view, statement)):
        above = view.parent(statement)
        statement = None if above is None else view.statement(above)
    return statement


def _begins_row(view: View, statement: cst.CSTNode) -> bool:
    return not view.text[view.row_start(view.row(statement)) : view.start(statement)].strip()


def _carried(view: View, statement: cst.BaseStatement, place: cst.BaseStatement) -> list[cst.BaseStatement]:
    """A statement and what binds its names below a place, in their order; empty where some of it cannot move."""
    scope = names.scope_of(view, place)
    bound = [(n, b) for n, b in names.bindings(view, scope) if view.start(b) >= view.start(place)]
    changed = [(n, c) for n, c in names.changed(view, scope) if view.start(c) >= view.start(place)]
    carried: list[cst.BaseStatement] = [statement]
    waiting: list[cst.BaseStatement] = [statement]
    while waiting:
        current = waiting.pop()
        if not layout.has_own_rows(view, current):
            return []
        for name in sorted(names.read(view, current)):
            if any(n == name and view.start(c) < view.start(current) for n, c in changed):
                return []
            sources = [b for n, b in bound if n == name and view.start(b) < view.start(current)]
            if not sources:
                continue
            source = view.statement(sources[0])
            if len(sources) > 1 or source is None or not _may_follow(view, source, statement):
                return []
            if source not in carried:
                carried.append(source)
                waiting.append(source)
    return sorted(carried, key=view.start)


def _may_follow(view: View, source: cst.BaseStatement, statement: cst.BaseStatement) -> bool:
    """Whether an assignment may move along: it stands beside the statement and only computes."""
    if view.parent(source) is not view.parent(statement) or not isinstance(source, cst.SimpleStatementLine):
        return False
    match source.body[0]:
        case cst.Assign(value=value):
            return names.is_plain(view, value)
        case cst.Import(names=[cst.ImportAlias(name=cst.Name(value="os"))]):
            return True
    return False


def above_here(view: View, early: cst.CSTNode, late: cst.CSTNode) -> Iterator[list[Change]]:
    """Move what stands late above what stands early in the same scope: its statement, or one that holds only it."""
    for statement in _movable(view, late):
        if view.start(statement) <= view.start(early) or early in view.inside(statement):
            continue
        if names.scope_of(view, statement) is names.scope_of(view, early):
            target = _beside(view, early, statement)
            changes = [] if target is None else moved_up(view, statement, target)
            if changes:
                yield changes


def above_there(view: View, early: cst.CSTNode, late: cst.CSTNode) -> Iterator[list[Change]]:
    """Move what stands late to another scope, where it needs nothing but names of the module."""
    for statement in _movable(view, late):
        place = _block_statement(view, early)
        if place is None or early in view.inside(statement):
            continue
        if names.scope_of(view, place) is names.scope_of(view, statement) or not layout.has_own_rows(view, statement):
            continue
        if not _always_runs(view, statement):
            continue
        wanted = names.read(view, statement)
        if not names.global_names(view, wanted, names.scope_of(view, statement)):
            continue
        if names.known_at(view, wanted, place):
            yield layout.moved_above(view, statement, place)


def _always_runs(view: View, statement: cst.BaseStatement) -> bool:
    """Whether a statement runs whenever its function does: elsewhere, the condition around it would be lost."""
    block = view.parent(statement)
    around = None if block is None else view.parent(block)
    return isinstance(block, cst.Module) or isinstance(around, cst.FunctionDef) or layout.is_guard(view, around)


def _movable(view: View, node: cst.CSTNode) -> Iterator[cst.BaseStatement]:
    """The statement of a node, then the ones around it that hold nothing else."""
    statement = view.statement(node)
    while statement is not None and not isinstance(statement, cst.FunctionDef | cst.ClassDef):
        yield statement
        block = view.parent(statement)
        if not isinstance(block, cst.IndentedBlock) or len(block.body) != 1:
            return
        around = view.parent(block)
        if not isinstance(around, cst.For | cst.If | cst.With) or getattr(around, "orelse", None) is not None:
            return
        statement = around


def _beside(view: View, early: cst.CSTNode, statement: cst.CSTNode) -> cst.CSTNode | None:
    """The statement around a node that stands in the same block as another statement."""
    block = view.parent(statement)
    current = view.statement(early)
    while current is not None and view.parent(current) is not block:
        outer = view.parent(current)
        current = None if outer is None else view.statement(outer)
    return current
