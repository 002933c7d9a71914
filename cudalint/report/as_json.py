"""Findings as a list of objects; fields may be added, none changes."""

from __future__ import annotations

from cudalint.finding import Edit, Finding, Fix, Position, Step
from cudalint.found import Report
from cudalint.policy.identity import fingerprints
from cudalint.report import links
from cudalint.report.json_text import as_row, as_text
from cudalint.report.places import Place, located


def render(report: Report, directory: str) -> str:
    """The findings as indented JSON; ``[]`` where there are none."""
    return as_text(_findings(report, directory))


def render_rows(report: Report, directory: str) -> str:
    """The same objects, each on a row of its own; nothing where there are none."""
    return "".join(map(as_row, _findings(report, directory)))


def _findings(report: Report, directory: str) -> list[dict[str, object]]:
    known = fingerprints(report.findings, report.texts, directory)
    return [_finding(report, one, fingerprint) for one, fingerprint in zip(report.findings, known, strict=True)]


def _finding(report: Report, finding: Finding, fingerprint: str) -> dict[str, object]:
    place = located(report, finding.span)
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.value,
        "message": finding.message,
        "filename": place.path,
        "location": _position(place.start),
        "end_location": _position(place.end),
        "fix": None if finding.fix is None else _fix(report, finding.fix),
        "trace": [_step(report, step) for step in finding.trace],
        "outcome": finding.outcome,
        "condition": finding.condition,
        "cell": place.cell,
        "fingerprint": fingerprint,
        # flake8 looks at the row of the finding only, so that is the row where a comment serves both.
        "noqa_row": place.start.row,
        "url": links.rule(finding.code),
    }


def _position(position: Position) -> dict[str, int]:
    return {"row": position.row, "column": position.column}


def _fix(report: Report, fix: Fix) -> dict[str, object]:
    return {
        "applicability": fix.applicability.value,
        "message": fix.message,
        "reason": fix.reason,
        "edits": [_edit(report, edit) for edit in fix.edits],
    }


def _edit(report: Report, edit: Edit) -> dict[str, object]:
    place = located(report, edit.span)
    return {
        "filename": place.path,
        "content": edit.content,
        "location": _position(place.start),
        "end_location": _position(place.end),
        **_cell(place),
    }


def _step(report: Report, step: Step) -> dict[str, object]:
    place = located(report, step.span)
    return {
        "filename": place.path,
        "location": _position(place.start),
        "end_location": _position(place.end),
        **_cell(place),
        "message": step.message,
        "kind": step.kind.value,
        "process": step.process,
    }


def _cell(place: Place) -> dict[str, object]:
    """The cell of a step or an edit, in notebooks only."""
    return {} if place.cell is None else {"cell": place.cell}
