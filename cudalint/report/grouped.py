"""Findings below the name of their file."""

from __future__ import annotations

from itertools import groupby

from cudalint.found import Report
from cudalint.report.concise import said
from cudalint.report.places import located
from cudalint.report.plain import place


def render(report: Report, directory: str, *, unsafe_fixes: bool = False) -> str:
    """``path:``, its findings as ``row:column: CODE [*] message (condition)``, and a blank line."""
    parts = []
    for path, findings in groupby(report.findings, key=lambda finding: located(report, finding.span).path):
        rows = (f"  {located(report, one.span).within}: {said(one, unsafe_fixes)}\n" for one in findings)
        parts.append(f"{place(path, directory)}:\n{''.join(rows)}\n")
    return "".join(parts)
