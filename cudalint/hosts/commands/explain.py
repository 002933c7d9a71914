"""``cudalint explain``: what is believed about the processes at a line."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator

import click

from cudalint import disk
from cudalint.config import ConfigError
from cudalint.found import Report
from cudalint.hosts import streams
from cudalint.hosts.commands.words import files
from cudalint.hosts.exits import Exit
from cudalint.hosts.inputs import as_option
from cudalint.hosts.progress import Progress
from cudalint.opening import Options, opened
from cudalint.report.places import located
from cudalint.report.plain import plain, statement
from cudalint.session import Session
from cudalint.text.decode import Refusal, decode
from cudalint.text.lines import split_rows

_IN_NOTEBOOK = re.compile(r"(?P<file>.+\.ipynb):(?:cell )?(?P<cell>[1-9]\d*):(?P<row>[1-9]\d*)(?::\d+)?")

_WITH_COLUMN = re.compile(r"(?P<place>.+:[1-9]\d*):[1-9]\d*")


@click.command(short_help="Say what is believed about a line.")
@click.argument("place", metavar="FILE:LINE", shell_complete=files)
@click.option("--functions", is_flag=True, help="Say what each function does instead, of a file or folder.")
def explain(place: str, functions: bool) -> int:
    """Say what is believed about the processes at a line; in a notebook at FILE:CELL:LINE."""
    if functions:
        with Progress(sys.stderr, "explaining"):
            told = _session((place,)).functions((place,))
        _tell(told, place)
        return Exit.CLEAN
    filename, cell, row = _parsed(place)
    session = _session((filename,))
    # What is believed is asked first: it says of a file that is not there, or cannot be read, that it is so.
    with Progress(sys.stderr, "explaining"):
        try:
            lines = session.explain(filename, row, cell)
        except LookupError as error:
            raise click.UsageError(str(error.args[0])) from None
        if cell is None:
            _require_row(filename, row)
        report = session.check((filename,), repair=False)
    _tell((*lines, *_found(report, os.path.abspath(filename), row, cell)), place)
    return Exit.CLEAN


def _parsed(place: str) -> tuple[str, int | None, int]:
    """The file, the cell of a notebook, and the line."""
    in_notebook = _IN_NOTEBOOK.fullmatch(place)
    if in_notebook is not None:
        return in_notebook["file"], int(in_notebook["cell"]), int(in_notebook["row"])
    filename, _, row = _without_column(place).rpartition(":")
    if filename.endswith(".ipynb"):
        raise click.UsageError(f"expected {filename}:CELL:LINE, not {place!r}")
    if not filename or not row.isdecimal() or int(row) < 1:
        raise click.UsageError(f"expected FILE:LINE, not {place!r}")
    if os.path.isdir(filename):
        raise click.UsageError(f"{filename} is a folder: name a file, or ask for its --functions")
    return filename, None, int(row)


def _without_column(place: str) -> str:
    """``FILE:LINE`` of a place with a column, as reports print it, unless that is the name of a file."""
    with_column = _WITH_COLUMN.fullmatch(place)
    if with_column is None or os.path.lexists(with_column["place"]):
        return place
    return with_column["place"]


def _require_row(filename: str, row: int) -> None:
    """Refuse a line that a file does not have: a typing error would look like a harmless place."""
    try:
        source = decode(filename, disk.read(filename))
    except disk.Unreadable:
        return
    if isinstance(source, Refusal):
        return
    count = len(split_rows(source.text)) - source.text.endswith(("\n", "\r"))
    if row > count:
        raise ConfigError(f"{filename} has no line {row}: it has {count:,} line{'' if count == 1 else 's'}")


def _found(report: Report, path: str, row: int, cell: int | None) -> Iterator[str]:
    """The findings at a line, and those whose path leads over it."""
    for finding in report.findings:
        if finding.span.start == finding.span.end:
            continue  # about the file as a whole, which was said already
        place = located(report, finding.span)
        rows = finding.noqa_rows or (finding.span.start.row, finding.span.start.row)
        first, last = (r - finding.span.start.row + place.start.row for r in rows)
        where = f"{place.start.row}:{place.start.column}"
        if (place.path, place.cell) == (path, cell) and first <= row <= last:
            yield f"{finding.severity.value}[{finding.code}] at {where}: {statement(finding)}"
            continue
        for step in finding.trace:
            passed = located(report, step.span)
            if (passed.path, passed.cell, passed.start.row) == (path, cell, row):
                label = place.label(os.getcwd())
                yield f"{step.kind.value} of {finding.code} at {label}, in {step.process}: {step.message}"


def _tell(lines: Iterable[str], place: str) -> None:
    rows = tuple(lines) or (f"{place}: nothing is known to happen to CUDA or processes here",)
    streams.put("".join(f"{plain(row)}\n" for row in rows))


def _session(paths: tuple[str, ...]) -> Session:
    return opened(paths, Options(cache=True), spelled=as_option).session
