"""Edits as text: applying them, and reading them off two texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cudalint.finding import Edit, Position, Span
from cudalint.structs import Ordered
from cudalint.text.lines import Rows, changed_rows

_ENDS = ("\n", "\r")


class Change(Ordered):
    """Replace the characters from ``start`` to ``end``, exclusive, by ``content``."""

    start: int
    end: int
    content: str


def apply(text: str, changes: Iterable[Change]) -> str:
    """The changed text; raises ``ValueError`` where two changes overlap. Insertions at one place keep their order."""
    parts: list[str] = []
    at = 0
    for change in sorted(changes, key=lambda c: (c.start, c.end)):
        if change.start < at:
            raise ValueError("two changes overlap")
        parts += (text[at : change.start], change.content)
        at = change.end
    return "".join([*parts, text[at:]])


def ended_as(before: str, text: str) -> str:
    """A changed text whose last row has an end only where that of the text before has one."""
    return text if not before or before.endswith(_ENDS) else text.rstrip("".join(_ENDS))


def inside(text: str, start: int, end: int, changes: Iterable[Change]) -> str:
    """A part of a text with the changes that lie in it."""
    moved = [Change(change.start - start, change.end - start, change.content) for change in changes]
    return apply(text[start:end], moved)


def between(old: str, new: str) -> list[Change]:
    """The changes that lead from one text to another: per run of changed rows, without what both ends share."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    starts = _starts(before)
    return [
        _trimmed(starts[rows.start], "".join(before[rows.start : rows.stop]), "".join(content))
        for rows, content in changed_rows(before, after)
    ]


def _starts(rows: Sequence[str]) -> list[int]:
    starts = [0]
    for row in rows:
        starts.append(starts[-1] + len(row))
    return starts


def _trimmed(start: int, old: str, new: str) -> Change:
    shared = min(len(old), len(new))
    head = next((i for i in range(shared) if old[i] != new[i]), shared)
    shared -= head
    tail = next((i for i in range(shared) if old[-1 - i] != new[-1 - i]), shared)
    return Change(start + head, start + len(old) - tail, new[head : len(new) - tail])


def as_edits(filename: str, text: str, changes: Iterable[Change]) -> tuple[Edit, ...]:
    """Changes by rows and columns, as findings carry them."""
    rows = Rows(text)
    return tuple(
        Edit(Span(filename, Position(*rows.place(c.start)), Position(*rows.place(c.end))), c.content)
        for c in sorted(changes)
    )


def as_changes(text: str, edits: Iterable[Edit]) -> list[Change]:
    """Edits of one file by offsets."""
    rows = Rows(text)
    return [
        Change(
            rows.offset(edit.span.start.row, edit.span.start.column),
            rows.offset(edit.span.end.row, edit.span.end.column),
            edit.content,
        )
        for edit in edits
    ]


def images(offset: int, changes: Sequence[Change]) -> tuple[int, int]:
    """Where a character may stand afterwards: before or after what was inserted right there."""
    shift = 0
    for change in sorted(changes):
        if change.end <= offset and change.start < offset:
            shift += len(change.content) - (change.end - change.start)
        elif change.start == offset == change.end:
            return offset + shift, offset + shift + len(change.content)
        elif change.start <= offset:
            return change.start + shift, change.start + shift
    return offset + shift, offset + shift
