"""``cudalint config``: the settings that a check of the same paths uses."""

from __future__ import annotations

import click

from cudalint import config
from cudalint.hosts import settings, streams
from cudalint.hosts.checks import Exit, require
from cudalint.hosts.commands import options
from cudalint.hosts.commands.words import files
from cudalint.report.plain import plain


@click.command(name="config")
@click.argument("paths", nargs=-1, shell_complete=files)
@options.config_file
@options.isolated
@click.option("--schema", is_flag=True, help="Print the JSON schema of [tool.cudalint] instead.")
def show_config(paths: tuple[str, ...], config_file: str | None, isolated: bool, schema: bool) -> int:
    """Show the configuration that a check of the same paths uses."""
    if schema:
        import json

        from cudalint.config_schema import schema as described

        streams.put(json.dumps(described(), indent=2) + "\n")
        return Exit.CLEAN
    options.refuse_both(config_file, isolated)
    require(paths)
    found = config.load(paths, config_file, isolated=isolated)
    streams.put("".join(f"{plain(line)}\n" for line in settings.lines(found)))
    return Exit.CLEAN
