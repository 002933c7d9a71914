"""Cells that a notebook's author ran again: what is found only then.

A notebook is read in the order of its cells, since that is what runs when its kernel begins anew. Its execution counts
say of some cells that they were last run after cells below them. They are run once more behind all others, and what is
found there and nowhere else is a note: it is true of that order, and comes to nothing in the order of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from cudalint.finding import Finding, Position, Severity, Span
from cudalint.structs import Frozen, replace
from cudalint.text.decode import searched
from cudalint.text.lines import Rows
from cudalint.text.source import Cells, SourceFile

if TYPE_CHECKING:
    from cudalint.project.analysis import Analysis

# The sources of an analysis, and the files that it is about.
Analyse = Callable[[Sequence[SourceFile], frozenset[str]], "Analysis"]


class _Rerun(Frozen):
    """A notebook's program with cells once more at its end, and the row of the notebook's own program for each row."""

    source: SourceFile
    cells: Cells
    rows: tuple[int, ...]
    length: int


def run_again(
    sources: Sequence[SourceFile], about: Collection[str] | None, known: Sequence[Finding], analyse: Analyse
) -> Analysis | None:
    """An analysis with what is found only where cells are run again; None where none were."""
    reruns = {
        one.source.path: one
        for one in map(_rerun, sources)
        if one is not None and (about is None or one.source.path in about)
    }
    if not reruns:
        return None
    changed = [reruns[source.path].source if source.path in reruns else source for source in sources]
    made = analyse(changed, frozenset(reruns))
    found = tuple(_only_again(made.findings, reruns, known))
    return replace(made, findings=found, notes=(), basis=None)


def _rerun(source: SourceFile) -> _Rerun | None:
    cells = source.cells
    if cells is None or not cells.late:
        return None
    length = len(cells.rows)
    again = [row for late in cells.late for row in range(1, length + 1) if cells.rows[row - 1][0] == late]
    rows = (*range(1, length + 1), *again)
    text, shown = _with_rows(source.text, again), _with_rows(cells.shown, again)
    longer = replace(
        cells,
        rows=tuple(cells.rows[row - 1] for row in rows),
        shown=shown,
        replaced=frozenset(i for i, row in enumerate(rows, 1) if row in cells.replaced),
        in_json=tuple(cells.in_json[row - 1] for row in rows),
    )
    made = SourceFile(source.path, text, searched(text.encode("utf-8", "surrogatepass")), longer)
    return _Rerun(made, cells, rows, length)


def _with_rows(text: str, rows: Sequence[int]) -> str:
    starts = Rows(text)
    return text + "".join(text[starts.offset(row, 1) : starts.offset(row + 1, 1)] for row in rows)


def _only_again(
    findings: Sequence[Finding], reruns: Mapping[str, _Rerun], known: Sequence[Finding]
) -> Iterator[Finding]:
    places = {(one.code, one.span) for one in known}
    for finding in findings:
        rerun = reruns.get(finding.span.filename)
        if rerun is None or finding.span.start.row <= rerun.length:
            continue
        span = _first(finding.span, reruns)
        if (finding.code, span) not in places:
            yield replace(
                finding,
                severity=Severity.NOTE,
                span=span,
                trace=tuple(replace(step, span=_first(step.span, reruns)) for step in finding.trace),
                condition=_condition(finding, rerun.cells.place(span.start.row)[0]),
                noqa_rows=_first_rows(finding.noqa_rows, rerun),
            )


def _condition(finding: Finding, cell: int) -> str:
    order = f"if cell {cell} is run after cells below it, as its execution count says it last was"
    return order if finding.condition is None else f"{finding.condition}; {order}"


def _first(span: Span, reruns: Mapping[str, _Rerun]) -> Span:
    """A place where the cell stands in its notebook."""
    rerun = reruns.get(span.filename)
    if rerun is None or span.start.row <= rerun.length:
        return span
    row = rerun.rows[span.start.row - 1]
    return Span(
        span.filename,
        Position(row, span.start.column),
        Position(row + span.end.row - span.start.row, span.end.column),
    )


def _first_rows(rows: tuple[int, int] | None, rerun: _Rerun) -> tuple[int, int] | None:
    if rows is None:
        return None
    first = rerun.rows[rows[0] - 1]
    return first, first + rows[1] - rows[0]
