"""One report in one of the output formats."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from cudalint.session import Report


class OutputFormat(Enum):
    """The names of the formats on the command line."""

    FULL = "full"
    CONCISE = "concise"
    JSON = "json"
    GITHUB = "github"
    SARIF = "sarif"


@dataclass(frozen=True, slots=True)
class Style:
    """How a report for people looks: whether coloured, and from which directory paths are shown."""

    colour: bool
    directory: str


def render(report: Report, output_format: OutputFormat, style: Style) -> str:
    """The whole text, ending with a newline unless it is empty."""
    # Imported where needed: a clean run does not pay for what it does not print.
    match output_format:
        case OutputFormat.FULL:
            if report.findings:
                from cudalint.report import full

                return full.render(report, style.directory, colour=style.colour) + summary(report)
            return summary(report)
        case OutputFormat.CONCISE:
            from cudalint.report import concise

            return concise.render(report, style.directory) + summary(report)
        case OutputFormat.JSON:
            from cudalint.report import as_json

            return as_json.render(report)
        case OutputFormat.GITHUB:
            from cudalint.report import github

            return github.render(report, style.directory)
        case OutputFormat.SARIF:
            from cudalint.report import sarif

            return sarif.render(report, style.directory)


def summary(report: Report) -> str:
    """The last line."""
    if not report.findings:
        return "All checks passed!\n"
    errors = sum(finding.severity.rank for finding in report.findings)
    warnings = len(report.findings) - errors
    counts = [_count(errors, "error"), _count(warnings, "warning")]
    files = len({finding.span.filename for finding in report.findings})
    return f"Found {' and '.join(filter(None, counts))} in {_count(files, 'file')}.\n"


def _count(number: int, noun: str) -> str:
    if number == 0:
        return ""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
