"""``cudalint server``: what editors show of a project while it is written."""

from __future__ import annotations

import importlib.util
import sys

import click

from cudalint import config
from cudalint.config import Config, ConfigError
from cudalint.hosts import caching
from cudalint.hosts.checks import Exit
from cudalint.hosts.commands import options
from cudalint.store import Store

# Nothing is imported from the current folder, which is the one that is checked; the path is set before anything else.
_WORKER = """\
import sys
sys.path[:] = {path!r}
from cudalint.hosts.commands.server import work
work({file!r}, {isolated!r}, {cache_dir!r}, {wanted!r})
"""


@click.command()
@click.option("--stdio", is_flag=True, expose_value=False, help="Serve on standard input and output, as always.")
@options.config_file
@options.isolated
@options.cache_dir
@options.no_cache
def server(config_file: str | None, isolated: bool, cache_dir: str | None, no_cache: bool) -> int:
    """Serve an editor by the Language Server Protocol, on standard input and output."""
    options.refuse_both(config_file, isolated)
    if importlib.util.find_spec("pygls") is None:
        raise ConfigError("the language server needs pygls: pip install 'cudalint[server]'")
    from cudalint.server.language_server import serve

    code = _WORKER.format(
        path=list(sys.path), file=config_file, isolated=isolated, cache_dir=cache_dir, wanted=not no_cache
    )
    serve((sys.executable, "-c", code))
    return Exit.CLEAN


def work(file: str | None, isolated: bool, cache_dir: str | None, wanted: bool) -> None:
    """The process that analyses for the server."""
    from cudalint.server.worker import serve

    def configure(paths: tuple[str, ...]) -> Config:
        return config.load(paths, file, isolated=isolated)

    def opened(found: Config) -> Store | None:
        return caching.opened(found, cache_dir, wanted=wanted).store

    serve(configure, opened)
