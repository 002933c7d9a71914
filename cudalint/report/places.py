"""Where spans are for a reader: in a file, or in a cell of a notebook."""

from __future__ import annotations

from cudalint.finding import Position, Span
from cudalint.found import Report
from cudalint.report.plain import place as plain_place
from cudalint.structs import Frozen
from cudalint.text.lines import split_rows


class Place(Frozen):
    """A stretch of a file, or of the cell that has this number in a notebook.

    ``file_rows`` are the rows of the file on which it begins and ends, which in a notebook are rows of its JSON.
    """

    path: str
    start: Position
    end: Position
    cell: int | None = None
    file_rows: tuple[int, int] = (1, 1)

    def label(self, directory: str) -> str:
        """``path:row:column``, in notebooks ``path:cell 3:row:column``, as ruff has it."""
        return f"{plain_place(self.path, directory)}:{self.within}"

    @property
    def within(self) -> str:
        """The same without the path."""
        cell = "" if self.cell is None else f"cell {self.cell}:"
        return f"{cell}{self.start.row}:{self.start.column}"

    @property
    def words(self) -> str:
        """Where in a notebook it is; nothing elsewhere."""
        return "" if self.cell is None else self.within


def located(report: Report, span: Span) -> Place:
    """Where a span of the report is."""
    cells = report.cells.get(span.filename)
    if cells is None:
        return Place(span.filename, span.start, span.end, file_rows=(span.start.row, span.end.row))
    cell, row = cells.place(span.start.row)
    end_cell, end_row = cells.place(span.end.row)
    start, end = Position(row, span.start.column), Position(end_row, span.end.column)
    if end_cell != cell:  # the beginning of the next cell is the end of this one
        end = Position(row + span.end.row - span.start.row, span.end.column)
    if span.start.row in cells.replaced:
        width = len(split_rows(cells.shown)[span.start.row - 1])
        start, end = Position(row, 1), Position(row, width + 1)
    return Place(cells.notebook, start, end, cell, (cells.json_row(span.start.row), cells.json_row(span.end.row)))
