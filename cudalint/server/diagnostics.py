"""Findings as diagnostics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from lsprotocol import types

from cudalint import rules
from cudalint.finding import Edit, Finding, Fix, Severity, Span
from cudalint.found import Report
from cudalint.report.places import located
from cudalint.report.plain import conditional
from cudalint.server.positions import Places
from cudalint.structs import Frozen

SOURCE = "cudalint"
_UNUSED = frozenset({"CUD902"})
_SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.NOTE: types.DiagnosticSeverity.Information,
}


class Part(Frozen):
    """A document of the editor: as it names it, its version, and the version's text."""

    uri: str
    version: int | None
    text: str


class Opened(Frozen):
    """An open file: its document, or those of a notebook's cells in their order; and what it is when it is saved."""

    parts: tuple[Part, ...]
    data: bytes

    def version(self, uri: str) -> int | None:
        """The version of one of its documents."""
        return next((part.version for part in self.parts if part.uri == uri), None)


class Found:
    """What a run over a folder, or a file, found, and the files that it rests on as they were open, by path."""

    def __init__(
        self,
        report: Report | None = None,
        opened: Mapping[str, Opened] | None = None,
        root: str | None = None,
        encoding: types.PositionEncodingKind = types.PositionEncodingKind.Utf16,
    ) -> None:
        self.report = report or Report()
        self.opened = opened or {}
        self.root = root
        self.encoding = encoding
        grouped: dict[str, list[Finding]] = {}
        for finding in self.report.findings:
            grouped.setdefault(self.location(finding.span).uri, []).append(finding)
        # The findings of each document: asked for of each of them, and places cost a walk through a text.
        self.by_uri: Mapping[str, Sequence[Finding]] = grouped

    def location(self, span: Span) -> types.Location:
        """A place in the editor's words: in a document, in that of a cell, or in a notebook that is not open."""
        place = located(self.report, span)
        opened = self.opened.get(place.path)
        shown = Span(place.path, place.start, place.end)
        if place.cell is None:
            text = self.report.texts.get(span.filename, "")
            uri = Path(place.path).as_uri() if opened is None else opened.parts[0].uri
            return types.Location(uri, Places(text, self.encoding).range(shown))
        if opened is not None and place.cell <= len(opened.parts):
            part = opened.parts[place.cell - 1]
            return types.Location(part.uri, Places(part.text, self.encoding).range(shown))
        first, last = place.file_rows
        rows = types.Range(types.Position(first - 1, 0), types.Position(last, 0))
        return types.Location(Path(place.path).as_uri(), rows)

    def version(self, uri: str) -> int | None:
        """The version of a document that the run read; None where it was not open."""
        return next((part.version for one in self.opened.values() for part in one.parts if part.uri == uri), None)

    def can_edit(self, span: Span) -> bool:
        """Whether the editor has the text that a span is about: not of notebooks that are closed, nor of magics."""
        cells = self.report.cells.get(span.filename)
        if cells is None:
            return True
        is_open = cells.notebook in self.opened
        return is_open and cells.replaced.isdisjoint(range(span.start.row, span.end.row + 1))


def diagnostics(found: Found, findings: Iterable[Finding]) -> list[types.Diagnostic]:
    """Findings of one run in the editor's words."""
    return [diagnostic(found, finding) for finding in findings]


def diagnostic(found: Found, finding: Finding) -> types.Diagnostic:
    """A finding with the steps that lead to it, wherever they are, and what can be done about it."""
    related = [
        types.DiagnosticRelatedInformation(found.location(step.span), f"{step.process}: {step.message}")
        for step in finding.trace
    ]
    return types.Diagnostic(
        range=found.location(finding.span).range,
        message=conditional(finding),
        severity=_SEVERITIES[finding.severity],
        code=finding.code,
        code_description=types.CodeDescription(_page(finding.code)),
        source=SOURCE,
        tags=[types.DiagnosticTag.Unnecessary] if finding.code in _UNUSED else None,
        related_information=related,
        data={"name": finding.name, "fix": None if finding.fix is None else _fix(found, finding.fix)},
    )


def _page(code: str) -> str:
    """Where the page of a rule can be read: it is the docstring of its module, which is wherever cudalint is."""
    return Path(rules.__file__).with_name(f"{code.lower()}.py").as_uri()


def _fix(found: Found, fix: Fix) -> dict[str, object]:
    return {
        "applicability": fix.applicability.value,
        "message": fix.message,
        "reason": fix.reason,
        "edits": [_edit(found, edit) for edit in fix.edits],
    }


def _edit(found: Found, edit: Edit) -> dict[str, object]:
    location = found.location(edit.span)
    place = location.range
    return {
        "uri": location.uri,
        "range": {
            "start": {"line": place.start.line, "character": place.start.character},
            "end": {"line": place.end.line, "character": place.end.character},
        },
        "newText": edit.content,
    }
