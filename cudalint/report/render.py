"""One report in one of the output formats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import Enum

from cudalint.finding import Applicability, Finding, Severity
from cudalint.fixing.reach import files_of
from cudalint.found import Report
from cudalint.report.places import located
from cudalint.structs import Frozen


class OutputFormat(Enum):
    """The names of the formats on the command line."""

    FULL = "full"
    CONCISE = "concise"
    JSON = "json"
    GITHUB = "github"
    SARIF = "sarif"
    GITLAB = "gitlab"
    JUNIT = "junit"
    RDJSON = "rdjson"
    GROUPED = "grouped"
    JSON_LINES = "json-lines"

    @property
    def shows_repairs(self) -> bool:
        """Whether a report in this format says anything of repairs."""
        return self not in (OutputFormat.GITHUB, OutputFormat.GITLAB, OutputFormat.JUNIT)

    @property
    def shows_counts(self) -> bool:
        """Whether counts of findings may stand for them: not where a program reads the report."""
        return self in (OutputFormat.FULL, OutputFormat.CONCISE, OutputFormat.GROUPED, OutputFormat.JSON)


class Style(Frozen):
    """How a report for people looks: whether coloured, and from which directory paths are shown.

    ``unsafe_fixes`` counts unproven repairs among those that can be made; ``fixed`` were made already. Repairs change
    no other files than those ``within`` reach; None: any. ``quiet`` leaves out all but the findings.
    """

    colour: bool
    directory: str
    unsafe_fixes: bool = False
    fixed: int = 0
    quiet: bool = False
    within: frozenset[str] | None = None


def render(report: Report, output_format: OutputFormat, style: Style) -> str:
    """The whole text, ending with a newline unless it is empty."""
    # Imported where needed: a clean run does not pay for what it does not print.
    match output_format:
        case OutputFormat.FULL:
            if report.findings:
                from cudalint.report import full

                return full.render(report, style.directory, colour=style.colour) + summary(report, style)
            return summary(report, style)
        case OutputFormat.CONCISE:
            from cudalint.report import concise

            shown = concise.render(report, style.directory, unsafe_fixes=style.unsafe_fixes)
            return shown + summary(report, style)
        case OutputFormat.JSON:
            from cudalint.report import as_json

            return as_json.render(report, style.directory)
        case OutputFormat.JSON_LINES:
            from cudalint.report import as_json

            return as_json.render_rows(report, style.directory)
        case OutputFormat.GROUPED:
            from cudalint.report import grouped

            shown = grouped.render(report, style.directory, unsafe_fixes=style.unsafe_fixes)
            return shown + summary(report, style)
        case OutputFormat.GITLAB:
            from cudalint.report import gitlab

            return gitlab.render(report, style.directory)
        case OutputFormat.JUNIT:
            from cudalint.report import as_junit

            return as_junit.render(report, style.directory)
        case OutputFormat.RDJSON:
            from cudalint.report import rdjson

            return rdjson.render(report, style.directory, unsafe_fixes=style.unsafe_fixes)
        case OutputFormat.GITHUB:
            from cudalint.report import github

            return github.render(report, style.directory)
        case OutputFormat.SARIF:
            from cudalint.report import sarif

            return sarif.render(report, style.directory)


def summary(report: Report, style: Style) -> str:
    """The last lines: what was found, and what of it can be repaired."""
    if style.quiet:
        return ""
    repaired = f"{_count(style.fixed, 'repair')} made. " if style.fixed else ""
    known = f" ({_count(len(report.known), 'known finding')} not shown)" if report.known else ""
    if not report.findings:
        passed = "All checks passed!" if report.effort.files_read else "Nothing was checked."
        return f"{repaired}{passed}{known}{_unfinished(report)}\n"
    files = len({located(report, finding.span).path for finding in report.findings})
    found = f"{repaired}Found {by_severity(report.findings)} in {_count(files, 'file')}{known}.\n"
    return found + _fixable(report, style)


def _unfinished(report: Report) -> str:
    """That bounds ended what might have found something: nobody is to take silence for more than it is."""
    cut = sum("cut off: " in note for note in report.notes)
    return f" ({_count(cut, 'time')} an analysis was cut off: --verbose says where)" if cut else ""


def by_severity(findings: Iterable[Finding]) -> str:
    """How many findings there are of each severity, in words, the worst first."""
    counted = Counter(finding.severity for finding in findings)
    *others, last = [_count(counted[one], one.value) for one in reversed(Severity) if counted[one]]
    return f"{', '.join(others)} and {last}" if others else last


def _fixable(report: Report, style: Style) -> str:
    given = (finding.fix for finding in report.findings if finding.fix is not None)
    repairs = [one for one in given if one.applicability is not Applicability.DISPLAY]
    reached = [one for one in repairs if style.within is None or files_of(one, report.cells) <= style.within]
    beyond = len(repairs) - len(reached)
    aside = f"{_count(beyond, 'repair')} would change files that are not checked here.\n" if beyond else ""
    return _offered([repair.applicability for repair in reached], style) + aside


def _offered(levels: Sequence[Applicability], style: Style) -> str:
    safe, unsafe = levels.count(Applicability.SAFE), levels.count(Applicability.UNSAFE)
    if style.unsafe_fixes:
        total = safe + unsafe
        return f"{_count(total, 'repair')} can be made with --fix --unsafe-fixes.\n" if total else ""
    more = f"{_count(unsafe, 'repair')} with --fix --unsafe-fixes" if unsafe else ""
    now = f"{_count(safe, 'repair')} with --fix" if safe else ""
    offers = " and ".join(filter(None, (now, more)))
    return f"You can have {offers} (--diff shows what).\n" if offers else ""


def _count(number: int, noun: str) -> str:
    if number == 0:
        return ""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
