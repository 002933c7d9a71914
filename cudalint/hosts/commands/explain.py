"""``cudalint explain``: what is believed about the processes at a line."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator

import click

from cudalint import config, disk
from cudalint.config import ConfigError
from cudalint.hosts import caching, streams
from cudalint.hosts.checks import Exit
from cudalint.hosts.commands.words import files
from cudalint.hosts.progress import Progress
from cudalint.report.paths import relative
from cudalint.report.plain import plain, statement
from cudalint.session import Report, Session
from cudalint.text.decode import Refusal, decode
from cudalint.text.lines import split_rows


@click.command()
@click.argument("place", metavar="FILE:LINE", shell_complete=files)
@click.option("--functions", is_flag=True, help="Say what each function does instead, of a file or folder.")
def explain(place: str, functions: bool) -> int:
    """Say what is believed about the processes at a line."""
    if functions:
        with Progress(sys.stderr, "explaining"):
            told = _session((place,)).functions((place,))
        _tell(told, place)
        return Exit.CLEAN
    filename, _, row = place.rpartition(":")
    if not filename or not row.isdecimal() or int(row) < 1:
        raise click.UsageError(f"expected FILE:LINE, not {place!r}")
    session = _session((filename,))
    # What is believed is asked first: it says of a file that is not there, or cannot be read, that it is so.
    with Progress(sys.stderr, "explaining"):
        lines = session.explain(filename, int(row))
        _require_row(filename, int(row))
        report = session.check((filename,), repair=False)
    _tell((*lines, *_found(report, os.path.abspath(filename), int(row))), place)
    return Exit.CLEAN


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


def _found(report: Report, path: str, row: int) -> Iterator[str]:
    """The findings at a line, and those whose path leads over it."""
    for finding in report.findings:
        if finding.span.start == finding.span.end:
            continue  # about the file as a whole, which was said already
        first, last = finding.noqa_rows or (finding.span.start.row, finding.span.start.row)
        where = f"{finding.span.start.row}:{finding.span.start.column}"
        if finding.span.filename == path and first <= row <= last:
            yield f"{finding.severity.value}[{finding.code}] at {where}: {statement(finding)}"
            continue
        for step in finding.trace:
            if (step.span.filename, step.span.start.row) == (path, row):
                place = f"{relative(finding.span.filename, os.getcwd())}:{where}"
                yield f"{step.kind.value} of {finding.code} at {place}, in {step.process}: {step.message}"


def _tell(lines: Iterable[str], place: str) -> None:
    rows = tuple(lines) or (f"{place}: nothing is known to happen to CUDA or processes here",)
    streams.put("".join(f"{plain(row)}\n" for row in rows))


def _session(paths: tuple[str, ...]) -> Session:
    found = config.load(paths)
    return Session(found, caching.opened(found).store)
