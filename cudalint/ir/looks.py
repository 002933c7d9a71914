"""Which bodies of functions something looked at."""

from __future__ import annotations

from cudalint.structs import Mutable, field


class Looks(Mutable):
    """The bodies that something looked at, by module and number."""

    places: set[tuple[str, int]] = field(default_factory=set)
