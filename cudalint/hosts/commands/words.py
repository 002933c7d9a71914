"""What commands read on the command line alike, and how a shell completes it: paths, lists of codes, output formats."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import TypeVar

import click
from click.shell_completion import CompletionItem

from cudalint import config, rules
from cudalint.config import ConfigError

_Choice = TypeVar("_Choice", bound=Enum)


def files(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Paths, completed by the shell itself."""
    return [CompletionItem(begun, type="file")]


def one_of(*known: str) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Completes one of some words."""

    def complete(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
        return [CompletionItem(word) for word in known if word.startswith(begun)]

    return complete


def selectors(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Completes the last of a list of rules, comma-separated: families, then codes."""
    head, comma, last = begun.rpartition(",")
    families = sorted({code[:4] for code in rules.codes()})
    words = (word for word in ("ALL", *families, *rules.codes()) if word.startswith(last.upper()))
    return [CompletionItem(f"{head}{comma}{word}") for word in words]


def split(values: Iterable[str]) -> tuple[str, ...]:
    """The values of an option that may be given often and holds several, comma-separated."""
    return tuple(part for value in values for part in value.split(","))


def require_one(kind: type[_Choice], option: str, text: str) -> _Choice:
    """The member of a closed set that an option names.

    Raises:
        ConfigError: naming the known ones, and the nearest.
    """
    known = [str(member.value) for member in kind]
    if text not in known:
        hint = config.nearest(text, known)
        raise ConfigError(f"unknown value {text!r} of {option}: expected one of {', '.join(known)}{hint}")
    return kind(text)


def require_format(text: str, known: Sequence[str]) -> None:
    """Refuse the name of an output format that is not known.

    Raises:
        ConfigError: naming the known ones, and the nearest.
    """
    if text not in known:
        hint = config.nearest(text, known)
        raise ConfigError(f"unknown output format {text!r}: expected one of {', '.join(known)}{hint}")
