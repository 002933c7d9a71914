"""The programs of their own that users name on the command line."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from cudalint.verify import Program


def own_program(paths: tuple[str, ...], module: str | None, arguments: tuple[str, ...] | None) -> Program | None:
    """The user's own program, if the command line names one: a module, or one file that is no fixture."""
    from cudalint import verify as verification

    if module is not None:
        if paths:
            raise click.UsageError(f"-m {module} and {paths[0]}: name one program; its arguments follow --")
        return verification.module(module, arguments or ())
    is_own = len(paths) == 1 and os.path.isfile(paths[0]) and not verification.has_header(paths[0])
    if not is_own and arguments is not None:
        raise click.UsageError("arguments after -- are for one program of your own")
    return verification.script(paths[0], arguments or ()) if is_own else None


def own_programs(paths: tuple[str, ...], module: str | None, arguments: tuple[str, ...] | None) -> tuple[Program, ...]:
    """The user's own programs that ``--fixes`` runs: files that are no fixtures, or one module."""
    from cudalint import verify as verification

    if not paths and module is None:
        raise click.UsageError("--fixes runs programs of your own: name one or more")
    for path in paths:
        if os.path.isdir(path):
            raise click.UsageError(f"--fixes runs programs of your own: {path} is a folder")
        if verification.has_header(path):
            raise click.UsageError(
                f"--fixes is for programs of your own: {path} is a fixture, which runs repaired anyway"
            )
    program = own_program(paths, module, arguments) if len(paths) < 2 or module is not None else None
    if program is None and arguments is not None:
        raise click.UsageError("arguments after -- are for one program of your own")
    return tuple(verification.script(path, ()) for path in paths) if program is None else (program,)
