"""The commands, a module each, which is imported when its command is run or asked for help."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import MappingProxyType

import click

# The name of each command: the module that holds it, and the function's name there.
COMMANDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "check": ("check", "check"),
        "clean": ("clean", "clean"),
        "config": ("settings", "show_config"),
        "explain": ("explain", "explain"),
        "map": ("map", "draw"),
        "model": ("model", "model"),
        "rule": ("rule", "rule"),
        "server": ("server", "server"),
    }
)


def command(name: str) -> click.Command | None:
    """The command of this name, if there is one."""
    if name not in COMMANDS:
        return None
    module, function = COMMANDS[name]
    found = getattr(importlib.import_module(f"cudalint.hosts.commands.{module}"), function)
    assert isinstance(found, click.Command)
    return found
