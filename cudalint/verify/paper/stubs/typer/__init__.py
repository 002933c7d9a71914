"""typer on paper: commands that are called with their defaults."""

from __future__ import annotations

import inspect
import sys
from typing import Any

import paper_driver as driver


def Option(default: Any = None, *_: Any, **__: Any) -> Any:  # noqa: N802
    """An option's default."""
    return default


Argument = Option


class Typer:
    """Commands by name; one command needs no name."""

    def __init__(self, **_: Any) -> None:
        self._commands: dict[str, Any] = {}
        self._callback: Any = None

    def command(self, name: str | None = None, **_: Any) -> Any:
        """One more command."""

        def add(function: Any) -> Any:
            self._commands[name or function.__name__] = function
            return function

        return add

    def callback(self, **_: Any) -> Any:
        """What runs before each command."""

        def keep(function: Any) -> Any:
            self._callback = function
            return function

        return keep

    def __call__(self, *_: Any, **__: Any) -> None:
        names = list(self._commands)
        chosen = sys.argv[1] if len(names) > 1 and len(sys.argv) > 1 else names[0]
        if self._callback is not None:
            self._callback()
        run(self._commands[chosen])
        sys.exit(0)


def run(function: Any) -> None:
    """Call it with its defaults."""
    parameters = inspect.signature(function).parameters.values()
    function(**{p.name: p.default for p in parameters})


__getattr__ = driver.lazy("typer")
