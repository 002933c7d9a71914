"""Findings with their code: a frame at the place, the path that leads there, what hardware showed, the fix."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from rich.cells import cell_len
from rich.text import Text

from cudalint.config import Versions
from cudalint.finding import Applicability, Finding, Fix, Severity, Span, Step, StepKind
from cudalint.found import Report
from cudalint.project.pythons import held
from cudalint.proof import quote
from cudalint.report.console import console
from cudalint.report.places import located
from cudalint.report.plain import plain, without_commands
from cudalint.text.lines import split_rows

_MARGIN = "blue"
_TAB = 4
# A longer line is shown in part, around the place it is about.
_WIDEST = 160

_OUTCOMES = {
    "crash": "the program crashes",
    "hang": "the program hangs",
    "child-death": "the child dies, and the parent does not notice",
    "thread-death": "the thread dies, and the others go on",
    "wrong-device": "the work silently runs on the wrong device",
    "cost": "it works, and costs",
    "latent": "it works as it stands, and fails when something around it changes",
}


# As the machine words it that a default start method belongs to some versions.
_BOUND = re.compile(r"\b(from|before) Python 3\.(\d+)")
_LEVELS = {
    Applicability.SAFE: "fix",
    Applicability.UNSAFE: "fix, with --unsafe-fixes",
    Applicability.DISPLAY: "advice",
}


def render(report: Report, directory: str, *, colour: bool) -> str:
    """A block of lines per finding, a blank line between them."""
    rows = {path: split_rows(text) for path, text in report.texts.items()}
    shown = console(colour=colour)
    with shown.capture() as capture:
        for finding in report.findings:
            for line in _Block(finding, rows, directory, report).lines():
                shown.print(line)
            shown.print()
    return capture.get()


class _Block:
    """The lines about one finding."""

    def __init__(self, finding: Finding, rows: dict[str, list[str]], directory: str, report: Report) -> None:
        self._finding = finding
        self._rows = rows
        self._directory = directory
        self._report = report
        self._shown: set[Span] = set()
        spans = (finding.span, *(step.span for step in finding.trace))
        last = max(located(report, span).start.row for span in spans)
        self._gutter = len(str(last)) + 1

    def lines(self) -> Iterator[Text]:
        finding = self._finding
        colour = _colour(finding.severity)
        yield Text.assemble(
            (f"{finding.severity.value}[{finding.code}]", f"bold {colour}"), (f": {plain(finding.message)}", "bold")
        )
        yield self._place("-->", finding.span, finding.name)
        yield from self._frame(finding.span, "^", "", colour)
        for kind, steps in groupby(finding.trace, key=lambda step: step.kind):
            yield from self._leg(kind, steps)
        yield from self._notes()

    def _leg(self, kind: StepKind, steps: Iterable[Step]) -> Iterator[Text]:
        for index, step in enumerate(steps):
            process = plain(step.process)
            label = f"{kind.value}, in {process}" if index == 0 else f"then, in {process}"
            message = plain(step.message)
            if step.span in self._shown:
                # The code is on the screen already; another frame of it would only lengthen the way.
                yield self._place(":::", step.span, label, message)
                continue
            yield self._place(":::", step.span, label)
            yield from self._frame(step.span, "-", message, "cyan")

    def _place(self, arrow: str, span: Span, label: str, message: str = "") -> Text:
        place = located(self._report, span).label(self._directory)
        text = Text.assemble(" " * self._gutter, (arrow, _MARGIN), f" {place} ", (f"({label})", "dim"))
        return text.append(f" {message}", "cyan") if message else text

    def _frame(self, span: Span, mark: str, label: str, colour: str) -> Iterator[Text]:
        rows = self._rows.get(span.filename, [])
        if not 1 <= span.start.row <= len(rows) or span.start == span.end:
            # A place without extent stands for a whole file.
            if label:
                yield self._margin("", Text.assemble((label, colour)))
            return
        self._shown.add(span)
        line = rows[span.start.row - 1]
        place = located(self._report, span)
        first = min(place.start.column - 1, len(line))
        last = place.end.column - 1 if span.end.row == span.start.row else len(line.rstrip())
        before, marked, after = _window(line, first, max(first + 1, last))
        yield self._margin("", Text())
        yield self._margin(str(place.start.row), Text(before + marked + after))
        underline = " " * cell_len(before) + mark * max(1, cell_len(marked))
        yield self._margin("", Text.assemble((f"{underline} {label}".rstrip(), colour)))

    def _margin(self, number: str, content: Text) -> Text:
        text = Text.assemble((f"{number:>{self._gutter - 1}} |", _MARGIN), " ", content)
        text.rstrip()
        return text

    def _notes(self) -> Iterator[Text]:
        finding = self._finding
        yield self._margin("", Text())
        if finding.caught:
            does = "is told of" if finding.told else "handles"
            yield self._note("expected", f"it fails there, and the program {does} the exception")
        elif finding.outcome is not None:
            ends = _OUTCOMES.get(finding.outcome, finding.outcome)
            shown = quote(finding.code, finding.outcome, _holds_for(finding, self._report))
            yield self._note("on hardware", f"{ends} ({shown})") if shown else self._note("expected", ends)
        if finding.condition is not None:
            yield self._note("condition", finding.condition)
        if finding.fix is not None:
            yield from self._fix(finding.fix)
        yield self._note("help", f"cudalint rule {finding.code}")

    def _fix(self, fix: Fix) -> Iterator[Text]:
        """What can be repaired, and each reason against making it unasked, one below the other."""
        level = _LEVELS[fix.applicability]
        if fix.applicability is not Applicability.UNSAFE:
            yield self._note(level, fix.message)
            return
        first, *others = (fix.reason or "").split("; ")
        if not others:
            yield self._note(level, f"{fix.message} (not safe: {first})")
            return
        yield self._note(level, f"{fix.message} (not safe, see below)")
        for reason in (first, *others):
            yield self._note("not safe", reason)

    def _note(self, label: str, content: str) -> Text:
        return Text.assemble(" " * self._gutter, ("=", _MARGIN), " ", (label, "bold"), f": {plain(content)}")


def _holds_for(finding: Finding, report: Report) -> Versions:
    """The Python versions of the program for which a finding is true."""
    versions = held(finding.span.filename, report.pythons, report.target_versions)
    lowest, highest = versions
    bound = _BOUND.search(finding.condition or "")
    if bound is None:
        return versions
    minor = int(bound[2])
    return (max(lowest, (3, minor)), highest) if bound[1] == "from" else (lowest, min(highest, (3, minor - 1)))


def _colour(severity: Severity) -> str:
    match severity:
        case Severity.ERROR:
            return "red"
        case Severity.WARNING:
            return "yellow"
        case Severity.NOTE:
            return "cyan"


def _window(line: str, first: int, last: int) -> tuple[str, str, str]:
    """The line in three parts: before, within and after the marked stretch, cut to what fits."""
    line = without_commands(line)
    begin, end = 0, len(line)
    if len(line) > _WIDEST:
        begin = max(0, first - _WIDEST // 4)
        end = min(len(line), begin + _WIDEST)
    last = min(last, end)
    before, marked, after = line[begin:first], line[first:last], line[last:end]
    if begin > 0:
        before = "…" + before
    if end < len(line):
        after += "…"
    return _plain(before), _plain(marked), _plain(after)


def _plain(text: str) -> str:
    """Text that moves no cursor: tabs become blanks, other control characters a replacement character."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " * _TAB if c == "\t" else "\ufffd" for c in text)
