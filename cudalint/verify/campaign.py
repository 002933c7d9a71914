"""Runs many fixtures, several at once as GPUs and cores allow, and judges each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TypeAlias

from cudalint.structs import Frozen, replace
from cudalint.verify.economy import economical, keeps_nothing
from cudalint.verify.examine import Examiner
from cudalint.verify.gpus import Gpus, Lease, Need, Pool
from cudalint.verify.headers import Fixture, Outcome
from cudalint.verify.needs import need, obstacle
from cudalint.verify.runner import Limits, Runner
from cudalint.verify.surroundings import HARDWARE, Surroundings
from cudalint.verify.threads import Threads
from cudalint.verify.verdict import INTERRUPTED, Verdict, not_run

Progress = Callable[[Verdict], None]
# A program, and what it has of the GPUs while it runs.
_Started: TypeAlias = tuple[Fixture, Lease]
# A program is a few processes that mostly wait for the GPU or for each other: 25 at once used 60 % of 32 cores.
_CORES_PER_PROGRAM = 0.85
_PROGRAMS_PER_GPU = 24


class Result(Frozen):
    """All verdicts, and whether somebody interrupted."""

    verdicts: tuple[Verdict, ...]
    interrupted: bool


def places(gpus: int, cores: int | None = None) -> int:
    """How many programs may run at once."""
    available = cores if cores is not None else len(os.sched_getaffinity(0))
    return max(2, min(_PROGRAMS_PER_GPU * max(1, gpus), int(available / _CORES_PER_PROGRAM)))


class Campaign:
    """One verification of a set of fixtures on a set of GPUs."""

    def __init__(
        self,
        fixtures: Iterable[Fixture],
        gpus: Gpus,
        limits: Limits,
        scale: float = 1.0,
        surroundings: Surroundings = HARDWARE,
        repairs: bool = True,
    ) -> None:
        self._fixtures = tuple(fixtures)
        self._surroundings = surroundings
        self._gpus = gpus.devices
        self._runner = Runner(surroundings)
        self._examiner = Examiner(self._runner, surroundings, limits, scale, repairs)
        self._pool = Pool(self._gpus, places(len(self._gpus)), gpus.hidden)

    def run(self, progress: Progress) -> Result:
        """Run everything that can run here. Ctrl-C ends all programs and gives what is known."""
        if not self._surroundings.is_hardware:
            return self._run({}, progress)
        if not keeps_nothing():
            return self._run(economical(None), progress)
        with self._runner.folder() as folder:
            limits = replace(self._examiner.limits, shared=str(folder))
            self._examiner = replace(self._examiner, limits=limits)
            return self._run(economical(folder), progress)

    def _run(self, shared: Mapping[str, str], progress: Progress) -> Result:
        found: dict[Fixture, Verdict] = {}
        waiting = self._sort_out(found, progress)
        threads: Threads[_Started, Verdict] = Threads(self._runner)

        def take(started: _Started, verdict: Verdict | None) -> None:
            fixture, lease = started
            self._pool.give_back(lease)
            found[fixture] = verdict or not_run(fixture, "its supervisor was killed")
            progress(found[fixture])

        def keep(started: _Started, verdict: Verdict) -> None:
            found[started[0]] = verdict

        interrupted = threads.run(lambda: self._start(waiting, shared, threads), take, keep)
        return Result(self._all(found), interrupted)

    def _sort_out(self, found: dict[Fixture, Verdict], progress: Progress) -> list[Fixture]:
        able: list[Fixture] = []
        for fixture in self._fixtures:
            reason = obstacle(fixture, len(self._gpus), self._surroundings)
            if reason is None:
                able.append(fixture)
            else:
                found[fixture] = not_run(fixture, reason)
                progress(found[fixture])
        return sorted(able, key=self._urgency)

    def _start(self, waiting: list[Fixture], shared: Mapping[str, str], threads: Threads[_Started, Verdict]) -> None:
        """Start what there is room for, with the variables that all programs share."""
        for fixture in tuple(waiting):
            lease = self._pool.lease(self._need(fixture))
            if lease is None:
                continue
            waiting.remove(fixture)
            variables = {**shared, **self._pool.environment(lease)}
            threads.begin((fixture, lease), partial(self._examiner.examine, fixture, variables), fixture.name)

    def _all(self, found: Mapping[Fixture, Verdict]) -> tuple[Verdict, ...]:
        return tuple(found.get(fixture) or not_run(fixture, INTERRUPTED) for fixture in self._fixtures)

    def _need(self, fixture: Fixture) -> Need:
        return need(fixture, self._surroundings)

    def _urgency(self, fixture: Fixture) -> tuple[bool, bool, float, str]:
        """First those that keep others out, then those that use up their limit, then the long ones."""
        hangs = fixture.header.outcome is Outcome.HANG
        return not self._need(fixture).alone, not hangs, -fixture.header.limit, fixture.name
