"""What ``cudalint check`` does: it checks or repairs, prints what is left, and says by its exit code how it went."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

from cudalint import rules
from cudalint.config import Config, ConfigError
from cudalint.discovery import PROJECT_FILE, NotFound
from cudalint.finding import Applicability
from cudalint.found import Report
from cudalint.hosts import baselines, inputs, streams
from cudalint.hosts.exits import Exit
from cudalint.hosts.inputs import Input
from cudalint.hosts.printing import Printing
from cudalint.intake import INTERNAL_ERROR
from cudalint.opening import Options, opened
from cudalint.report.plain import plain
from cudalint.structs import Frozen, field, replace

if TYPE_CHECKING:
    from cudalint.fixing.rounds import Changed, Fixed

# What says what is read, and how; a folder may have one at any time.
_SETTINGS = (PROJECT_FILE, ".gitignore")


class CheckOptions(Frozen):
    """The options of ``check`` as they were given: settings, how to tell what is found, and what to make of it."""

    settings: Options = field(default_factory=Options)
    printing: Printing = field(default_factory=Printing)
    stdin_filename: str | None = None
    exit_zero: bool = False
    exit_non_zero_on_fix: bool = False
    prune_baseline: bool = False


def check(paths: tuple[str, ...], options: CheckOptions) -> int:
    """Report what is found."""
    given = _input(paths, options)
    report = given.check(repair=options.printing.needs_repairs)
    _tell(report, given, options)
    return _exit_code(report, given.effective, options)


def watch(paths: tuple[str, ...], options: CheckOptions) -> int:
    """Report what is found, and again after each change of the project or its settings."""
    from cudalint.hosts import watching

    if inputs.is_stdin(paths, options.stdin_filename):
        raise click.UsageError("--watch waits for files to change: standard input is none")
    named = paths or (".",)
    inputs.require(named)
    return watching.watch(
        lambda: _bearing_on(named, options.settings), lambda: check(named, options), quiet=options.printing.quiet
    )


def _bearing_on(named: tuple[str, ...], settings: Options) -> set[str]:
    """The files that decide what is found: programs, and what holds settings, be it there or not."""
    found = {os.path.abspath(path) for path in named}
    with contextlib.suppress(ConfigError, NotFound):
        ready = opened(named, replace(settings, cache=False, since=None), spelled=inputs.as_option)
        config = ready.config
        found.update(ready.session.bearing_on(named), config.models)
        found.update(os.fspath(path) for path in (config.baseline, settings.config) if path is not None)
    folders = {folder for path in found for folder in _above(os.path.dirname(path))}
    return found | {os.path.join(folder, name) for folder in (*folders, *named) for name in _SETTINGS}


def _above(folder: str) -> Iterator[str]:
    while True:
        yield folder
        if folder == (folder := os.path.dirname(folder)):
            return


def write_baseline(paths: tuple[str, ...], options: CheckOptions, file: str) -> int:
    """Accept all that is found: keep it in a file, instead of reporting it."""
    given = _input(paths, replace(options, settings=replace(options.settings, baseline="")))
    if given.is_stdin:
        raise click.UsageError("standard input is not part of a project, so it has no baseline")
    report = given.check(repair=False)
    given.opened.cache.close()
    if any(finding.code == INTERNAL_ERROR for finding in report.findings):
        options.printing.report(report, given.opened.cache)
        return Exit.FAILED
    options.printing.warn(report.warnings)
    options.printing.tell(baselines.write(file, report, given.files(), given.effective.selection))
    return Exit.CLEAN


def show_files(paths: tuple[str, ...], options: CheckOptions) -> int:
    """List the files that a check of the same paths is about."""
    named = paths or (".",)
    found = inputs.open_paths(named, replace(options.settings, cache=False, since=None)).session.selected(named)
    options.printing.put("".join(f"{plain(path)}\n" for path in found))
    return Exit.CLEAN


def fix(paths: tuple[str, ...], options: CheckOptions, *, quiet: bool) -> int:
    """Write the repairs, and report what is left. Repaired standard input goes to standard output."""
    given, printing = _input(paths, options), options.printing
    fixed = given.repaired(printing.unsafe_fixes)
    refused = _unwritten(given, fixed.changes, fixed.stdin, "repaired", fixed.homes)
    made, failed = fixed.made_without(refused), bool(refused)
    printing.warn(fixed.notes)
    if quiet:
        printing.tell(f"Made {made} repair{'' if made == 1 else 's'}.")
        return Exit.FAILED if failed else _after(fixed, Exit.CLEAN, options)
    # What was not written is still wrong: say what the files are like now.
    report = given.check(repair=True) if failed else fixed.report
    if not given.is_stdin:
        _tell(report, given, options, fixed=made)
    return Exit.FAILED if failed else _after(fixed, _exit_code(report, given.effective, options), options)


def _after(fixed: Fixed, code: Exit, options: CheckOptions) -> Exit:
    """The exit code of a run that repaired: what it changed may be meant to count like a finding."""
    return Exit.FINDINGS if options.exit_non_zero_on_fix and fixed.changes and code is Exit.CLEAN else code


def add_noqa(paths: tuple[str, ...], options: CheckOptions, reason: str) -> int:
    """Silence all that is found by comments, and say what is left. Standard input goes to standard output."""
    from cudalint.fixing.silence import BadReason

    given, printing = _input(paths, options), options.printing
    try:
        silenced = given.silenced(reason)
    except BadReason as error:
        raise click.UsageError(f"--add-noqa: {error}") from None
    given.opened.cache.close()
    after = next((change.after for change in silenced.changes), given.data or b"")
    refused = _unwritten(given, silenced.changes, after, "changed")
    for left in silenced.left:
        place = f"{left.finding.span.filename}:{left.finding.span.start.row}: {left.finding.code}"
        printing.tell(f"cudalint: warning: {place} is left: {left.reason}")
    count = sum(number for path, number in silenced.counts.items() if path not in refused)
    printing.tell(f"Silenced {count} finding{'' if count == 1 else 's'}.")
    left_over = Report(findings=tuple(left.finding for left in silenced.left))
    return _exit_code(left_over, given.effective, options) if not refused else Exit.FAILED


def show_patch(paths: tuple[str, ...], options: CheckOptions) -> int:
    """Print what ``--fix`` would do; 1 where it would do something."""
    from cudalint.report import patch

    given, printing = _input(paths, options), options.printing
    fixed = given.repaired(printing.unsafe_fixes)
    given.opened.cache.close()
    printing.warn(fixed.notes)
    is_shown = printing.output_file is None and sys.stdout.isatty()
    here = os.getcwd()
    top = patch.folder(fixed.changes, here, given.effective.root)
    shown = patch.render(fixed.changes, top, colour=printing.colour, is_shown=is_shown)
    in_log = printing.output_file is None and os.environ.get("GITHUB_ACTIONS") == "true"
    printing.put(patch.between_tokens(shown) if in_log else shown)
    made = f"Would make {fixed.count} repair{'' if fixed.count == 1 else 's'}"
    printing.tell(f"{made}{_reserved(fixed.report, given, printing)}.")
    if top != here:
        printing.tell(f"The names in the patch count from {top}: git apply, or patch -p1, there.")
    return Exit.FINDINGS if fixed.changes and not options.exit_zero else Exit.CLEAN


def _reserved(report: Report, given: Input, printing: Printing) -> str:
    """What else could be repaired with ``--unsafe-fixes``."""
    from cudalint.fixing.reach import files_of

    unsafe = [f.fix for f in report.findings if f.fix is not None and f.fix.applicability is Applicability.UNSAFE]
    if printing.unsafe_fixes or not unsafe:
        return ""
    within = given.may_write()
    more = sum(files_of(repair, report.cells) <= within for repair in unsafe)
    return f"; {more} more with --unsafe-fixes" if more else ""


def _input(paths: tuple[str, ...], options: CheckOptions) -> Input:
    given = inputs.take(paths, options.settings, options.stdin_filename, quiet=options.printing.quiet)
    if options.prune_baseline and given.effective.baseline is None:
        raise click.UsageError("--prune-baseline needs a baseline: --baseline FILE, or the key in the configuration")
    known, report = given.effective.baseline, options.printing.output_file
    if known is not None and report is not None and os.path.realpath(known) == os.path.realpath(report):
        raise click.UsageError(f"{report} is the baseline of this run: write the report to another file")
    options.printing.warn(given.opened.warnings)
    if not given.effective.selection.shows_any(rules.codes()):
        options.printing.warn(["no rule is selected, so nothing is looked for"])
    return given


def _tell(report: Report, given: Input, options: CheckOptions, fixed: int = 0) -> None:
    """Print what a run found, after so many repairs, and what of the baseline has gone."""
    given.opened.cache.close()
    within = given.may_write() if any(finding.fix is not None for finding in report.findings) else None
    options.printing.report(report, given.opened.cache, fixed, within)
    baselines.tell(report, given.effective, prune=options.prune_baseline, quiet=options.printing.quiet)


def _unwritten(
    given: Input, changes: Sequence[Changed], stdin: bytes, what: str, homes: Iterable[frozenset[str]] = ()
) -> frozenset[str]:
    """Put changed texts where they belong; gives the files that could not be written.

    ``homes`` are the files that have to be written together.
    """
    from cudalint.fixing.write import clear_leftovers, write_together

    if given.is_stdin:
        streams.put_bytes(stdin)
        return frozenset()
    clear_leftovers(os.path.dirname(os.path.realpath(path)) for path in given.files())
    refused = write_together(changes, homes)
    for path, refusal in refused.items():
        streams.say(f"cudalint: error: {path} is not {what}: {refusal}")
    return frozenset(refused)


def _exit_code(report: Report, effective: Config, options: CheckOptions) -> Exit:
    if any(finding.code == INTERNAL_ERROR for finding in report.findings):
        return Exit.FAILED
    counting = (finding for finding in report.findings if finding.severity.rank >= effective.fail_on.rank)
    return Exit.FINDINGS if any(counting) and not options.exit_zero else Exit.CLEAN
