"""Reviewdog's diagnostic format. Its columns count the bytes of UTF-8."""

from __future__ import annotations

import os

from cudalint.finding import Applicability, Edit, Finding, Fix, Position, Severity, Span
from cudalint.found import Report
from cudalint.report import links
from cudalint.report.json_text import as_text
from cudalint.report.paths import relative
from cudalint.report.places import located
from cudalint.report.plain import conditional
from cudalint.text.lines import Rows, split_rows


def render(report: Report, directory: str, *, unsafe_fixes: bool = False) -> str:
    """One result with a diagnostic for each finding; repairs that may be made are suggestions."""
    made = _Diagnostics(report, directory, unsafe_fixes)
    source = {"name": "cudalint", "url": links.HOME}
    return as_text({"source": source, "diagnostics": [made.diagnostic(finding) for finding in report.findings]})


class _Diagnostics:
    """What the diagnostics of one report share."""

    def __init__(self, report: Report, directory: str, unsafe_fixes: bool) -> None:
        self._report = report
        self._texts = report.texts
        self._rows = {path: split_rows(text) for path, text in report.texts.items()}
        self._directory = directory
        self._unsafe_fixes = unsafe_fixes

    def diagnostic(self, finding: Finding) -> dict[str, object]:
        """One finding."""
        return {
            "message": self._within(finding.span, conditional(finding)),
            "location": self._location(finding.span),
            "severity": _severity(finding.severity),
            "code": {"value": finding.code, "url": links.rule(finding.code)},
            "suggestions": self._suggestions(finding),
            "relatedLocations": [
                {
                    "message": self._within(step.span, f"{step.process}: {step.message}"),
                    "location": self._location(step.span),
                }
                for step in finding.trace
            ],
        }

    def _within(self, span: Span, message: str) -> str:
        """What is said of a place, with the cell where that is one of a notebook: its rows are those of JSON."""
        words = located(self._report, span).words
        return f"{words}: {message}" if words else message

    def _location(self, span: Span) -> dict[str, object]:
        place = located(self._report, span)
        shown = {"start": {"line": place.file_rows[0]}, "end": {"line": place.file_rows[1]}}
        where: object = self._range(span) if place.cell is None else shown
        return {"path": relative(place.path, self._directory).replace(os.sep, "/"), "range": where}

    def _range(self, span: Span) -> dict[str, object]:
        return {"start": self._position(span.filename, span.start), "end": self._position(span.filename, span.end)}

    def _position(self, path: str, position: Position) -> dict[str, int]:
        rows = self._rows.get(path, [])
        before = rows[position.row - 1][: position.column - 1] if position.row <= len(rows) else ""
        # A place behind what is there, or in a file that was not read, is left where it is.
        more = position.column - 1 - len(before)
        return {"line": position.row, "column": len(before.encode("utf-8", "surrogatepass")) + more + 1}

    def _suggestions(self, finding: Finding) -> list[dict[str, object]]:
        """The repair as one replacement: each suggestion stands for itself, so several would be halves of one."""
        fix, path = finding.fix, finding.span.filename
        if fix is None or not self._admits(fix) or {edit.span.filename for edit in fix.edits} != {path}:
            return []
        if path not in self._texts or path in self._report.cells:
            return []
        span, text = _joined(self._texts[path], sorted(fix.edits, key=lambda edit: edit.span))
        return [{"range": self._range(span), "text": text}]

    def _admits(self, fix: Fix) -> bool:
        level = fix.applicability
        return level is Applicability.SAFE or (self._unsafe_fixes and level is Applicability.UNSAFE)


def _joined(text: str, edits: list[Edit]) -> tuple[Span, str]:
    """All edits as one, with the text between them."""
    rows = Rows(text)
    parts: list[str] = []
    first, last = edits[0].span, edits[-1].span
    position = rows.offset(first.start.row, first.start.column)
    for edit in edits:
        start = rows.offset(edit.span.start.row, edit.span.start.column)
        parts += [text[position:start], edit.content]
        position = rows.offset(edit.span.end.row, edit.span.end.column)
    return Span(first.filename, first.start, last.end), "".join(parts)


def _severity(severity: Severity) -> str:
    match severity:
        case Severity.ERROR:
            return "ERROR"
        case Severity.WARNING:
            return "WARNING"
        case Severity.NOTE:
            return "INFO"
