"""Findings as test cases that failed, for services that show JUnit reports.

A note is a case that was skipped, and a run without findings a case that passed.
"""

from __future__ import annotations

from cudalint.finding import Finding, Severity
from cudalint.found import Report
from cudalint.report import junit
from cudalint.report.paths import relative
from cudalint.report.places import located
from cudalint.report.plain import plain, statement


def render(report: Report, directory: str) -> str:
    """One suite with a case for each finding, grouped by file."""
    cases = [_case(report, finding, directory) for finding in report.findings]
    return junit.render("cudalint", cases or [junit.Case("check")])


def _case(report: Report, finding: Finding, directory: str) -> junit.Case:
    place = located(report, finding.span)
    path = plain(relative(place.path, directory))
    said = f"{path}:{place.within}: {statement(finding)}"
    is_note = finding.severity is Severity.NOTE
    return junit.Case(
        f"{finding.code} {finding.name} at {place.within}",
        path,
        failure=None if is_note else said,
        skipped=said if is_note else None,
    )
