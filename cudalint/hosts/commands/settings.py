"""``cudalint config``: the settings that a check of the same paths uses."""

from __future__ import annotations

import click

from cudalint import config
from cudalint.hosts import settings, streams
from cudalint.hosts.checks import Exit, require
from cudalint.hosts.commands.words import files
from cudalint.report.plain import plain


@click.command(name="config")
@click.argument("paths", nargs=-1, shell_complete=files)
@click.option(
    "--config",
    "config_file",
    metavar="FILE",
    shell_complete=files,
    help="Read the settings from this TOML file instead.",
)
@click.option("--isolated", is_flag=True, help="Read no settings.")
@click.option("--schema", is_flag=True, help="Print the JSON schema of [tool.cudalint] instead.")
def show_config(paths: tuple[str, ...], config_file: str | None, isolated: bool, schema: bool) -> int:
    """Show the configuration that a check of the same paths uses."""
    if schema:
        import json

        from cudalint.config_schema import schema as described

        streams.put(json.dumps(described(), indent=2) + "\n")
        return Exit.CLEAN
    if isolated and config_file is not None:
        raise click.UsageError("--config names settings and --isolated forbids them: leave out one")
    require(paths)
    found = config.load(paths, config_file, isolated=isolated)
    streams.put("".join(f"{plain(line)}\n" for line in settings.lines(found)))
    return Exit.CLEAN
