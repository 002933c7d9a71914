"""GitLab's code quality report, the part of Code Climate's that it reads."""

from __future__ import annotations

import os

from cudalint.finding import Finding, Severity
from cudalint.policy.identity import fingerprints
from cudalint.report.json_text import as_text
from cudalint.report.paths import relative
from cudalint.report.plain import statement
from cudalint.session import Report

# Where a job of GitLab has the repository, whose paths it compares.
_PROJECT = "CI_PROJECT_DIR"


def render(report: Report, directory: str) -> str:
    """A list with an issue for each finding; fingerprints stay when lines move, so that GitLab tells what is new."""
    top = os.environ.get(_PROJECT) or directory
    known = fingerprints(report.findings, report.texts, top)
    return as_text([_issue(one, mark, top) for one, mark in zip(report.findings, known, strict=True)])


def _issue(finding: Finding, fingerprint: str, top: str) -> dict[str, object]:
    return {
        "description": f"{finding.code}: {statement(finding)}",
        "check_name": finding.code,
        "fingerprint": fingerprint,
        "severity": _severity(finding.severity),
        "location": {
            "path": relative(finding.span.filename, top).replace(os.sep, "/"),
            "lines": {"begin": finding.span.start.row, "end": finding.span.end.row},
        },
    }


def _severity(severity: Severity) -> str:
    match severity:
        case Severity.ERROR:
            return "major"
        case Severity.WARNING:
            return "minor"
        case Severity.NOTE:
            return "info"
