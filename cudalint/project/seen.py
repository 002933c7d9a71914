"""What is believed of one file, as values: the server tells of it without the machine that saw it."""

from __future__ import annotations

from collections.abc import Mapping

from cudalint.finding import Span
from cudalint.structs import Frozen
from cudalint.text.source import Cells


class Seen(Frozen):
    """What the machine saw in one file: the processes that come to each of its rows, and what it says of launches.

    ``rows`` holds lines of text by row; ``launches`` a few words for the place of each. ``cells`` says of a notebook
    where its rows are.
    """

    rows: Mapping[int, tuple[str, ...]]
    launches: tuple[tuple[Span, str], ...]
    cells: Cells | None = None
