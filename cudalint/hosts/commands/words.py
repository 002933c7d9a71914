"""What commands read on the command line alike: lists of codes, output formats."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import TypeVar

from cudalint import config
from cudalint.config import ConfigError

_Choice = TypeVar("_Choice", bound=Enum)


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
