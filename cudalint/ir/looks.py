"""Which bodies of functions something looked at."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Looks:
    """The bodies that something looked at, by module and number."""

    places: set[tuple[str, int]] = field(default_factory=set)
