"""``cudalint clean``: an empty cache."""

from __future__ import annotations

import click

from cudalint import caching, config
from cudalint.hosts import streams
from cudalint.hosts.commands import options
from cudalint.hosts.commands.words import files
from cudalint.hosts.exits import Exit
from cudalint.hosts.inputs import require
from cudalint.store import clear


@click.command(short_help="Remove what is kept between runs.")
@click.argument("paths", nargs=-1, shell_complete=files)
@options.cache_dir
def clean(paths: tuple[str, ...], cache_dir: str | None) -> int:
    """Remove what is kept between runs over PATHS (default: the current directory)."""
    require(paths)
    folder = caching.folder(config.load(paths), cache_dir)
    count = clear(folder)
    streams.say(f"Removed {count} {'entry' if count == 1 else 'entries'} from {folder}.")
    return Exit.CLEAN
