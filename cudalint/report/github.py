"""Workflow commands that GitHub shows as annotations on a pull request."""

from __future__ import annotations

from cudalint.finding import Finding, Severity
from cudalint.report.paths import relative
from cudalint.report.plain import conditional, plain
from cudalint.session import Report


def render(report: Report, directory: str) -> str:
    """One ``::error``, ``::warning`` or ``::notice`` per finding."""
    return "".join(_command(finding, directory) for finding in report.findings)


def _command(finding: Finding, directory: str) -> str:
    filename = plain(relative(finding.span.filename, directory))
    start, end = finding.span.start, finding.span.end
    properties = {
        "title": f"cudalint ({finding.code})",
        "file": filename,
        "line": str(start.row),
        "col": str(start.column),
        "endLine": str(end.row),
        "endColumn": str(end.column),
    }
    joined = ",".join(f"{key}={_escape_property(value)}" for key, value in properties.items())
    message = "\n".join(plain(row) for row in conditional(finding).split("\n"))
    place = f"{filename}:{start.row}:{start.column}: {finding.code} {message}"
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
