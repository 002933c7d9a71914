"""``cudalint explain``: what is believed about the processes at a line."""

from __future__ import annotations

from collections.abc import Iterable

import click

from cudalint import config
from cudalint.hosts import caching, streams
from cudalint.hosts.checks import Exit
from cudalint.report.plain import plain
from cudalint.session import Session


@click.command()
@click.argument("place", metavar="FILE:LINE")
@click.option("--functions", is_flag=True, help="Say what each function does instead, of a file or folder.")
def explain(place: str, functions: bool) -> int:
    """Say what is believed about the processes at a line."""
    if functions:
        told = _session((place,)).functions((place,))
        _tell(told, place)
        return Exit.CLEAN
    filename, _, row = place.rpartition(":")
    if not filename or not row.isdecimal() or int(row) < 1:
        raise click.UsageError(f"expected FILE:LINE, not {place!r}")
    lines = _session((filename,)).explain(filename, int(row))
    _tell(lines, place)
    return Exit.CLEAN


def _tell(lines: Iterable[str], place: str) -> None:
    rows = tuple(lines) or (f"{place}: nothing is known to happen to CUDA or processes here",)
    streams.put("".join(f"{plain(row)}\n" for row in rows))


def _session(paths: tuple[str, ...]) -> Session:
    found = config.load(paths)
    return Session(found, caching.opened(found).store)
