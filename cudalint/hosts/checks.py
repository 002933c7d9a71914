"""What ``cudalint check`` does: it checks or repairs, prints what is left, and says by its exit code how it went."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TYPE_CHECKING

import click

from cudalint import config, rules
from cudalint.config import Config, ConfigError, Given
from cudalint.discovery import NotFound, exists, leaves_out
from cudalint.finding import Applicability
from cudalint.hosts import baselines, caching, streams
from cudalint.hosts.caching import Cache
from cudalint.hosts.progress import Progress
from cudalint.intake import INTERNAL_ERROR
from cudalint.policy.baseline import Baseline
from cudalint.policy.selection import Layer
from cudalint.report.plain import plain
from cudalint.report.render import OutputFormat, Style, render
from cudalint.session import Report, Session

if TYPE_CHECKING:
    from cudalint.fixing.rounds import Changed, Fixed
    from cudalint.fixing.silence import Silenced

STDIN = "-"


class Exit(IntEnum):
    """What the exit code says."""

    CLEAN = 0
    FINDINGS = 1
    FAILED = 2


class Color(Enum):
    """When a report is coloured."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """The options of ``check`` as they were given; ``None`` and empty mean that the configuration decides."""

    select: tuple[str, ...]
    extend_select: tuple[str, ...]
    ignore: tuple[str, ...]
    target_version: str | None
    platform: str | None
    fail_on: str | None
    output_format: OutputFormat
    stdin_filename: str | None
    statistics: bool
    exit_zero: bool
    unsafe_fixes: bool
    verbose: bool
    cache_dir: str | None = None
    no_cache: bool = False
    exclude: tuple[str, ...] = ()
    extend_exclude: tuple[str, ...] = ()
    force_exclude: bool | None = None
    per_file_ignores: tuple[str, ...] = ()
    output_file: str | None = None
    quiet: bool = False
    config_file: str | None = None
    isolated: bool = False
    baseline: str | None = None
    prune_baseline: bool = False
    since: str | None = None
    color: Color = Color.AUTO
    exit_non_zero_on_fix: bool = False
    jobs: int | None = None

    def configuration(self, paths: Iterable[str]) -> Config:
        """What holds for some paths: the file's settings with these options on top."""
        return _with_options(config.load(paths, self.config_file, isolated=self.isolated), self)


@dataclass(frozen=True, slots=True)
class _Input:
    """What a run is about, and its configuration: paths, or the bytes of standard input under a name."""

    named: tuple[str, ...]
    effective: Config
    data: bytes | None
    cache: Cache
    before: Baseline | None = None
    is_quiet: bool = False

    @property
    def is_stdin(self) -> bool:
        return self.data is not None

    def check(self, repair: bool) -> Report:
        session = self._session()
        if self._is_left_out():
            return Report()
        with self._progress("checking"):
            if self.data is not None:
                return session.check_alone(self.named[0], self.data, repair=repair)
            return session.check(self.named, repair=repair)

    def _progress(self, doing: str) -> Progress:
        return Progress(sys.stderr, doing, wanted=not self.is_quiet)

    def _is_left_out(self) -> bool:
        """Whether standard input stands for a file that is not to be read."""
        return self.is_stdin and leaves_out(self.effective.exclusion, self.named[0], self.effective.root)

    def files(self) -> tuple[str, ...]:
        """The files on the disk that the run is about."""
        return () if self.is_stdin else self._session().selected(self.named)

    def _session(self) -> Session:
        return Session(self.effective, self.cache.store, self.before)

    def repaired(self, unsafe: bool) -> Fixed:
        """All repairs that the options admit, made in memory."""
        from cudalint.fixing.rounds import Fixed, fix, fix_text

        session = self._session()
        if self._is_left_out():
            return Fixed((), 0, Report(), stdin=self.data or b"")
        with self._progress("repairing"):
            if self.data is not None:
                return fix_text(session, self.named[0], self.data, unsafe=unsafe)
            return fix(session, self.named, unsafe=unsafe)

    def silenced(self, reason: str) -> Silenced:
        """Comments for all findings, made in memory."""
        from cudalint.fixing.silence import Silenced, silence, silence_text

        session = self._session()
        if self._is_left_out():
            return Silenced((), 0)
        with self._progress("checking"):
            if self.data is not None:
                return silence_text(session, self.named[0], self.data, reason)
            return silence(session, self.named, reason)


def _input(paths: tuple[str, ...], options: CheckOptions) -> _Input:
    given = _unwarned_input(paths, options)
    if options.prune_baseline and given.effective.baseline is None:
        raise click.UsageError("--prune-baseline needs a baseline: --baseline FILE, or the key in the configuration")
    if not options.quiet and not given.effective.selection.shows_any(rules.codes()):
        streams.say("cudalint: warning: no rule is selected, so nothing is looked for")
    return given


def _unwarned_input(paths: tuple[str, ...], options: CheckOptions) -> _Input:
    if _from_stdin(paths, options):
        filename = options.stdin_filename or STDIN
        effective = options.configuration((filename,))
        return _Input((filename,), effective, streams.read_input(), Cache(), is_quiet=options.quiet)
    named = paths or (".",)
    require(named)
    effective = options.configuration(named)
    cache = caching.opened(effective, options.cache_dir, wanted=not options.no_cache)
    return _Input(named, effective, None, cache, _before(named, effective, cache, options), options.quiet)


def _before(named: tuple[str, ...], effective: Config, cache: Cache, options: CheckOptions) -> Baseline | None:
    """What a git revision had already."""
    if options.since is None:
        return None
    from cudalint.history.since import before

    with Progress(sys.stderr, f"checking {options.since}", wanted=not options.quiet):
        found = before(effective, cache.store, options.since, named)
    _warn(found.warnings, options)
    return found.known


def _from_stdin(paths: tuple[str, ...], options: CheckOptions) -> bool:
    wanted = STDIN in paths or (options.stdin_filename is not None and not paths)
    if wanted and options.since is not None:
        raise click.UsageError("--since compares files of a project: standard input is none of them")
    if wanted and len(paths) > 1:
        raise click.UsageError("standard input (-) is checked alone, not together with other paths")
    return wanted


def _with_options(found: Config, options: CheckOptions) -> Config:
    """The configuration with the command line on top."""
    layer = Layer(
        select=_selected(options.select),
        extend_select=config.parse_selectors("--extend-select", options.extend_select),
        ignore=config.parse_selectors("--ignore", options.ignore),
    )
    given = Given(
        layer,
        _ignores(options.per_file_ignores),
        config.parse_patterns("--exclude", map(_anchored, options.exclude)),
        config.parse_patterns("--extend-exclude", map(_anchored, options.extend_exclude)),
    )
    found = config.on_target(config.on_top(found, given), options.target_version, options.platform)
    fail_on = options.fail_on
    return dataclasses.replace(
        found,
        fail_on=found.fail_on if fail_on is None else config.parse_severity(fail_on),
        force_exclude=found.force_exclude if options.force_exclude is None else options.force_exclude,
        baseline=_baseline(found, options),
        jobs=options.jobs,
    )


def _baseline(found: Config, options: CheckOptions) -> str | None:
    """The file of known findings; an empty name means none, whatever the configuration says."""
    if options.baseline is None:
        return found.baseline
    return os.path.abspath(options.baseline) if options.baseline else None


def _ignores(pairs: Iterable[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """``PATTERN:CODE`` as many times as there are codes."""
    found = []
    for pair in pairs:
        pattern, _, code = pair.rpartition(":")
        if not pattern.strip():
            raise ConfigError(f"--per-file-ignores: expected PATTERN:CODE, not {pair!r}")
        (pattern,) = config.parse_patterns("--per-file-ignores", [_anchored(pattern.strip())])
        found.append((pattern, config.parse_selectors("--per-file-ignores", [code])))
    return tuple(found)


def _anchored(pattern: str) -> str:
    """A pattern of the command line: one with a slash counts from the current folder."""
    return os.path.join(os.getcwd(), pattern.removeprefix("./")) if "/" in pattern.rstrip("/") else pattern


def _selected(codes: tuple[str, ...]) -> tuple[str, ...] | None:
    if not codes:
        return None
    selected = config.parse_selectors("--select", codes)
    if not selected:
        raise ConfigError("--select names no rule")
    return selected


def require(paths: Iterable[str]) -> None:
    """A path that does not exist is said before anything is read, whatever the configuration says."""
    for path in paths:
        if not exists(path):
            raise NotFound(path)


def check(paths: tuple[str, ...], options: CheckOptions) -> int:
    """Report what is found."""
    given = _input(paths, options)
    report = given.check(repair=not options.statistics and options.output_format.shows_repairs)
    given.cache.close()
    _print_report(report, options, given.cache)
    baselines.tell(report, given.effective, prune=options.prune_baseline, quiet=options.quiet)
    return _exit_code(report, given.effective, options)


def write_baseline(paths: tuple[str, ...], options: CheckOptions, file: str) -> int:
    """Accept all that is found: keep it in a file, instead of reporting it."""
    given = _input(paths, dataclasses.replace(options, baseline=""))
    if given.is_stdin:
        raise click.UsageError("standard input is not part of a project, so it has no baseline")
    report = given.check(repair=False)
    given.cache.close()
    if any(finding.code == INTERNAL_ERROR for finding in report.findings):
        _print_report(report, options, given.cache)
        return Exit.FAILED
    _warn(report.warnings, options)
    _tell(baselines.write(file, report, given.files(), given.effective.selection), options)
    return Exit.CLEAN


def show_files(paths: tuple[str, ...], options: CheckOptions) -> int:
    """List the files that a check of the same paths is about."""
    named = paths or (".",)
    require(named)
    found = Session(options.configuration(named)).selected(named)
    _put("".join(f"{plain(path)}\n" for path in found), options)
    return Exit.CLEAN


def fix(paths: tuple[str, ...], options: CheckOptions, *, quiet: bool) -> int:
    """Write the repairs, and report what is left. Repaired standard input goes to standard output."""
    given = _input(paths, options)
    fixed = given.repaired(options.unsafe_fixes)
    failed = not _written(given, fixed.changes, fixed.stdin, "repaired")
    _warn(fixed.notes, options)
    if quiet:
        _tell(f"Made {fixed.count} repair{'' if fixed.count == 1 else 's'}.", options)
        return Exit.FAILED if failed else _after(fixed, Exit.CLEAN, options)
    # What was not written is still wrong: say what the files are like now.
    report = given.check(repair=True) if failed else fixed.report
    given.cache.close()
    if not given.is_stdin:
        _print_report(report, options, given.cache, fixed=0 if failed else fixed.count)
        baselines.tell(report, given.effective, prune=options.prune_baseline, quiet=options.quiet)
    return Exit.FAILED if failed else _after(fixed, _exit_code(report, given.effective, options), options)


def _after(fixed: Fixed, code: Exit, options: CheckOptions) -> Exit:
    """The exit code of a run that repaired: what it changed may be meant to count like a finding."""
    return Exit.FINDINGS if options.exit_non_zero_on_fix and fixed.changes and code is Exit.CLEAN else code


def add_noqa(paths: tuple[str, ...], options: CheckOptions, reason: str) -> int:
    """Silence all that is found by comments, and say what is left. Standard input goes to standard output."""
    from cudalint.fixing.silence import BadReason

    given = _input(paths, options)
    try:
        silenced = given.silenced(reason)
    except BadReason as error:
        raise click.UsageError(f"--add-noqa: {error}") from None
    given.cache.close()
    after = next((change.after for change in silenced.changes), given.data or b"")
    complete = _written(given, silenced.changes, after, "changed")
    for left in silenced.left:
        place = f"{left.finding.span.filename}:{left.finding.span.start.row}: {left.finding.code}"
        _tell(f"cudalint: warning: {place} is left: {left.reason}", options)
    _tell(f"Silenced {silenced.count} finding{'' if silenced.count == 1 else 's'}.", options)
    left_over = Report(findings=tuple(left.finding for left in silenced.left))
    return _exit_code(left_over, given.effective, options) if complete else Exit.FAILED


def _written(given: _Input, changes: Iterable[Changed], stdin: bytes, what: str) -> bool:
    """Put changed texts where they belong; whether all of them are there."""
    from cudalint.fixing.write import Refused, clear_leftovers, write

    if given.is_stdin:
        streams.put_bytes(stdin)
        return True
    clear_leftovers(os.path.dirname(os.path.realpath(path)) for path in given.files())
    complete = True
    for change in changes:
        try:
            write(change)
        except Refused as refusal:
            complete = False
            streams.say(f"cudalint: error: {change.path} is not {what}: {refusal}")
    return complete


def show_patch(paths: tuple[str, ...], options: CheckOptions) -> int:
    """Print what ``--fix`` would do; 1 where it would do something."""
    from cudalint.report import patch

    given = _input(paths, options)
    fixed = given.repaired(options.unsafe_fixes)
    given.cache.close()
    _warn(fixed.notes, options)
    is_shown = options.output_file is None and sys.stdout.isatty()
    here = os.getcwd()
    top = patch.folder(fixed.changes, here, given.effective.root)
    shown = patch.render(fixed.changes, top, colour=_wants_colour(options), is_shown=is_shown)
    in_log = options.output_file is None and os.environ.get("GITHUB_ACTIONS") == "true"
    _put(patch.between_tokens(shown) if in_log else shown, options)
    made = f"Would make {fixed.count} repair{'' if fixed.count == 1 else 's'}"
    _tell(f"{made}{_reserved(fixed.report, options)}.", options)
    if top != here:
        _tell(f"The names in the patch count from {top}: git apply, or patch -p1, there.", options)
    return Exit.FINDINGS if fixed.changes and not options.exit_zero else Exit.CLEAN


def _reserved(report: Report, options: CheckOptions) -> str:
    """What else could be repaired with ``--unsafe-fixes``."""
    more = sum(f.fix is not None and f.fix.applicability is Applicability.UNSAFE for f in report.findings)
    return "" if options.unsafe_fixes or not more else f"; {more} more with --unsafe-fixes"


def _print_report(report: Report, options: CheckOptions, cache: Cache, fixed: int = 0) -> None:
    unsafe, quiet = options.unsafe_fixes, options.quiet
    style = Style(_wants_colour(options), os.getcwd(), unsafe_fixes=unsafe, fixed=fixed, quiet=quiet)
    if options.statistics:
        from cudalint.report import statistics

        wants_json = options.output_format is OutputFormat.JSON
        _put(statistics.as_json(report) if wants_json else statistics.as_text(report), options)
    else:
        _put(render(report, options.output_format, style), options)
    if options.verbose:
        _print_effort(report, cache)
    else:
        _warn(report.warnings, options)


def _put(text: str, options: CheckOptions) -> None:
    """Write the result where it is wanted."""
    if options.output_file is None:
        streams.put(text)
    else:
        streams.save(options.output_file, text)


def _warn(notes: Iterable[str], options: CheckOptions) -> None:
    for note in notes:
        _tell(f"cudalint: warning: {note}", options)


def _tell(text: str, options: CheckOptions) -> None:
    if not options.quiet:
        streams.say(text)


def _print_effort(report: Report, cache: Cache) -> None:
    for note in (*report.warnings, *report.notes):
        streams.say(f"cudalint: {note}")
    for failure in report.failures:
        for row in f"cudalint: {failure}".splitlines():
            streams.say(row)
    if cache.problem is not None:
        streams.say(f"cudalint: {cache.problem}")
    effort = report.effort
    streams.say(
        f"cudalint: read {effort.files_read:,} files ({effort.bytes_read:,} bytes), "
        f"parsed {effort.files_parsed:,} ({effort.bytes_parsed:,} bytes), "
        f"lowered {effort.nodes_lowered:,} nodes, "
        f"entered {effort.functions:,} functions, ran {effort.entries:,} entries, {effort.cut:,} cut"
    )


def _exit_code(report: Report, effective: Config, options: CheckOptions) -> Exit:
    if any(finding.code == INTERNAL_ERROR for finding in report.findings):
        return Exit.FAILED
    counting = (finding for finding in report.findings if finding.severity.rank >= effective.fail_on.rank)
    return Exit.FINDINGS if any(counting) and not options.exit_zero else Exit.CLEAN


def _wants_colour(options: CheckOptions) -> bool:
    return wants_colour(options.color, options.output_file)


def wants_colour(color: Color, output_file: str | None) -> bool:
    """Whether to write in colour: as the option says, then by where the output goes and the environment."""
    if color is not Color.AUTO:
        return color is Color.ALWAYS
    return output_file is None and streams.takes_colour()
