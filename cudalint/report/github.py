"""Workflow commands that GitHub shows as annotations on a pull request."""

from __future__ import annotations

from cudalint.finding import Finding, Severity
from cudalint.found import Report
from cudalint.report.paths import relative
from cudalint.report.places import located
from cudalint.report.plain import conditional, plain


def render(report: Report, directory: str) -> str:
    """One ``::error``, ``::warning`` or ``::notice`` per finding."""
    return "".join(_command(report, finding, directory) for finding in report.findings)


def _command(report: Report, finding: Finding, directory: str) -> str:
    at = located(report, finding.span)
    filename = plain(relative(at.path, directory))
    first, last = at.file_rows
    properties = {"title": f"cudalint ({finding.code})", "file": filename, "line": str(first)}
    if at.cell is None:
        properties |= {"col": str(at.start.column), "endLine": str(last), "endColumn": str(at.end.column)}
    else:  # the row of the JSON, whose columns are no columns of the program
        properties |= {"endLine": str(last)}
    joined = ",".join(f"{key}={_escape_property(value)}" for key, value in properties.items())
    message = "\n".join(plain(row) for row in conditional(finding).split("\n"))
    cell = "" if at.cell is None else f"cell {at.cell}:"
    place = f"{filename}:{cell}{at.start.row}:{at.start.column}: {finding.code} {message}"
    return f"::{_command_of(finding.severity)} {joined}::{_escape(place)}\n"


def _command_of(severity: Severity) -> str:
    match severity:
        case Severity.ERROR:
            return "error"
        case Severity.WARNING:
            return "warning"
        case Severity.NOTE:
            return "notice"


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape(text).replace(":", "%3A").replace(",", "%2C")
