"""Places of findings as editors count them: rows from 0, columns in units of an encoding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lsprotocol import types

from cudalint.finding import Position, Span
from cudalint.text.lines import Rows, split_rows

# How many bytes a unit of an encoding has.
_UNITS = {
    types.PositionEncodingKind.Utf8: ("utf-8", 1),
    types.PositionEncodingKind.Utf16: ("utf-16-le", 2),
    types.PositionEncodingKind.Utf32: ("utf-32-le", 4),
}


class Places:
    """The rows of one text, in the encoding that server and editor agreed on."""

    __slots__ = ("_bytes", "_codec", "_rows", "_starts")

    def __init__(self, text: str, encoding: types.PositionEncodingKind) -> None:
        self._rows: Sequence[str] = split_rows(text)
        self._starts = Rows(text)
        self._codec, self._bytes = _UNITS[encoding]

    def range(self, span: Span) -> types.Range:
        """Where a span of the text stands."""
        return types.Range(self.position(span.start), self.position(span.end))

    def position(self, place: Position) -> types.Position:
        """Where a character of the text stands; one that an older text had is at the end of the row that is left."""
        if place.row > len(self._rows):
            return types.Position(len(self._rows) - 1, self._width(self._rows[-1]))
        return types.Position(place.row - 1, self._width(self._rows[place.row - 1][: place.column - 1]))

    def end_of_row(self, row: int) -> types.Position:
        """Where a row ends, which counts from 1."""
        return types.Position(row - 1, self._width(self._rows[row - 1]))

    def offset(self, place: types.Position) -> int:
        """The character at a place of the editor; the nearest one that there is."""
        row = min(place.line, len(self._rows) - 1)
        units = self._rows[row].encode(self._codec, "surrogatepass")[: place.character * self._bytes]
        column = len(units.decode(self._codec, "ignore"))
        return self._starts.offset(row + 1, 1) + column

    def _width(self, text: str) -> int:
        if text.isascii():
            return len(text)
        return len(text.encode(self._codec, "surrogatepass")) // self._bytes


def changed(
    text: str, changes: Iterable[types.TextDocumentContentChangeEvent], encoding: types.PositionEncodingKind
) -> str:
    """A text after changes of it, one after the other; one without a range replaces all."""
    for change in changes:
        if isinstance(change, types.TextDocumentContentChangePartial):
            places = Places(text, encoding)
            start, end = places.offset(change.range.start), places.offset(change.range.end)
            text = text[:start] + change.text + text[end:]
        else:
            text = change.text
    return text
