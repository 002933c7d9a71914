"""Findings as a list of objects; fields may be added, none changes."""

from __future__ import annotations

from cudalint.finding import Finding, Fix, Position, Step
from cudalint.policy.identity import fingerprints
from cudalint.report.json_text import as_row, as_text
from cudalint.session import Report


def render(report: Report, directory: str) -> str:
    """The findings as indented JSON; ``[]`` where there are none."""
    return as_text(_findings(report, directory))


def render_rows(report: Report, directory: str) -> str:
    """The same objects, each on a row of its own; nothing where there are none."""
    return "".join(map(as_row, _findings(report, directory)))


def _findings(report: Report, directory: str) -> list[dict[str, object]]:
    known = fingerprints(report.findings, report.texts, directory)
    return [_finding(one, fingerprint) for one, fingerprint in zip(report.findings, known, strict=True)]


def _finding(finding: Finding, fingerprint: str) -> dict[str, object]:
    start = finding.span.start
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.value,
        "message": finding.message,
        "filename": finding.span.filename,
        "location": _position(start),
        "end_location": _position(finding.span.end),
        "fix": None if finding.fix is None else _fix(finding.fix),
        "trace": [_step(step) for step in finding.trace],
        "outcome": finding.outcome,
        "condition": finding.condition,
        "cell": finding.cell,
        "fingerprint": fingerprint,
        # flake8 looks at the row of the finding only, so that is the row where a comment serves both.
        "noqa_row": start.row,
        "url": None,
    }


def _position(position: Position) -> dict[str, int]:
    return {"row": position.row, "column": position.column}


def _fix(fix: Fix) -> dict[str, object]:
    return {
        "applicability": fix.applicability.value,
        "message": fix.message,
        "reason": fix.reason,
        "edits": [
            {
                "filename": edit.span.filename,
                "content": edit.content,
                "location": _position(edit.span.start),
                "end_location": _position(edit.span.end),
            }
            for edit in fix.edits
        ],
    }


def _step(step: Step) -> dict[str, object]:
    return {
        "filename": step.span.filename,
        "location": _position(step.span.start),
        "end_location": _position(step.span.end),
        "message": step.message,
        "kind": step.kind.value,
        "process": step.process,
    }
