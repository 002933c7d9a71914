"""What is believed of the lines of a document, be it a cell of a notebook."""

from __future__ import annotations

from collections.abc import Sequence

from lsprotocol import types

from cudalint.project.analysis import Seen
from cudalint.server.positions import Places


def lines_at(seen: Seen, number: int, row: int) -> Sequence[str]:
    """What is believed at a row, of the cell of this number in a notebook."""
    if seen.cells is None:
        return seen.rows.get(row, ())
    place = (number, row)
    return seen.rows.get(seen.cells.rows.index(place) + 1, ()) if place in seen.cells.rows else ()


def hints(seen: Seen, number: int, places: Places, asked: types.Range) -> list[types.InlayHint]:
    """What is said behind the launches on the lines of a document that an editor asks about."""
    found: list[types.InlayHint] = []
    for span, text in seen.launches:
        cell, row = (number, span.end.row) if seen.cells is None else seen.cells.place(span.end.row)
        if cell == number and asked.start.line <= row - 1 <= asked.end.line:
            place = places.end_of_row(row)
            found.append(types.InlayHint(place, text, padding_left=True, tooltip="cudalint: this launch"))
    return found
