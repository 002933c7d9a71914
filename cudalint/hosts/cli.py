"""The command line. Exit codes: 0 clean, 1 findings, 2 cudalint could not do its work."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

from cudalint import __version__, config, proof, rules
from cudalint.config import ConfigError
from cudalint.discovery import NotFound
from cudalint.hosts import caching, checks, settings, streams
from cudalint.hosts.checks import Exit, require
from cudalint.report.plain import plain
from cudalint.report.render import OutputFormat
from cudalint.session import Session
from cudalint.store import clear

if TYPE_CHECKING:
    from cudalint.verify import Program

# Within so many seconds after an interruption everything has ended.
_CLEARING_UP_SECONDS = 5.0
_FORMATS = tuple(output_format.value for output_format in OutputFormat)


class _Group(click.Group):
    """A group that names the nearest command for an unknown one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            raise click.UsageError(f"unknown command {name!r}{config.nearest(name, self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run cudalint and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    _accept_any_text()
    if not _has_folder():
        return _fail("the current folder does not exist any more")
    try:
        result: object = (
            _run_verify(given[1:])
            if given[:1] == ["--verify"]
            else cli.main(given, prog_name="cudalint", standalone_mode=False)
        )
        streams.put("")
    except (ConfigError, click.ClickException) as error:
        return _fail(_describe(error))
    except NotFound as error:
        return _fail(f"no such file or directory: {error}")
    except (click.Abort, KeyboardInterrupt):
        return _fail("interrupted")
    except (BrokenPipeError, SystemExit):
        # The reader of a page, or of a long run, has gone; SystemExit is what click makes of it.
        streams.let_go(sys.stdout)
        return Exit.FAILED if given[:1] == ["--verify"] else Exit.CLEAN
    except Exception as error:
        if "--verbose" in given or "-v" in given:
            import traceback

            traceback.print_exc()
        return _fail(f"internal error: {type(error).__name__}: {error}")
    return result if isinstance(result, int) else Exit.CLEAN


def _has_folder() -> bool:
    try:
        os.getcwd()
    except OSError:
        return False
    return True


def _run_verify(given: Sequence[str]) -> object:
    """``--verify``: what follows ``--`` belongs to the program that is run."""
    own, rest = list(given), None
    if "--" in own:
        own, rest = own[: own.index("--")], tuple(own[own.index("--") + 1 :])
    with _ended_as_interrupted():
        try:
            return verify.main(own, prog_name="cudalint --verify", standalone_mode=False, obj=rest)
        except click.NoSuchOption as error:
            hint = " (options of your own program follow --)" if rest is None else ""
            raise ConfigError(f"{_describe(error)}{hint}") from None


@contextlib.contextmanager
def _ended_as_interrupted() -> Iterator[None]:
    """Who is told to end, by a time limit or a scheduler, still ends its programs and says what is known.

    ``timeout`` and terminals may say it twice; the second one must not interrupt the clearing up.
    """
    heard: list[float] = []

    def told(_number: int, _frame: object) -> None:
        now = time.monotonic()
        if heard and now - heard[0] < _CLEARING_UP_SECONDS:
            return
        heard[:] = [now]
        raise KeyboardInterrupt

    ours = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
    before = {number: signal.getsignal(number) for number in ours}
    before = {number: handler for number, handler in before.items() if handler not in (None, signal.SIG_IGN)}
    try:
        for number in before:
            signal.signal(number, told)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _misplaced(_context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        raise click.UsageError("--verify comes first: cudalint --verify [OPTIONS] [PATHS]")


@click.group(cls=_Group, no_args_is_help=False, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="cudalint", message="%(prog)s %(version)s")
@click.option(
    "--verify",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_misplaced,
    help="Run programs on this machine's GPUs and confirm or refute what is predicted: cudalint --verify --help.",
)
def cli() -> None:
    """Find where CUDA and processes collide in Python programs, before anything runs."""


@cli.command()
@click.argument("paths", nargs=-1)
@click.option("--select", multiple=True, metavar="CODES", help="Rules to show: codes or prefixes, comma-separated.")
@click.option("--extend-select", multiple=True, metavar="CODES", help="Rules to show besides the selected ones.")
@click.option("--ignore", multiple=True, metavar="CODES", help="Rules to hide.")
@click.option("--per-file-ignores", multiple=True, metavar="PATTERN:CODE", help="Rules to hide in some files.")
@click.option("--exclude", multiple=True, metavar="PATTERNS", help="What not to read, instead of the defaults.")
@click.option("--extend-exclude", multiple=True, metavar="PATTERNS", help="What not to read besides.")
@click.option("--force-exclude/--no-force-exclude", default=None, help="Leave out what is excluded also where named.")
@click.option("--config", "config_file", metavar="FILE", help="Read the settings from this TOML file instead.")
@click.option("--isolated", is_flag=True, help="Read no settings.")
@click.option("--target-version", metavar="VERSION", help="Python the program runs on: py312, 3.12 or 3.10-3.13.")
@click.option("--platform", metavar="PLATFORM", help="linux, darwin or win32.")
@click.option("--fail-on", metavar="SEVERITY", help="Least severity that makes the exit code 1: note, warning, error.")
@click.option("--output-format", metavar="FORMAT", default="full", help=", ".join(_FORMATS) + ".")
@click.option("-o", "--output-file", metavar="FILE", help="Write the report there instead of standard output.")
@click.option("-q", "--quiet", is_flag=True, help="Print findings and errors, and nothing else.")
@click.option("--show-files", is_flag=True, help="List the files that would be checked.")
@click.option("--stdin-filename", metavar="PATH", help="Name of the file that is read from standard input.")
@click.option("--statistics", is_flag=True, help="Count the findings of each rule instead of listing them.")
@click.option("--exit-zero", is_flag=True, help="Exit with 0 also when there are findings.")
@click.option("--fix", is_flag=True, help="Repair what is safe to repair, and report the rest.")
@click.option("--unsafe-fixes", is_flag=True, help="Count repairs that are not proven safe among those to make.")
@click.option("--diff", is_flag=True, help="Print the repairs as a patch instead of making them.")
@click.option("--fix-only", is_flag=True, help="Repair, and report nothing of the rest.")
@click.option("-v", "--verbose", is_flag=True, help="Say what was read and parsed, and print internal errors.")
@click.option("--jobs", type=int, hidden=True, expose_value=False)
@click.option("--cache-dir", metavar="DIR", help="Folder of the cache (default: .cudalint_cache in the project).")
@click.option("--no-cache", is_flag=True, help="Neither read nor write the cache.")
def check(
    paths: tuple[str, ...],
    select: tuple[str, ...],
    extend_select: tuple[str, ...],
    ignore: tuple[str, ...],
    per_file_ignores: tuple[str, ...],
    exclude: tuple[str, ...],
    extend_exclude: tuple[str, ...],
    force_exclude: bool | None,
    config_file: str | None,
    isolated: bool,
    target_version: str | None,
    platform: str | None,
    fail_on: str | None,
    output_format: str,
    output_file: str | None,
    quiet: bool,
    show_files: bool,
    stdin_filename: str | None,
    statistics: bool,
    exit_zero: bool,
    fix: bool,
    unsafe_fixes: bool,
    diff: bool,
    fix_only: bool,
    verbose: bool,
    cache_dir: str | None,
    no_cache: bool,
) -> int:
    """Check files and directories (default: the current one); - reads standard input."""
    options = checks.CheckOptions(
        select=_split(select),
        extend_select=_split(extend_select),
        ignore=_split(ignore),
        target_version=target_version,
        platform=platform,
        fail_on=fail_on,
        output_format=_output_format(output_format, _FORMATS),
        stdin_filename=stdin_filename,
        statistics=statistics,
        exit_zero=exit_zero,
        unsafe_fixes=unsafe_fixes,
        verbose=verbose,
        cache_dir=cache_dir,
        no_cache=no_cache,
        per_file_ignores=_split(per_file_ignores),
        exclude=_split(exclude),
        extend_exclude=_split(extend_exclude),
        force_exclude=force_exclude,
        output_file=output_file,
        quiet=quiet,
        config_file=config_file,
        isolated=isolated,
    )
    if isolated and config_file is not None:
        raise click.UsageError("--config names settings and --isolated forbids them: leave out one")
    if show_files:
        return checks.show_files(paths, options)
    if diff:
        return checks.show_patch(paths, options)
    if fix or fix_only:
        return checks.fix(paths, options, quiet=fix_only)
    return checks.check(paths, options)


@cli.command()
@click.argument("code", required=False)
@click.option("--all", "every", is_flag=True, help="Print all rules.")
@click.option("--output-format", metavar="FORMAT", default="text", help="text or json.")
def rule(code: str | None, every: bool, output_format: str) -> int:
    """Print the page of a rule."""
    if output_format not in ("text", "json"):
        hint = config.nearest(output_format, ("text", "json"))
        raise ConfigError(f"unknown output format {output_format!r}: expected text or json{hint}")
    if every == (code is not None):
        raise click.UsageError("name one rule, or --all")
    codes = rules.codes() if code is None else (_known_rule(code),)
    if output_format == "text":
        streams.put("\n\n".join(f"{rules.page(known)}\n\n{proof.section(known)}".rstrip() for known in codes) + "\n")
        return Exit.CLEAN
    import json

    described = [_described(known) for known in codes]
    streams.put(json.dumps(described if every else described[0], indent=2, ensure_ascii=False) + "\n")
    return Exit.CLEAN


@cli.command()
@click.argument("place", metavar="FILE:LINE")
@click.option("--functions", is_flag=True, help="Say what each function does instead, of a file or folder.")
def explain(place: str, functions: bool) -> int:
    """Say what is believed about the processes at a line."""
    if functions:
        told = _session((place,)).functions((place,))
        _tell(told, place)
        return Exit.CLEAN
    filename, _, row = place.rpartition(":")
    if not filename or not row.isdecimal() or int(row) < 1:
        raise click.UsageError(f"expected FILE:LINE, not {place!r}")
    lines = _session((filename,)).explain(filename, int(row))
    _tell(lines, place)
    return Exit.CLEAN


def _tell(lines: Iterable[str], place: str) -> None:
    rows = tuple(lines) or (f"{place}: nothing is known to happen to CUDA or processes here",)
    streams.put("".join(f"{plain(row)}\n" for row in rows))


def _session(paths: tuple[str, ...]) -> Session:
    found = config.load(paths)
    return Session(found, caching.opened(found).store)


@cli.command()
@click.argument("paths", nargs=-1)
@click.option("--cache-dir", metavar="DIR", help="Folder of the cache (default: .cudalint_cache in the project).")
def clean(paths: tuple[str, ...], cache_dir: str | None) -> int:
    """Remove what is kept between runs over PATHS (default: the current directory)."""
    require(paths)
    folder = caching.folder(config.load(paths), cache_dir)
    count = clear(folder)
    streams.say(f"Removed {count} {'entry' if count == 1 else 'entries'} from {folder}.")
    return Exit.CLEAN


@dataclasses.dataclass(frozen=True, slots=True)
class _VerifyOptions:
    """What ``--verify`` does with whatever it runs."""

    output_format: str
    gpus: int | None
    limit: float | None
    limit_scale: float
    evidence: str | None
    select: tuple[str, ...]
    paper: bool
    fixed: bool
    fixes: bool

    def refuse(self, names: Iterable[str], why: str) -> None:
        """Options that would change nothing are no options."""
        given = {
            "--evidence": self.evidence is not None,
            "--select": bool(self.select),
            "--gpus": self.gpus is not None,
            "--limit": self.limit is not None,
            "--limit-scale": self.limit_scale != 1.0,
            "--no-fixed": not self.fixed,
            "--fixes": self.fixes,
        }
        for name in names:
            if given[name]:
                raise click.UsageError(f"{name} {why}")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("paths", nargs=-1)
@click.option("-m", "module", metavar="MODULE", help="Run a module of your own, as python -m does.")
@click.option("--models", is_flag=True, help="Measure again what the models rest on: all, or where PATHS match.")
@click.option("--paper", is_flag=True, help="Run on stub frameworks that end as measured, without a GPU: no evidence.")
@click.option("--fixed/--no-fixed", default=True, help="Also run what the repairs make of broken fixtures.")
@click.option("--fixes", is_flag=True, help="Run programs of your own as they are and as each repair leaves them.")
@click.option("--output-format", metavar="FORMAT", default="table", help="table, json, junit or markdown.")
@click.option("--evidence", metavar="DIR", help="Keep the results there, in one file per machine and versions.")
@click.option("--gpus", metavar="N", type=click.IntRange(min=1), help="Use at most so many GPUs.")
@click.option("--limit", metavar="SECONDS", type=float, help="End your own program after so long, as a hang.")
@click.option("--limit-scale", metavar="X", type=float, default=1.0, help="Multiply the time limits of all fixtures.")
@click.option("--select", multiple=True, metavar="CODES", help="Rules whose fixtures to run, comma-separated.")
@click.pass_context
def verify(
    context: click.Context,
    paths: tuple[str, ...],
    module: str | None,
    models: bool,
    paper: bool,
    fixed: bool,
    fixes: bool,
    output_format: str,
    evidence: str | None,
    gpus: int | None,
    limit: float | None,
    limit_scale: float,
    select: tuple[str, ...],
) -> int:
    """Run programs on the GPUs of this machine and compare with what is predicted.

    PATHS are fixtures, programs with a header that says how they end, and folders of them (default: those that come
    with cudalint). Or a program of your own: train.py -- ARGS, or -m package.module -- ARGS; with --fixes several.

    Exits with 0 if everything that could run was confirmed, 1 after a refutation, 2 if nothing could run.
    """
    from cudalint import verify as verification

    for name, value in (("--limit-scale", limit_scale), ("--limit", limit)):
        if value is not None and not value > 0:
            raise click.BadParameter("must be greater than 0", param_hint=name)
    if paper and evidence is not None:
        raise click.UsageError("what runs on paper is no evidence: leave out --evidence or --paper")
    known = [known_format.value for known_format in verification.Format]
    if output_format not in known:
        hint = config.nearest(output_format, known)
        raise ConfigError(f"unknown output format {output_format!r}: expected one of {', '.join(known)}{hint}")
    options = _VerifyOptions(output_format, gpus, limit, limit_scale, evidence, _split(select), paper, fixed, fixes)
    arguments: tuple[str, ...] | None = context.obj
    if models:
        return _verify_models(paths, module, arguments, options)
    if module is None:
        require(paths)
    try:
        if fixes:
            return _verify_repairs(_own_programs(paths, module, arguments), options)
        program = _own_program(paths, module, arguments)
        return _verify_fixtures(paths, options) if program is None else _verify_program(program, options)
    except (verification.EvidenceError, verification.HeaderError, verification.Target) as error:
        raise ConfigError(str(error)) from None


def _own_program(paths: tuple[str, ...], module: str | None, arguments: tuple[str, ...] | None) -> Program | None:
    """The user's own program, if the command line names one: a module, or one file that is no fixture."""
    from cudalint import verify as verification

    if module is not None:
        if paths:
            raise click.UsageError(f"-m {module} and {paths[0]}: name one program; its arguments follow --")
        return verification.module(module, arguments or ())
    is_own = len(paths) == 1 and os.path.isfile(paths[0]) and not verification.has_header(paths[0])
    if not is_own and arguments is not None:
        raise click.UsageError("arguments after -- are for one program of your own")
    return verification.script(paths[0], arguments or ()) if is_own else None


def _own_programs(paths: tuple[str, ...], module: str | None, arguments: tuple[str, ...] | None) -> tuple[Program, ...]:
    """The user's own programs that ``--fixes`` runs: files that are no fixtures, or one module."""
    from cudalint import verify as verification

    if not paths and module is None:
        raise click.UsageError("--fixes runs programs of your own: name one or more")
    for path in paths:
        if os.path.isdir(path):
            raise click.UsageError(f"--fixes runs programs of your own: {path} is a folder")
        if verification.has_header(path):
            raise click.UsageError(
                f"--fixes is for programs of your own: {path} is a fixture, which runs repaired anyway"
            )
    program = _own_program(paths, module, arguments) if len(paths) < 2 or module is not None else None
    if program is None and arguments is not None:
        raise click.UsageError("arguments after -- are for one program of your own")
    return tuple(verification.script(path, ()) for path in paths) if program is None else (program,)


def _refuse_what_is_for_fixtures(options: _VerifyOptions, own: str) -> None:
    names = ("--evidence", "--select", "--limit-scale", "--no-fixed")
    options.refuse(names, f"is for fixtures, not for {own}")
    if not options.paper:
        options.refuse(("--gpus",), "is for fixtures; CUDA_VISIBLE_DEVICES tells your own program which GPUs it has")


def _verify_repairs(programs: tuple[Program, ...], options: _VerifyOptions) -> int:
    from cudalint import verify as verification

    _refuse_what_is_for_fixtures(options, "--fixes")
    return verification.verify_repairs(
        programs,
        output_format=verification.Format(options.output_format),
        seconds=options.limit,
        gpu_count=options.gpus,
        on_paper=options.paper,
    )


def _verify_program(program: Program, options: _VerifyOptions) -> int:
    from cudalint import verify as verification

    _refuse_what_is_for_fixtures(options, "a program of your own")
    return verification.verify_program(
        program,
        output_format=verification.Format(options.output_format),
        seconds=options.limit,
        gpu_count=options.gpus,
        on_paper=options.paper,
    )


def _verify_models(
    words: tuple[str, ...], module: str | None, arguments: tuple[str, ...] | None, options: _VerifyOptions
) -> int:
    from cudalint import verify as verification

    if module is not None or arguments is not None:
        raise click.UsageError("--models measures expressions: -m and -- are for programs")
    names = ("--evidence", "--select", "--limit", "--limit-scale", "--no-fixed", "--fixes")
    options.refuse(names, "is for programs; --models measures expressions")
    unknown = verification.unknown_expression(words)
    if unknown is not None:
        known = verification.framework_names()
        hint = config.nearest(unknown, known)
        raise ConfigError(f"{unknown!r} is no framework ({', '.join(known)}) and stands in no expression{hint}")
    return verification.verify_models(
        words,
        output_format=verification.Format(options.output_format),
        gpu_count=options.gpus,
        on_paper=options.paper,
    )


def _verify_fixtures(paths: tuple[str, ...], options: _VerifyOptions) -> int:
    from cudalint import verify as verification

    options.refuse(("--limit",), "is for a program of your own; --limit-scale stretches the limits of fixtures")
    return verification.verify(
        paths,
        output_format=verification.Format(options.output_format),
        evidence_folder=options.evidence,
        gpu_count=options.gpus,
        limit_scale=options.limit_scale,
        select=config.parse_selectors("--select", options.select),
        on_paper=options.paper,
        repairs=options.fixed,
    )


@cli.command(name="config")
@click.argument("paths", nargs=-1)
def show_config(paths: tuple[str, ...]) -> int:
    """Show the configuration that a check of the same paths uses."""
    require(paths)
    streams.put("".join(f"{plain(line)}\n" for line in settings.lines(config.load(paths))))
    return Exit.CLEAN


def _known_rule(code: str) -> str:
    known = code.upper()
    if known not in rules.codes():
        raise ConfigError(f"unknown rule {code!r}{config.nearest(known, rules.codes())}")
    return known


def _described(code: str) -> dict[str, object]:
    known = rules.rule(code)
    return {
        "code": known.code,
        "name": known.name,
        "severity": known.severity.value,
        "summary": known.summary,
        "explanation": rules.page(code),
        "evidence": [dataclasses.asdict(known_proof) for known_proof in proof.proofs(code)],
    }


def _split(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(part for value in values for part in value.split(","))


def _output_format(text: str, known: Sequence[str]) -> OutputFormat:
    if text not in known:
        hint = config.nearest(text, known)
        raise ConfigError(f"unknown output format {text!r}: expected one of {', '.join(known)}{hint}")
    return OutputFormat(text)


def _accept_any_text() -> None:
    """Print what the terminal's encoding lacks as escapes instead of failing; where nothing is open, to nobody."""
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _describe(error: Exception) -> str:
    if isinstance(error, click.NoSuchOption):
        known = error.possibilities or _options_of(error.ctx)
        return f"unknown option {error.option_name}{config.nearest(error.option_name, known)}"
    if isinstance(error, click.ClickException):
        message = error.format_message().rstrip(".")
        return message[:1].lower() + message[1:]
    return str(error)


def _options_of(context: click.Context | None) -> list[str]:
    if context is None:
        return []
    return [name for parameter in context.command.params for name in parameter.opts if name.startswith("--")]


def _fail(message: str) -> Exit:
    streams.say(f"cudalint: error: {' '.join(message.split())}")
    return Exit.FAILED
