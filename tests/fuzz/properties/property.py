"""What a property is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from fuzz.case import Case


@dataclass(frozen=True)
class Property:
    """What must hold of a case.

    ``complaints`` are on one line each, whose words are the same for the same fault but for what is quoted in them.
    ``runs`` is how many times as long as one check it may take.
    """

    complaints: Callable[[Case], Iterator[str]]
    runs: int = 1
