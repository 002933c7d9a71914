"""``cudalint map``: the processes of a program as a picture."""

from __future__ import annotations

import dataclasses
import os
import sys

import click

from cudalint import config
from cudalint.config import Config
from cudalint.hosts import caching, streams
from cudalint.hosts.checks import Color, Exit, require, wants_colour
from cudalint.hosts.commands.words import files, one_of, require_format, require_one
from cudalint.hosts.progress import Progress
from cudalint.report.maps.formats import MapFormat, render
from cudalint.session import Session

_FORMATS = tuple(output_format.value for output_format in MapFormat)
_COLOURS = tuple(color.value for color in Color)


@click.command(name="map")
@click.argument("paths", nargs=-1, shell_complete=files)
@click.option(
    "--output-format",
    metavar="FORMAT",
    default="text",
    shell_complete=one_of(*_FORMATS),
    help=", ".join(_FORMATS) + ".",
)
@click.option(
    "--color",
    metavar="WHEN",
    default="auto",
    shell_complete=one_of(*_COLOURS),
    help="auto, always or never; also FORCE_COLOR, NO_COLOR.",
)
@click.option(
    "-o",
    "--output-file",
    metavar="FILE",
    shell_complete=files,
    help="Write the map there instead of standard output.",
)
@click.option(
    "--config",
    "config_file",
    metavar="FILE",
    shell_complete=files,
    help="Read the settings from this TOML file instead.",
)
@click.option("--isolated", is_flag=True, help="Read no settings.")
@click.option("--target-version", metavar="VERSION", help="Python the program runs on: py312, 3.12 or 3.10-3.13.")
@click.option("--platform", metavar="PLATFORM", help="linux, darwin or win32.")
def draw(
    paths: tuple[str, ...],
    output_format: str,
    color: str,
    output_file: str | None,
    config_file: str | None,
    isolated: bool,
    target_version: str | None,
    platform: str | None,
) -> int:
    """Show the processes of a program: who starts whom and how, what crosses, who uses CUDA, where it breaks."""
    require_format(output_format, _FORMATS)
    colour = wants_colour(require_one(Color, "--color", color), output_file)
    if isolated and config_file is not None:
        raise click.UsageError("--config names settings and --isolated forbids them: leave out one")
    named = paths or (".",)
    require(named)
    found = _settings(config.load(named, config_file, isolated=isolated), target_version, platform)
    cache = caching.opened(found)
    with Progress(sys.stderr, "mapping"):
        drawn = Session(found, cache.store).map(named)
    text = render(drawn, MapFormat(output_format), os.getcwd(), colour=colour)
    if output_file is None:
        streams.put(text)
    else:
        streams.save(output_file, text)
    cache.close()
    return Exit.CLEAN


def _settings(found: Config, target_version: str | None, platform: str | None) -> Config:
    return dataclasses.replace(
        found,
        target_versions=found.target_versions if target_version is None else config.parse_versions(target_version),
        platform=found.platform if platform is None else config.parse_platform(platform),
    )
