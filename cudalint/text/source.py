"""One file as the analysis receives it."""

from __future__ import annotations

from cudalint.structs import Frozen


class Cells(Frozen):
    """Where the rows of a program stand in a notebook.

    ``rows`` holds a cell, counted from 1 with those that are no code, and a row of it for each row of the program.
    ``shown`` is the program as the notebook has it; its ``replaced`` rows are no Python there. ``in_json`` are the rows
    of the notebook's file on which the program's rows begin. ``late`` are the cells that were last run after one that
    stands below them, as their execution counts have it, in the order of these.
    """

    notebook: str
    rows: tuple[tuple[int, int], ...]
    shown: str
    replaced: frozenset[int]
    in_json: tuple[int, ...]
    late: tuple[int, ...] = ()

    def place(self, row: int) -> tuple[int, int]:
        """The cell of a row of the program, and the row there; of one behind the end the next one."""
        if not self.rows:
            return 1, row
        if row > len(self.rows):
            cell, last = self.rows[-1]
            return cell, last + row - len(self.rows)
        return self.rows[row - 1]

    def json_row(self, row: int) -> int:
        """The row of the notebook's file for one of the program."""
        return self.in_json[min(row, len(self.in_json)) - 1] if self.in_json else 1


class SourceFile(Frozen):
    """A readable file: its absolute path, its text with line ends kept, and the bytes that are searched for words.

    These are the bytes it came from, but for a mark in front of them and the kind of line ends.

    Of a notebook, or of a module that one of its cells writes, text and bytes are those of the program, and ``cells``
    says where they come from.
    """

    path: str
    text: str
    data: bytes
    cells: Cells | None = None

    @property
    def shown(self) -> str:
        """The text as its author sees it."""
        return self.text if self.cells is None else self.cells.shown
