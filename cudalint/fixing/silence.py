"""Suppression comments for all that is found, so that a run shows what comes later. Nothing is written here."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping

from cudalint import disk
from cudalint.finding import Edit, Finding, Position, Span
from cudalint.fixing.reach import reach
from cudalint.fixing.rounds import Changed
from cudalint.found import Report
from cudalint.policy import suppression
from cudalint.session import Session
from cudalint.structs import Frozen, field
from cudalint.text import notebook
from cudalint.text.decode import Refusal, decode, encode
from cudalint.text.lines import Rows
from cudalint.text.noqa import Places, Suppressions, suppressions

_CHANGED = "its file changed while it was checked; run again"
_NO_ROW = "no row of its call can hold a comment"


class BadReason(ValueError):
    """A reason that no comment can hold; the text says why."""


class Left(Frozen):
    """A finding that stays, and why."""

    finding: Finding
    reason: str


class Silenced(Frozen):
    """The files with comments, how many findings these silence in each, and what is left."""

    changes: tuple[Changed, ...]
    counts: Mapping[str, int] = field(default_factory=dict)
    left: tuple[Left, ...] = ()


def silence(session: Session, paths: Iterable[str], reason: str = "") -> Silenced:
    """Add a comment for each finding that is shown.

    Raises:
        NotFound: for a path that does not exist.
        BadReason: for a reason that is no comment.
    """
    _require(reason)
    named = tuple(paths)
    may_write = reach(session.selected(named), named, session.root)
    links = {link for link, _ in may_write.aliases}
    report = session.check(named, repair=False)
    findings = [finding for finding in report.findings if finding.span.filename not in links]
    return _silenced(report, findings, may_write.files, reason)


def silence_text(session: Session, filename: str, data: bytes, reason: str = "") -> Silenced:
    """The same for one file that is checked without its project."""
    _require(reason)
    report = session.check_alone(filename, data, repair=False)
    path = os.path.abspath(filename)
    return _silenced(report, report.findings, frozenset({path}), reason, {path: data})


def _require(reason: str) -> None:
    if not reason.isprintable():
        raise BadReason("the reason has to be one line of printable text")
    if "noqa" in reason.lower():
        raise BadReason("the reason would be read as a noqa of its own")


def _silenced(
    report: Report,
    findings: Iterable[Finding],
    may_write: frozenset[str],
    reason: str,
    given: dict[str, bytes] | None = None,
) -> Silenced:
    by_file: defaultdict[str, list[Finding]] = defaultdict(list)
    left: list[Left] = []
    for finding in findings:
        cells = report.cells.get(finding.span.filename)
        path = finding.span.filename if cells is None else cells.notebook
        if not suppression.is_silenceable(finding.code):
            left.append(Left(finding, "no comment can silence it"))
        elif path not in may_write:
            left.append(Left(finding, "its file was not named"))
        else:
            by_file[path].append(finding)
    changes = []
    counts: dict[str, int] = {}
    for path, members in sorted(by_file.items()):
        commented = _commented_cells if path.endswith(notebook.SUFFIX) else _commented
        try:
            data = given[path] if given and path in given else disk.read(path)
        except disk.Unreadable as error:
            left.extend(Left(finding, str(error)) for finding in members)
            continue
        change, told = commented(path, data, members, report.texts, reason)
        changes.extend(change)
        left.extend(told)
        counts[path] = len(members) - len(told)
    return Silenced(tuple(changes), counts, tuple(left))


def _commented(
    path: str, data: bytes, findings: list[Finding], texts: Mapping[str, str], reason: str
) -> tuple[list[Changed], list[Left]]:
    """A file with the comments, and the findings for which there is no place in it."""
    source = decode(path, data)
    if isinstance(source, Refusal) or source.text != texts.get(path):
        return [], [Left(finding, _CHANGED) for finding in findings]
    after = source.text
    for offset, comment in sorted(_insertions(findings, source.text, reason), reverse=True):
        after = after[:offset] + comment + after[offset:]
    try:
        changed = [Changed(path, data, encode(after, data))] if after != source.text else []
    except UnicodeEncodeError:
        return [], [Left(finding, "the encoding of its file lacks a character of the reason") for finding in findings]
    comments = suppressions(after)
    still = suppression.apply(findings, lambda _: comments).kept
    return changed, [Left(finding, _NO_ROW) for finding in still]


def _commented_cells(
    path: str, before: bytes, findings: list[Finding], texts: Mapping[str, str], reason: str
) -> tuple[list[Changed], list[Left]]:
    """The same for a notebook, which may hold several programs."""
    data = before
    comments: dict[str, Suppressions] = {}
    for program in sorted({finding.span.filename for finding in findings}):
        found = notebook.read(path, data)
        source = None if isinstance(found, Refusal) else found.source(program)
        if isinstance(found, Refusal) or source is None or source.cells is None or source.shown != texts.get(program):
            return [], [Left(finding, _CHANGED) for finding in findings]
        own = [finding for finding in findings if finding.span.filename == program]
        rows = Rows(source.text)
        places = (
            (Position(*rows.place(offset)), comment)
            for offset, comment in _insertions(own, source.text, reason, source.cells.replaced)
        )
        data = found.changed(source, [Edit(Span(program, at, at), comment) for at, comment in places]).encode()
        again = notebook.read(path, data)
        made = None if isinstance(again, Refusal) else again.source(program)
        comments[program] = suppressions("" if made is None else made.text)
    still = suppression.apply(findings, comments.__getitem__).kept
    changed = [Changed(path, before, data)] if data != before else []
    return changed, [Left(finding, _NO_ROW) for finding in still]


def _insertions(
    findings: Iterable[Finding], text: str, reason: str, closed: frozenset[int] = frozenset()
) -> list[tuple[int, str]]:
    """Comments for findings, and where in the text they go; ``closed`` rows take none."""
    places = Places(text)
    codes: defaultdict[int, list[str]] = defaultdict(list)
    for finding in findings:
        row = _row(finding, places, closed)
        if row is not None and finding.code not in codes[row]:
            codes[row].append(finding.code)
    return [one for row, named in codes.items() for one in places.insertions(row, named, reason)]


def _row(finding: Finding, places: Places, closed: frozenset[int]) -> int | None:
    """The row for the comment: the first of the finding, which is where flake8 looks too, or another of its call."""
    first = finding.span.start.row
    begin, end = finding.noqa_rows or (first, first)
    return next((row for row in (first, *range(begin, end + 1)) if row not in closed and places.takes(row)), None)
