"""``cudalint model``: what a package does, as a model, and whether what models say of it still stands."""

from __future__ import annotations

import click

from cudalint import config
from cudalint.deriving.package import NoPackage, find, read
from cudalint.hosts import streams
from cudalint.hosts.commands.words import files
from cudalint.hosts.exits import Exit
from cudalint.report.plain import plain


@click.command(short_help="Make a model of what a package does.")
@click.argument("package", metavar="PACKAGE", shell_complete=files)
@click.option("--compare", is_flag=True, help="Say which names and parameters of models the package does not have.")
def model(package: str, compare: bool) -> int:
    """Say what PACKAGE does to CUDA and processes, as a model, from its source.

    PACKAGE is the name of an installed package, or the path of its source. It is not imported.
    """
    try:
        source = read(find(package))
    except NoPackage as error:
        raise click.UsageError(str(error)) from None
    from cudalint.models.library import load

    models = config.load(()).models
    if compare:
        from cudalint.deriving.drift import drift

        lines = drift(source, models)
        streams.put("".join(f"{plain(line)}\n" for line in lines.lines))
        return Exit.FINDINGS if lines.drifted else Exit.CLEAN
    from cudalint.deriving.deriving import derive

    streams.put("".join(f"{plain(line)}\n" for line in derive(source, load(models)).text().splitlines()))
    return Exit.CLEAN
