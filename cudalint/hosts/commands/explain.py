"""``cudalint explain``: what is believed about the processes at a line."""

from __future__ import annotations

import re
from collections.abc import Iterable

import click

from cudalint import config
from cudalint.hosts import caching, streams
from cudalint.hosts.checks import Exit
from cudalint.report.plain import plain
from cudalint.session import Session

_IN_NOTEBOOK = re.compile(r"(?P<file>.+\.ipynb):(?:cell )?(?P<cell>[1-9]\d*):(?P<row>[1-9]\d*)(?::\d+)?")


@click.command()
@click.argument("place", metavar="FILE:LINE")
@click.option("--functions", is_flag=True, help="Say what each function does instead, of a file or folder.")
def explain(place: str, functions: bool) -> int:
    """Say what is believed about the processes at a line; in a notebook at FILE:CELL:LINE."""
    if functions:
        told = _session((place,)).functions((place,))
        _tell(told, place)
        return Exit.CLEAN
    filename, cell, row = _parsed(place)
    try:
        lines = _session((filename,)).explain(filename, row, cell)
    except LookupError as error:
        raise click.UsageError(str(error.args[0])) from None
    _tell(lines, place)
    return Exit.CLEAN


def _parsed(place: str) -> tuple[str, int | None, int]:
    """The file, the cell of a notebook, and the line."""
    in_notebook = _IN_NOTEBOOK.fullmatch(place)
    if in_notebook is not None:
        return in_notebook["file"], int(in_notebook["cell"]), int(in_notebook["row"])
    filename, _, row = place.rpartition(":")
    if filename.endswith(".ipynb"):
        raise click.UsageError(f"expected {filename}:CELL:LINE, not {place!r}")
    if not filename or not row.isdecimal() or int(row) < 1:
        raise click.UsageError(f"expected FILE:LINE, not {place!r}")
    return filename, None, int(row)


def _tell(lines: Iterable[str], place: str) -> None:
    rows = tuple(lines) or (f"{place}: nothing is known to happen to CUDA or processes here",)
    streams.put("".join(f"{plain(row)}\n" for row in rows))


def _session(paths: tuple[str, ...]) -> Session:
    found = config.load(paths)
    return Session(found, caching.opened(found).store)
