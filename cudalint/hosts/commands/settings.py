"""``cudalint config``: the settings that a check of the same paths uses."""

from __future__ import annotations

import click

from cudalint import config
from cudalint.hosts import settings, streams
from cudalint.hosts.checks import Exit, require
from cudalint.report.plain import plain


@click.command(name="config")
@click.argument("paths", nargs=-1)
def show_config(paths: tuple[str, ...]) -> int:
    """Show the configuration that a check of the same paths uses."""
    require(paths)
    streams.put("".join(f"{plain(line)}\n" for line in settings.lines(config.load(paths))))
    return Exit.CLEAN
