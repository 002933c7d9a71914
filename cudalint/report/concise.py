"""One line per finding, as ruff and flake8 print it."""

from __future__ import annotations

from cudalint.report.paths import relative
from cudalint.session import Report


def render(report: Report, directory: str) -> str:
    """``path:row:column: CODE message``."""
    return "".join(
        f"{relative(finding.span.filename, directory)}:{finding.span.start.row}:{finding.span.start.column}: "
        f"{finding.code} {finding.message}\n"
        for finding in report.findings
    )
