"""Notebooks as programs that run: their cells in one interpreter, as a kernel runs them."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from cudalint import disk
from cudalint.structs import Frozen
from cudalint.text import notebook
from cudalint.text.decode import Refusal
from cudalint.text.lines import split_rows
from cudalint.text.magics import shape
from cudalint.text.source import Cells, SourceFile
from cudalint.verify.runner import PROBE

KERNEL = PROBE / "_cudalint_kernel.py"


class NotRunnable(Exception):
    """Why a notebook cannot be run, in one line."""


class Plan(Frozen):
    """How a notebook is run: what the kernel's stand-in reads, and what of the cells it leaves out.

    ``cells`` says where the rows of its programs are, by their paths as stacks have them.
    """

    text: str
    left_out: tuple[str, ...]
    cells: Mapping[str, Cells]


def is_notebook(path: Path) -> bool:
    """Whether a file is a notebook, by its name."""
    return path.suffix == notebook.SUFFIX


def python_of(path: Path) -> bytes:
    """The Python of a file: of a notebook that of its cells, in the rows that findings name.

    Raises:
        OSError: where it cannot be read.
        ValueError: where it is no notebook.
    """
    if not is_notebook(path):
        return path.read_bytes()
    try:
        return _read(path).sources()[0].data
    except NotRunnable as error:
        raise ValueError(str(error)) from None


def plan(path: Path, *, replaces_links: bool = False) -> Plan:
    """How to run a notebook.

    Args:
        path: the notebook.
        replaces_links: whether a cell that writes a module replaces a link of its name instead of following it.

    Raises:
        NotRunnable: for what is no notebook of Python.
    """
    found = _read(path)
    if found.language != "python":
        raise NotRunnable(f"{path} cannot be run: its cells are {found.language}, not Python")
    ipython = importlib.util.find_spec("IPython") is not None
    source, *modules = found.sources()
    own = {int(one["number"]): one for one in _programs(source)}
    made = [own.get(cell.number) or _aside(cell) for cell in found.cells]
    given = {
        "path": os.path.realpath(path),
        "shown": notebook.with_ends(source.shown),
        "ipython": ipython,
        "replaces_links": replaces_links,
        "cells": [one for one in made if one is not None],
    }
    cells = {os.path.realpath(one.path): one.cells for one in (source, *modules) if one.cells is not None}
    return Plan(json.dumps(given), () if ipython else tuple(_left_out(source, made)), cells)


def _programs(source: SourceFile) -> Iterator[dict[str, Any]]:
    """The cells whose Python runs in the kernel, each with the row of the program on which it begins."""
    assert source.cells is not None
    lowered, shown = notebook.with_ends(source.text), notebook.with_ends(source.shown)
    for number, rows in groupby(enumerate(source.cells.rows), key=lambda row: row[1][0]):
        places = [i for i, _ in rows]
        first, last = places[0], places[-1] + 1
        yield {
            "number": number,
            "first": first + 1,
            "source": lowered[first:last],
            "text": "".join(shown[first:last]),
            "ipython": [i - first for i in places if i + 1 in source.cells.replaced and _needs_ipython(lowered[i])],
        }


def _needs_ipython(row: str) -> bool:
    """Whether a row stands for one that only IPython can run: without it nothing is left of that."""
    return row.strip() == "pass" or "get_ipython()" in row


def _aside(cell: notebook.Cell) -> dict[str, Any] | None:
    """A cell that writes a module, or is for another program than Python."""
    found = shape(cell.text)
    if found.writes is not None:
        text = cell.text if cell.text.endswith(("\n", "\r")) else f"{cell.text}\n"
        body = "".join(notebook.with_ends(text)[found.first :])
        return {"number": cell.number, "writes": found.writes, "appends": found.appends, "text": body}
    return {"number": cell.number, "magic": cell.text} if found.is_skipped else None


def _left_out(source: SourceFile, made: list[dict[str, Any] | None]) -> Iterator[str]:
    """The lines that only IPython could run, with their places."""
    assert source.cells is not None
    rows, shown = split_rows(source.text), split_rows(source.shown)
    for row in sorted(source.cells.replaced):
        if _needs_ipython(rows[row - 1]):
            cell, within = source.cells.place(row)
            yield f"cell {cell}:{within}: {shown[row - 1].strip()}"
    for one in made:
        if one is not None and "magic" in one:
            yield f"cell {one['number']}: {one['magic'].strip().splitlines()[0]}"


def _read(path: Path) -> notebook.Notebook:
    try:
        found = notebook.read(str(path), disk.read(str(path)))
    except disk.Unreadable as error:
        raise NotRunnable(f"{path} cannot be read: {error}") from None
    if isinstance(found, Refusal):
        raise NotRunnable(f"{path} cannot be run: {found.reason}")
    return found
