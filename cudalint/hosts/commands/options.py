"""Options that several commands take alike."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from cudalint.config import PLATFORMS
from cudalint.discovery import PROJECT_FILE, SUFFIXES
from cudalint.hosts.colours import Color
from cudalint.hosts.commands.words import files, one_of

_Command = TypeVar("_Command", bound=Callable[..., Any])
_COLOURS = tuple(color.value for color in Color)

config_file = click.option(
    "--config",
    "config_file",
    metavar="FILE",
    shell_complete=files,
    help="Read the settings from this TOML file instead.",
)
isolated = click.option("--isolated", is_flag=True, help="Read no settings.")
target_version = click.option(
    "--target-version", metavar="VERSION", help="Python the program runs on: py312, 3.12 or 3.10-3.13."
)
platform = click.option(
    "--platform", metavar="PLATFORM", shell_complete=one_of(*PLATFORMS), help="linux, darwin or win32."
)
color = click.option(
    "--color",
    metavar="WHEN",
    default="auto",
    shell_complete=one_of(*_COLOURS),
    help="auto, always or never; also FORCE_COLOR, NO_COLOR.",
)
baseline = click.option("--baseline", metavar="FILE", shell_complete=files, help="A file of findings that are known.")
cache_dir = click.option(
    "--cache-dir",
    metavar="DIR",
    shell_complete=files,
    help="Folder of the cache (default: .cudalint_cache in the project).",
)
no_cache = click.option("--no-cache", is_flag=True, help="Neither read nor write the cache.")


def output_format(names: Sequence[str], default: str) -> Callable[[_Command], _Command]:
    """How the output is written: one of some names."""
    return click.option(
        "--output-format",
        metavar="FORMAT",
        default=default,
        shell_complete=one_of(*names),
        help=", ".join(names) + ".",
    )


def output_file(what: str) -> Callable[[_Command], _Command]:
    """Where ``what`` is written."""
    return click.option(
        "-o",
        "--output-file",
        metavar="FILE",
        shell_complete=files,
        callback=_no_source,
        help=f"Write {what} there instead of standard output.",
    )


def _no_source(_context: click.Context, _parameter: click.Parameter, file: str | None) -> str | None:
    """The file that is to be written: no program and no settings, which who names them there would lose."""
    if file == "":
        raise click.BadParameter("it names no file")
    if file is None or not os.path.lexists(file):
        return file
    target = os.path.basename(os.path.realpath(file))
    if target.endswith(SUFFIXES) or target == PROJECT_FILE:
        raise click.BadParameter(f"{file} is not a report, and would be overwritten")
    return file
