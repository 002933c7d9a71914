"""``cudalint config``: the settings that a check of the same paths uses."""

from __future__ import annotations

import click

from cudalint.hosts import settings, streams
from cudalint.hosts.commands import options
from cudalint.hosts.commands.words import files
from cudalint.hosts.exits import Exit
from cudalint.hosts.inputs import as_option, require
from cudalint.opening import Options
from cudalint.report.plain import plain


@click.command(name="config", short_help="Show the configuration in force.")
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
    require(paths)
    found = Options(config=config_file, isolated=isolated).configuration(paths, as_option)
    streams.put("".join(f"{plain(line)}\n" for line in settings.lines(found)))
    return Exit.CLEAN
