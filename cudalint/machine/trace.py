"""Provenance: where things happened, as linked chains that no comparison looks at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Site(NamedTuple):
    """A node of a file: its module's name and ordinal."""

    module: str
    ordinal: int


@dataclass(frozen=True, slots=True)
class TraceStep:
    """One step of a trace."""

    site: Site
    message: str
    process: str


class Chain:
    """A linked list of steps, the newest first.

    Two chains are always equal: provenance must not keep states apart that behave alike.
    """

    __slots__ = ("before", "length", "step")

    def __init__(self, step: TraceStep, before: Chain | None) -> None:
        self.step = step
        self.before = before
        self.length: int = 1 if before is None else before.length + 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Chain)

    def __hash__(self) -> int:
        return 0

    def steps(self) -> tuple[TraceStep, ...]:
        """Oldest first."""
        result: list[TraceStep] = []
        link: Chain | None = self
        while link is not None:
            result.append(link.step)
            link = link.before
        return tuple(reversed(result))


def shorter(left: Chain | None, right: Chain | None) -> Chain | None:
    """The shorter of two witnesses; None is no witness."""
    if left is None or right is None:
        return right if left is None else left
    return left if left.length <= right.length else right
