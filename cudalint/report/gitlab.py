"""GitLab's code quality report, the part of Code Climate's that it reads."""

from __future__ import annotations

import os

from cudalint.finding import Finding, Severity
from cudalint.found import Report
from cudalint.policy.identity import fingerprints
from cudalint.report.json_text import as_text
from cudalint.report.paths import relative
from cudalint.report.places import located
from cudalint.report.plain import statement

# Where a job of GitLab has the repository, whose paths it compares.
_PROJECT = "CI_PROJECT_DIR"


def render(report: Report, directory: str) -> str:
    """A list with an issue for each finding; fingerprints stay when lines move, so that GitLab tells what is new."""
    top = _top(directory)
    known = fingerprints(report.findings, report.texts, top)
    return as_text([_issue(report, one, mark, top) for one, mark in zip(report.findings, known, strict=True)])


def _top(directory: str) -> str:
    """The folder of the repository as paths name it; where the job says another one, that in which it runs."""
    named = os.environ.get(_PROJECT)
    if not named:
        return directory
    # The folders of a runner may be links; the current one is known by its real name.
    found = (
        top for top in (named, os.path.realpath(named)) if os.path.join(directory, "").startswith(os.path.join(top, ""))
    )
    return next(found, directory)


def _issue(report: Report, finding: Finding, fingerprint: str, top: str) -> dict[str, object]:
    place = located(report, finding.span)
    first, last = place.file_rows
    return {
        "description": ": ".join(part for part in (finding.code, place.words, statement(finding)) if part),
        "check_name": finding.code,
        "fingerprint": fingerprint,
        "severity": _severity(finding.severity),
        "location": {
            "path": relative(place.path, top).replace(os.sep, "/"),
            "lines": {"begin": first, "end": last},
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
