"""Notebooks for tests, as the notebook editors write them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path

FOLDER = Path(__file__).parent / "notebooks"
_MARKER = re.compile(r"  # <- (CUD\d+)$")
Cell = tuple[str, str]


def notebook(*cells: str | Cell, language: str = "python", version: int = 4, counts: Sequence[int | None] = ()) -> str:
    """A notebook of code cells, and of others where the kind comes first.

    ``counts`` say as which one of its kernel each cell was last run.
    """
    made: list[dict[str, object]] = []
    for cell, count in zip_longest(cells, counts):
        kind, source = ("code", cell) if isinstance(cell, str) else cell
        more = {"execution_count": count, "outputs": []} if kind == "code" else {}
        made.append({"cell_type": kind, "metadata": {}, **more, "source": source.splitlines(keepends=True)})
    metadata = {"kernelspec": {"display_name": "A kernel", "language": language, "name": "kernel"}}
    document = {"cells": made, "metadata": metadata, "nbformat": version, "nbformat_minor": 5}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def cases() -> dict[str, list[str]]:
    """The cells of each case of the folder, with their markers."""
    parts = re.split(r"^=== (.*)\n", (FOLDER / "traps.txt").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    texts = dict(zip(parts[::2], parts[1::2], strict=True))
    return {name: re.split(r"^%% cell\n", text, flags=re.MULTILINE)[1:] for name, text in texts.items()}


def unmarked(cell: str) -> str:
    """A cell without its markers."""
    return "\n".join(_MARKER.sub("", row) for row in cell.removesuffix("\n").split("\n"))


def marked(cells: list[str]) -> list[tuple[int, int, str]]:
    """The cell, the row and the code of each marker."""
    rows = ((i, j, row) for i, cell in enumerate(cells, 1) for j, row in enumerate(cell.split("\n"), 1))
    return [(i, j, found[1]) for i, j, row in rows if (found := _MARKER.search(row))]
