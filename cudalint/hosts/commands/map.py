"""``cudalint map``: the processes of a program as a picture."""

from __future__ import annotations

import os
import sys

import click

from cudalint.hosts import streams
from cudalint.hosts.colours import Color, wants_colour
from cudalint.hosts.commands import options
from cudalint.hosts.commands.words import files, require_format, require_one
from cudalint.hosts.exits import Exit
from cudalint.hosts.inputs import open_paths
from cudalint.hosts.progress import Progress
from cudalint.opening import Options
from cudalint.report.maps.formats import MapFormat, render

_FORMATS = tuple(output_format.value for output_format in MapFormat)


@click.command(name="map", short_help="Show the processes of a program.")
@click.argument("paths", nargs=-1, shell_complete=files)
@options.output_format(_FORMATS, "text")
@options.color
@options.output_file("the map")
@options.config_file
@options.isolated
@options.target_version
@options.platform
@options.baseline
def draw(
    paths: tuple[str, ...],
    output_format: str,
    color: str,
    output_file: str | None,
    config_file: str | None,
    isolated: bool,
    target_version: str | None,
    platform: str | None,
    baseline: str | None,
) -> int:
    """Show the processes of a program: who starts whom and how, what crosses, who uses CUDA, where it breaks."""
    require_format(output_format, _FORMATS)
    colour = wants_colour(require_one(Color, "--color", color), output_file)
    named = paths or (".",)
    asked = Options(
        config=config_file,
        isolated=isolated,
        target_version=target_version,
        platform=platform,
        baseline=baseline,
        cache=True,
    )
    ready = open_paths(named, asked)
    with Progress(sys.stderr, "mapping"):
        drawn = ready.session.map(named)
    text = render(drawn, MapFormat(output_format), os.getcwd(), colour=colour)
    if output_file is None:
        streams.put(text)
    else:
        streams.save(output_file, text)
    ready.cache.close()
    return Exit.CLEAN
