"""Provenance: where things happened, as linked chains that no comparison looks at."""

from __future__ import annotations

from typing import NamedTuple

from cudalint.structs import Frozen


class Site(NamedTuple):
    """A node of a file: its module's name and ordinal."""

    module: str
    ordinal: int


class TraceStep(Frozen):
    """One step of a trace; it is taken only where the package ``missing`` is not installed."""

    site: Site
    message: str
    process: str
    missing: str = ""


class Chain:
    """A linked list of steps, the newest first.

    Two chains are always equal: provenance must not keep states apart that behave alike.
    """

    __slots__ = ("before", "length", "missing", "step")

    def __init__(self, step: TraceStep, before: Chain | None) -> None:
        self.step = step
        self.before = before
        self.length: int = 1 if before is None else before.length + 1
        # The package without which it comes this far.
        self.missing: str = step.missing or ("" if before is None else before.missing)

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
    """The shorter of two witnesses, but one that needs no package to be missing first; None is no witness."""
    if left is None or right is None:
        return right if left is None else left
    if bool(left.missing) is not bool(right.missing):
        return right if left.missing else left
    return left if left.length <= right.length else right
