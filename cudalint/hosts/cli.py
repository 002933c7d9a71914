"""The command line. Exit codes: 0 clean, 1 findings, 2 cudalint could not do its work."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from cudalint import __version__, config
from cudalint.config import ConfigError
from cudalint.discovery import NotFound
from cudalint.disk import words
from cudalint.hosts import commands, streams
from cudalint.hosts.exits import Exit
from cudalint.hosts.usage import describe


class _Group(click.Group):
    """The commands, imported one by one, and the nearest of them for an unknown one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(commands.COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return commands.command(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            raise click.UsageError(f"unknown command {name!r}{config.nearest(name, self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)


_NO_FOLDER = "the current folder does not exist any more"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run cudalint and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    _accept_any_text()
    if not _has_folder():
        return _fail(_NO_FOLDER)
    try:
        result = _run_verify(given[1:]) if given[:1] == ["--verify"] else _run(given)
        streams.put("")
    except (ConfigError, click.ClickException) as error:
        return _fail(describe(error))
    except NotFound as error:
        return _fail(f"no such file or directory: {error}")
    except (click.Abort, KeyboardInterrupt):
        return _fail("interrupted")
    except (BrokenPipeError, SystemExit):
        # The reader of a page, or of a long run, has gone; SystemExit is what click makes of it.
        streams.let_go(sys.stdout)
        return Exit.FAILED if given[:1] == ["--verify"] else Exit.CLEAN
    except Exception as error:
        if isinstance(error, OSError) and streams.is_full(error):
            # Pages of help are written by click.
            streams.let_go(sys.stdout)
            return _fail(f"the output cannot be written: {words(error)}")
        if isinstance(error, OSError) and not _has_folder():
            return _fail(_NO_FOLDER)
        if "--verbose" in given or "-v" in given:
            import traceback

            traceback.print_exc()
        return _fail(f"internal error: {type(error).__name__}: {error}")
    return result if isinstance(result, int) else Exit.CLEAN


def _run(given: Sequence[str]) -> object:
    return cli.main(given, prog_name="cudalint", standalone_mode=False)


def _run_verify(given: Sequence[str]) -> object:
    from cudalint.hosts.commands import verify

    return verify.run(given)


def _has_folder() -> bool:
    try:
        os.getcwd()
    except OSError:
        return False
    return True


def _misplaced(_context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        raise click.UsageError("--verify comes first: cudalint --verify [OPTIONS] [PATHS]")


def _version(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if not wanted or context.resilient_parsing:
        return
    click.echo(f"cudalint {__version__}")
    context.exit()


@click.group(cls=_Group, no_args_is_help=False, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Show the version and exit.",
)
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


def _accept_any_text() -> None:
    """Print what the terminal's encoding lacks as escapes instead of failing; where nothing is open, to nobody."""
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _fail(message: str) -> Exit:
    streams.say(f"cudalint: error: {' '.join(message.split())}")
    return Exit.FAILED
