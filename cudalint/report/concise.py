"""One line per finding, as ruff and flake8 print it."""

from __future__ import annotations

from cudalint.finding import Applicability, Finding, Severity
from cudalint.found import Report
from cudalint.report.places import located
from cudalint.report.plain import statement


def render(report: Report, directory: str, *, unsafe_fixes: bool = False) -> str:
    """``path:row:column: CODE [*] message (condition)``; the star says that ``--fix`` repairs it."""
    return "".join(
        f"{located(report, finding.span).label(directory)}: {said(finding, unsafe_fixes)}\n"
        for finding in report.findings
    )


def said(finding: Finding, unsafe_fixes: bool) -> str:
    """What follows the place: ``CODE [*] message (condition)``."""
    marks = "[*] " if _fixable(finding, unsafe_fixes) else ""
    marks += "note: " if finding.severity is Severity.NOTE else ""
    return f"{finding.code} {marks}{statement(finding)}"


def _fixable(finding: Finding, unsafe_fixes: bool) -> bool:
    if finding.fix is None:
        return False
    level = finding.fix.applicability
    return level is Applicability.SAFE or (unsafe_fixes and level is Applicability.UNSAFE)
