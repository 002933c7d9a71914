"""What is wrong with a command line, in one line."""

from __future__ import annotations

import click

from cudalint import config

# What click says of a command line without any.
_NO_COMMAND = "Missing command"


def describe(error: Exception) -> str:
    """The words of an error, with the nearest option for one that is not known."""
    if isinstance(error, click.NoSuchOption):
        known = error.possibilities or _options_of(error.ctx)
        return f"unknown option {error.option_name}{config.nearest(error.option_name, known)}"
    if isinstance(error, click.ClickException):
        message = error.format_message().rstrip(".")
        if message == _NO_COMMAND:
            return "missing command: cudalint check looks for findings, cudalint --help lists the others"
        return message[:1].lower() + message[1:]
    return str(error)


def _options_of(context: click.Context | None) -> list[str]:
    if context is None:
        return []
    return [name for parameter in context.command.params for name in parameter.opts if name.startswith("--")]
