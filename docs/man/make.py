"""Writes the manual page beside this file from the commands themselves: ``python docs/man/make.py``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from cudalint.hosts import commands
from cudalint.hosts.commands.verify import verify

PAGE = Path(__file__).with_name("cudalint.1")

_HEAD = r"""
.TH CUDALINT 1 "" "" "User Commands"
.SH NAME
cudalint \- find where CUDA and processes collide in Python programs, before anything runs
.SH SYNOPSIS
.B cudalint
.I COMMAND
.RI [ OPTIONS ]
.RI [ PATHS ]
.br
.B cudalint \-\-verify
.RI [ OPTIONS ]
.RI [ PATHS ]
.SH DESCRIPTION
cudalint reads Python programs, follows the life of their processes, and tells where CUDA and processes will collide: a
forked worker that uses CUDA, a GPU tensor in a pickled argument, a collective before its device is chosen. Nothing of
what it reads is run, but by
.BR \-\-verify ,
which is there to run programs.
""".lstrip()
_TAIL = (
    r"""
.SH EXIT STATUS
.TP
.B 0
nothing was found
.TP
.B 1
findings at or above
.B \-\-fail\-on
(by default: warnings and errors)
.TP
.B 2
cudalint could not do its work: a bad option or configuration, a path that does not exist, an internal error
.SH ENVIRONMENT
.TP
.BR NO_COLOR ", " FORCE_COLOR
whether a report is coloured, unless
.B \-\-color
says it
.TP
.BR CUDALINT_CACHE_DIR ", " CUDALINT_NO_CACHE ", " CUDALINT_CACHE_KEY
where the cache is, whether there is one, and the key that signs its entries
.SH FILES
.TP
.I pyproject.toml
the table
.B [tool.cudalint]
of the nearest one that has it;
.B cudalint config
shows what holds
.TP
.I .cudalint_cache
what a run keeps for the next one;
.B cudalint clean
empties it
.SH COMPLETION
.TP
bash
.B eval """.rstrip()
    + r""" "$(_CUDALINT_COMPLETE=bash_source cudalint)"
.TP
zsh
.B eval "$(_CUDALINT_COMPLETE=zsh_source cudalint)"
.TP
fish
.B _CUDALINT_COMPLETE=fish_source cudalint | source
"""
)


def page() -> str:
    """The whole page."""
    known = [(name, commands.command(name)) for name in sorted(commands.COMMANDS)]
    parts = [part for name, command in known if command is not None for part in _command(name, command)]
    return "\n".join([_HEAD.rstrip(), ".SH COMMANDS", *parts, *_command("--verify", verify), _TAIL.lstrip()])


def _command(name: str, command: click.Command) -> Iterator[str]:
    arguments = [_named(one) for one in command.params if isinstance(one, click.Argument)]
    yield f".SS {_escaped(' '.join(('cudalint', name, '[OPTIONS]', *arguments)))}"
    for part in (command.help or "").split("\n\n"):
        yield _escaped(" ".join(part.split()))
        yield ".PP"
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            names = ", ".join((*option.opts, *option.secondary_opts))
            value = "" if option.is_flag else f" {option.metavar}"
            yield f".TP\n.B {_escaped(names + value)}\n{_escaped(option.help or '')}"


def _named(argument: click.Argument) -> str:
    name = (argument.name or "").upper()
    return argument.metavar or (f"[{name}]..." if argument.nargs == -1 else name)


def _escaped(text: str) -> str:
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
