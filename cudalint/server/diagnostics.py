"""Findings as diagnostics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lsprotocol import types
from pygls import uris

from cudalint import rules
from cudalint.finding import Edit, Finding, Fix, Severity, Span
from cudalint.report.plain import conditional
from cudalint.server.positions import Places
from cudalint.session import Report

SOURCE = "cudalint"
_UNUSED = frozenset({"CUD902"})
_SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.NOTE: types.DiagnosticSeverity.Information,
}


@dataclass(frozen=True, slots=True)
class Opened:
    """A document of the editor: as it names it, its version, the version's text, and what that is when it is saved."""

    uri: str
    version: int | None
    text: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Found:
    """What a run over a folder, or a file, found, and the documents that it rests on, by path."""

    report: Report = field(default_factory=Report)
    opened: Mapping[str, Opened] = field(default_factory=dict)
    root: str | None = None
    encoding: types.PositionEncodingKind = types.PositionEncodingKind.Utf16

    def uri(self, path: str) -> str:
        """The editor's name of a file."""
        opened = self.opened.get(path)
        return uris.from_fs_path(path) or "" if opened is None else opened.uri

    def places(self, path: str) -> Places:
        """The rows of a file of the report."""
        return Places(self.report.texts.get(path, ""), self.encoding)

    def files(self) -> frozenset[str]:
        """The files that have findings."""
        return frozenset(finding.span.filename for finding in self.report.findings)

    def of(self, path: str) -> tuple[Finding, ...]:
        """The findings of a file."""
        return tuple(finding for finding in self.report.findings if finding.span.filename == path)

    def location(self, span: Span) -> types.Location:
        """A place in the editor's words."""
        return types.Location(self.uri(span.filename), self.places(span.filename).range(span))


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
        range=found.places(finding.span.filename).range(finding.span),
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
    place = found.location(edit.span).range
    return {
        "uri": found.uri(edit.span.filename),
        "range": {
            "start": {"line": place.start.line, "character": place.start.character},
            "end": {"line": place.end.line, "character": place.end.character},
        },
        "newText": edit.content,
    }
