"""``cudalint server``: what editors show of a project while it is written."""

from __future__ import annotations

import importlib.util
import sys

import click

from cudalint.config import ConfigError
from cudalint.hosts.commands import options
from cudalint.hosts.exits import Exit
from cudalint.hosts.inputs import as_option
from cudalint.opening import Options

# Nothing is imported from the current folder, which is the one that is checked; the path is set before anything else.
WORKER = """\
import sys
sys.path[:] = {path!r}
from cudalint.opening import Options
from cudalint.server.worker import serve
serve({options!r})
"""


@click.command(short_help="Serve an editor (Language Server Protocol).")
@click.option("--stdio", is_flag=True, expose_value=False, help="Serve on standard input and output, as always.")
@options.config_file
@options.isolated
@options.cache_dir
@options.no_cache
def server(config_file: str | None, isolated: bool, cache_dir: str | None, no_cache: bool) -> int:
    """Serve an editor by the Language Server Protocol, on standard input and output."""
    if importlib.util.find_spec("pygls") is None:
        raise ConfigError("the language server needs pygls: pip install 'cudalint[server]'")
    from cudalint.server.language_server import serve

    asked = Options(config=config_file, isolated=isolated, cache=not no_cache, cache_dir=cache_dir)
    asked.require_sense(as_option)
    serve((sys.executable, "-c", WORKER.format(path=list(sys.path), options=asked)))
    return Exit.CLEAN
