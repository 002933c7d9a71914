"""``cudalint --verify``: programs are run on this machine's GPUs."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

from cudalint import config
from cudalint.config import ConfigError
from cudalint.discovery import NotFound
from cudalint.hosts.commands.own_programs import own_program, own_programs
from cudalint.hosts.commands.words import require_format, split
from cudalint.hosts.inputs import require
from cudalint.hosts.usage import describe
from cudalint.structs import Frozen

if TYPE_CHECKING:
    from cudalint.verify import Program

# Within so many seconds after an interruption everything has ended.
_CLEARING_UP_SECONDS = 5.0


def run(given: Sequence[str]) -> object:
    """``--verify``: what follows ``--`` belongs to the program that is run."""
    own, rest = list(given), None
    if "--" in own:
        own, rest = own[: own.index("--")], tuple(own[own.index("--") + 1 :])
    with _ended_as_interrupted():
        try:
            return verify.main(own, prog_name="cudalint --verify", standalone_mode=False, obj=rest)
        except click.NoSuchOption as error:
            hint = " (options of your own program follow --)" if rest is None else ""
            raise ConfigError(f"{describe(error)}{hint}") from None


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
        # Who was told is about to end, and says why by its exit code: to be told again must not end it before. Python
        # takes handlers away when it ends, and leaves what is ignored.
        for number, handler in before.items():
            signal.signal(number, signal.SIG_IGN if heard else handler)


class _VerifyOptions(Frozen):
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
    with cudalint). Or a program of your own: train.py -- ARGS, -m package.module -- ARGS, or a notebook; with --fixes
    several.

    Exits with 0 if everything that could run was confirmed, 1 after a refutation, 2 if nothing could run.
    """
    if sys.platform != "linux":
        raise ConfigError("--verify needs Linux")
    from cudalint import verify as verification

    for name, value in (("--limit-scale", limit_scale), ("--limit", limit)):
        if value is not None and not value > 0:
            raise click.BadParameter("must be greater than 0", param_hint=name)
    if paper and evidence is not None:
        raise click.UsageError("what runs on paper is no evidence: leave out --evidence or --paper")
    require_format(output_format, [known_format.value for known_format in verification.Format])
    options = _VerifyOptions(output_format, gpus, limit, limit_scale, evidence, split(select), paper, fixed, fixes)
    arguments: tuple[str, ...] | None = context.obj
    if models:
        return _verify_models(paths, module, arguments, options)
    if module is None:
        require(paths)
    try:
        if fixes:
            return _verify_repairs(own_programs(paths, module, arguments), options)
        program = own_program(paths, module, arguments)
        return _verify_fixtures(paths, options) if program is None else _verify_program(program, options)
    except (verification.EvidenceError, verification.HeaderError, verification.Target) as error:
        raise ConfigError(str(error)) from None


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
    for path in paths:
        if not os.path.exists(path):  # also a link that leads back to itself
            raise NotFound(path)
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
