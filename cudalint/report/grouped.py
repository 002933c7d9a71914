"""Findings below the name of their file."""

from __future__ import annotations

from itertools import groupby

from cudalint.report.concise import said
from cudalint.report.plain import place
from cudalint.session import Report


def render(report: Report, directory: str, *, unsafe_fixes: bool = False) -> str:
    """``path:``, its findings as ``row:column: CODE [*] message (condition)``, and a blank line."""
    parts = []
    for path, findings in groupby(report.findings, key=lambda finding: finding.span.filename):
        rows = (f"  {said(finding, unsafe_fixes)}\n" for finding in findings)
        parts.append(f"{place(path, directory)}:\n{''.join(rows)}\n")
    return "".join(parts)
