"""What is believed of the lines of a document, be it a cell of a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lsprotocol import types

from cudalint.project.seen import Seen
from cudalint.server.positions import Places


def lines_at(seen: Seen, number: int, row: int) -> Sequence[str]:
    """What is believed at a row, of the cell of this number in a notebook."""
    if seen.cells is None:
        return seen.rows.get(row, ())
    place = (number, row)
    return seen.rows.get(seen.cells.rows.index(place) + 1, ()) if place in seen.cells.rows else ()


def hints(seen: Seen, number: int, places: Places, asked: types.Range) -> list[types.InlayHint]:
    """What is said behind the launches on the lines of a document that an editor asks about."""
    return [
        types.InlayHint(places.end_of_row(row), text, padding_left=True, tooltip=f"cudalint: {text}")
        for row, text in _launches(seen, number, last=True)
        if asked.start.line <= row - 1 <= asked.end.line
    ]


def lenses(seen: Seen, number: int) -> list[types.CodeLens]:
    """The same above the launches of a document; there is nothing to be done with it."""
    found = []
    for row, text in _launches(seen, number, last=False):
        line = types.Position(row - 1, 0)
        found.append(types.CodeLens(types.Range(line, line), types.Command(title=text, command="")))
    return found


def _launches(seen: Seen, number: int, *, last: bool) -> Iterator[tuple[int, str]]:
    """What is said of the launches in a document, by their first or last row."""
    for span, text in seen.launches:
        place = span.end.row if last else span.start.row
        cell, row = (number, place) if seen.cells is None else seen.cells.place(place)
        if cell == number:
            yield row, text
