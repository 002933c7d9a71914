"""Rows of a text as Python and editors count them."""

from __future__ import annotations

import re
from bisect import bisect_right

ROW_END = re.compile(r"\r\n|\r|\n")


def split_rows(text: str) -> list[str]:
    """The rows of ``text`` without their ends; form feeds and Unicode separators end no row."""
    return ROW_END.split(text)


class Rows:
    """Offsets to rows and columns, both 1-based."""

    __slots__ = ("_starts",)

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in ROW_END.finditer(text))]

    def place(self, offset: int) -> tuple[int, int]:
        """The row and column of a character."""
        row = bisect_right(self._starts, offset)
        return row, offset - self._starts[row - 1] + 1

    def offset(self, row: int, column: int) -> int:
        """The character at a row and column."""
        return self._starts[row - 1] + column - 1

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(self._starts)
