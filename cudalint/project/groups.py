"""Groups of entries as they are handed from process to process: what to run, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Protocol

from cudalint.project.callers import Place
from cudalint.project.entry_result import EntryResult
from cudalint.project.reads import Broken, News, Reads
from cudalint.structs import Frozen


class Group(Frozen):
    """The entries of a module that run one after the other: what is started of it, or what has no visible caller."""

    name: str
    is_assumed: bool = False


class GroupResult(Frozen):
    """What a group of entries gave, where it ran with what other entries were known to have reached.

    It is what the group gives wherever none of ``unreached`` is reached: functions of which it was asked. ``reads`` is
    what it rests on. ``broken`` files, by module and whether nothing of it can be parsed, are those that the
    process had not come upon before; ``says_once`` that it will not come upon them, or upon what it noted, again.
    ``effort`` are the files, bytes and nodes that it parsed and lowered. ``news`` is what the process found out about
    files since the group before.
    """

    results: tuple[EntryResult, ...]
    reads: Reads
    unreached: frozenset[Place]
    broken: tuple[tuple[str, Broken, bool], ...]
    says_once: bool
    effort: tuple[int, int, int]
    news: News


class Others(Protocol):
    """Other processes that run groups of entries."""

    def offer(self, groups: Sequence[Group], reached: Set[Place], before: Set[Place]) -> None:
        """Let them run groups that follow; ``before`` was reached before anything was assumed."""

    def result(self, group: Group, reached: Set[Place]) -> GroupResult | None:
        """What a group gave there; None where it has to run here."""

    def news(self) -> Sequence[News]:
        """What they found out about files since this was asked last, also for groups whose results are not taken."""
