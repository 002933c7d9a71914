"""``cudalint map``: the processes of a program as a picture."""

from __future__ import annotations

import os
import sys

import click

from cudalint import config
from cudalint.hosts import caching, streams
from cudalint.hosts.checks import Color, Exit, require, wants_colour
from cudalint.hosts.commands import options
from cudalint.hosts.commands.words import files, require_format, require_one
from cudalint.hosts.progress import Progress
from cudalint.report.maps.formats import MapFormat, render
from cudalint.session import Session

_FORMATS = tuple(output_format.value for output_format in MapFormat)


@click.command(name="map")
@click.argument("paths", nargs=-1, shell_complete=files)
@options.output_format(_FORMATS, "text")
@options.color
@options.output_file("the map")
@options.config_file
@options.isolated
@options.target_version
@options.platform
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
    options.refuse_both(config_file, isolated)
    named = paths or (".",)
    require(named)
    found = config.on_target(config.load(named, config_file, isolated=isolated), target_version, platform)
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
