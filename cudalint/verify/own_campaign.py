"""Compares many programs of a user with their repairs, several at once as GPUs and cores allow."""

from __future__ import annotations

import queue
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from cudalint.verify.campaign import places
from cudalint.verify.own_repairs import Comparer, Comparison, compare
from cudalint.verify.program import Program

Progress = Callable[[Comparison], None]
# What a program says that met another on a GPU, or at a port, that it would have had to itself.
_CROWDED = re.compile(r"out of memory|EADDRINUSE|[Aa]ddress already in use|_ALLOC_FAILED|RESOURCE_EXHAUSTED")
# Nothing is known of the memory that they take.
_PROGRAMS_PER_GPU = 6
# Seconds to wait for what ended programs have to say.
_PATIENCE = 1.0


@dataclass(frozen=True, slots=True)
class Compared:
    """The comparisons in the order of their programs, and whether somebody interrupted, so that some are missing."""

    comparisons: tuple[Comparison, ...]
    interrupted: bool


@dataclass(frozen=True, slots=True)
class _Done:
    """What a program's thread says when it ends."""

    place: int
    comparison: Comparison | None
    error: BaseException | None = None


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
    running = _Running(programs, quiet, at_once)
    found = running.run(progress)
    for place in [place for place, one in found.items() if _was_crowded(one)]:
        if not _was_interrupted(running, found):
            found[place] = compare(programs[place], quiet)
    ordered = tuple(found[place] for place in sorted(found))
    return Compared(ordered, _was_interrupted(running, found))


def _was_interrupted(running: _Running, found: Mapping[int, Comparison]) -> bool:
    return running.interrupted or any(one.was_broken_off for one in found.values())


def _was_crowded(one: Comparison) -> bool:
    ends = [*([one.before] if one.before is not None else []), *(attempt.trial for attempt in one.attempts)]
    return any(end.seen.outcome.fails and _CROWDED.search(end.seen.text) is not None for end in ends)


class _Running:
    """Threads that compare programs, as many as there are places."""

    def __init__(self, programs: Sequence[Program], comparer: Comparer, at_once: int) -> None:
        self._comparer = comparer
        self._at_once = at_once
        self._waiting = deque(enumerate(programs))
        self._done: queue.SimpleQueue[_Done] = queue.SimpleQueue()
        self._found: dict[int, Comparison] = {}
        self.interrupted = False

    def run(self, progress: Progress) -> dict[int, Comparison]:
        """Compare all. Ctrl-C ends all programs and gives what is known, by the place of each."""
        running = 0
        runner = self._comparer.runner
        try:
            while self._waiting or running:
                while self._waiting and running < self._at_once:
                    place, program = self._waiting.popleft()
                    threading.Thread(target=self._work, args=(place, program), daemon=True).start()
                    running += 1
                self._take(self._done.get(), progress)
                running -= 1
        except KeyboardInterrupt:
            self.interrupted = True
            runner.stop()
            self._collect(running)
        except BaseException:
            runner.stop()
            raise
        finally:
            runner.clear()
        return self._found

    def _work(self, place: int, program: Program) -> None:
        try:
            self._done.put(_Done(place, compare(program, self._comparer)))
        except BaseException as error:
            self._done.put(_Done(place, None, error))

    def _take(self, done: _Done, progress: Progress) -> None:
        if done.error is not None:
            raise done.error
        if done.comparison is not None:
            self._found[done.place] = done.comparison
            progress(done.comparison)

    def _collect(self, running: int) -> None:
        """After an interruption: wait a moment for the threads of the programs that were ended."""
        until = time.monotonic() + _PATIENCE
        for _ in range(running):
            try:
                done = self._done.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                return
            if done.comparison is not None:
                self._found[done.place] = done.comparison
