"""What a run found, as every host gets it."""

from __future__ import annotations

from collections.abc import Mapping

from cudalint.config import DEFAULT_VERSIONS, Versions
from cudalint.finding import Finding, Severity
from cudalint.policy.baseline import Entry
from cudalint.settings_files import NONE_READ, SettingsRead
from cudalint.structs import Frozen, field
from cudalint.text.source import Cells


class Effort(Frozen):
    """What a run cost before it looked for repairs, in units that do not depend on the computer.

    ``functions`` are those that the entries entered, once for each entry; ``cut`` are the entries that a bound ended;
    ``steps`` were made in all of them. What ``kept`` entries gave is known from runs before.
    """

    files_read: int = 0
    bytes_read: int = 0
    files_parsed: int = 0
    bytes_parsed: int = 0
    nodes_lowered: int = 0
    functions: int = 0
    entries: int = 0
    cut: int = 0
    steps: int = 0
    kept: int = 0


class Report(Frozen):
    """What a run found.

    ``silenced`` is what a comment or the configuration hides; ``known`` is what a baseline does, if the run
    ``is_compared`` with one, and ``vanished`` are its entries that are not found any more. ``texts`` holds the files
    that findings and traces point into; ``cells`` says of those that come from notebooks where their rows are.
    ``target_versions`` are those of the Python that runs the programs, ``pythons`` those of others below some folders,
    and from ``fail_on`` on a finding fails the run, as the settings say. ``settings`` are the files of settings that
    the programs read. ``warnings`` are said in any case; ``notes`` of the analysis and ``failures``, tracebacks of
    cudalint, only with ``--verbose``.
    """

    findings: tuple[Finding, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    cells: Mapping[str, Cells] = field(default_factory=dict)
    effort: Effort = Effort()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    silenced: tuple[Finding, ...] = ()
    target_versions: Versions = DEFAULT_VERSIONS
    pythons: tuple[tuple[str, Versions], ...] = ()
    known: tuple[Finding, ...] = ()
    vanished: tuple[Entry, ...] = ()
    is_compared: bool = False
    fail_on: Severity = Severity.WARNING
    settings: SettingsRead = NONE_READ
