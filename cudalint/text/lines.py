"""Rows of a text as Python and editors count them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

ROW_END = re.compile(r"\r\n|\r|\n")


def split_rows(text: str) -> list[str]:
    """The rows of ``text`` without their ends; form feeds and Unicode separators end no row."""
    return ROW_END.split(text)


def changed_rows(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[range, Sequence[str]]]:
    """The runs of rows of one text that are not in another, and what stands there now.

    Only what lies between the first and the last row that differ is compared: the rest of a long file costs no more
    than a look.
    """
    shared = min(len(before), len(after))
    head = next((i for i in range(shared) if before[i] != after[i]), shared)
    tail = next((i for i in range(shared - head) if before[-1 - i] != after[-1 - i]), shared - head)
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    for kind, start, stop, new_start, new_stop in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            yield range(head + start, head + stop), new[new_start:new_stop]


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
