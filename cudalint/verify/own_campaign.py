"""Compares many programs of a user with their repairs, several at once as GPUs and cores allow."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from cudalint.structs import Frozen, replace
from cudalint.verify.campaign import places
from cudalint.verify.own_repairs import Comparer, Comparison, compare
from cudalint.verify.program import Program
from cudalint.verify.threads import Threads

Progress = Callable[[Comparison], None]
# What a program says that met another on a GPU, or at a port, that it would have had to itself.
_CROWDED = re.compile(r"out of memory|EADDRINUSE|[Aa]ddress already in use|_ALLOC_FAILED|RESOURCE_EXHAUSTED")
# Nothing is known of the memory that they take.
_PROGRAMS_PER_GPU = 6


class Compared(Frozen):
    """The comparisons in the order of their programs, and whether somebody interrupted, so that some are missing."""

    comparisons: tuple[Comparison, ...]
    interrupted: bool


def compare_all(programs: Sequence[Program], comparer: Comparer, progress: Progress) -> Compared:
    """Compare all programs with their repairs, beside each other.

    One that says that it met another is run once more, by itself, when all have ended.
    """
    gpus = len(comparer.machine)
    at_once = min(places(gpus), _PROGRAMS_PER_GPU * max(1, gpus), len(programs))
    if at_once < 2:
        one = [compare(program, comparer) for program in programs]
        return Compared(tuple(one), any(each.was_broken_off for each in one))
    quiet = replace(comparer, manner=replace(comparer.manner, quiet=True))
    found: dict[int, Comparison] = {}
    ended = _run(programs, quiet, at_once, found, progress)
    for place in [place for place, one in found.items() if _was_crowded(one)]:
        if not (ended or _was_broken_off(found)):
            found[place] = compare(programs[place], quiet)
    ordered = tuple(found[place] for place in sorted(found))
    return Compared(ordered, ended or _was_broken_off(found))


def _was_broken_off(found: Mapping[int, Comparison]) -> bool:
    return any(one.was_broken_off for one in found.values())


def _was_crowded(one: Comparison) -> bool:
    ends = [*([one.before] if one.before is not None else []), *(attempt.trial for attempt in one.attempts)]
    return any(end.seen.outcome.fails and _CROWDED.search(end.seen.text) is not None for end in ends)


def _run(
    programs: Sequence[Program], comparer: Comparer, at_once: int, found: dict[int, Comparison], progress: Progress
) -> bool:
    """Compare all, each at its place in ``found``; whether Ctrl-C ended all programs, so that some are missing."""
    waiting = deque(enumerate(programs))
    threads: Threads[int, Comparison] = Threads(comparer.runner)

    def begin_more() -> None:
        while waiting and threads.running < at_once:
            place, program = waiting.popleft()
            threads.begin(place, partial(compare, program, comparer))

    def take(place: int, comparison: Comparison | None) -> None:
        if comparison is not None:
            found[place] = comparison
            progress(comparison)

    return threads.run(begin_more, take, found.__setitem__)
