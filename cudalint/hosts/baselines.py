"""What the command line does with baselines: it writes them, says what of them has gone, and takes that out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from cudalint.config import Config, ConfigError
from cudalint.found import Report
from cudalint.hosts import streams
from cudalint.policy import baseline
from cudalint.policy.baseline import Baseline, BaselineError, Entry
from cudalint.policy.selection import Selection
from cudalint.report.paths import relative

# A longer list is cut: the file itself has all.
_NAMED = 5


def write(file: str, report: Report, checked: Iterable[str], selection: Selection) -> str:
    """Put the findings of a run into a file, and say so; what the run was not about stays in it.

    Raises:
        ConfigError: for a file that is there and is no baseline, or cannot be written.
    """
    folder = os.path.dirname(os.path.realpath(file))
    made = baseline.of(report.findings, report.texts, folder)
    files = frozenset(checked)
    try:
        kept = baseline.load(file).entries if os.path.lexists(file) else ()
        others = [entry for entry in kept if not _is_judged(made, entry, files, selection)]
        baseline.save(file, Baseline(folder, (*made.entries, *others)))
    except BaselineError as error:
        raise ConfigError(str(error)) from None
    beside = f" and left {_findings(len(others))} of what was not checked" if others else ""
    return f"Wrote {_findings(len(made.entries))} to {file}{beside}."


def tell(report: Report, effective: Config, *, prune: bool, quiet: bool) -> None:
    """Say which entries have gone; ``prune`` takes them out.

    Raises:
        ConfigError: where the file cannot be written.
    """
    if effective.baseline is None or not report.vanished:
        return
    file = relative(effective.baseline, os.getcwd())
    if not prune:
        _say(f"cudalint: warning: {file}: {_gone(report.vanished)}; --prune-baseline takes them out", quiet)
        return
    try:
        baseline.save(file, baseline.load(file).without(report.vanished))
    except BaselineError as error:
        raise ConfigError(str(error)) from None
    _say(f"Took {_findings(len(report.vanished))} out of {file}.", quiet)


def _is_judged(made: Baseline, entry: Entry, files: frozenset[str], selection: Selection) -> bool:
    path = made.path(entry)
    return (path in files or not os.path.lexists(path)) and selection.shows(entry.identity.code)


def _gone(entries: Sequence[Entry]) -> str:
    named = [f"{entry.identity.code} in {entry.identity.path}" for entry in entries[:_NAMED]]
    more = f" and {len(entries) - _NAMED} more" if len(entries) > _NAMED else ""
    verb = "is" if len(entries) == 1 else "are"
    return f"{_findings(len(entries))} {verb} not there any more ({', '.join(named)}{more})"


def _findings(count: int) -> str:
    return f"{count:,} finding{'' if count == 1 else 's'}"


def _say(text: str, quiet: bool) -> None:
    if not quiet:
        streams.say(text)
