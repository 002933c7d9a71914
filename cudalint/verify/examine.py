"""All runs of one fixture, judged: as it is, with its trigger, and repaired."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from threading import Lock

from cudalint.structs import Frozen, field, replace
from cudalint.verify.headers import Fixture, Outcome
from cudalint.verify.needs import manners
from cudalint.verify.observe import Observation, observe
from cudalint.verify.predict import predict
from cudalint.verify.repair import repaired
from cudalint.verify.runner import Limits, Runner
from cudalint.verify.surroundings import Surroundings
from cudalint.verify.verdict import Verdict, judge

_NAMED_PORT = re.compile(rb"MASTER_PORT\W+\d")
# Of a free port that a program found, and that another took before it could.
_TAKEN_PORT = re.compile(r"EADDRINUSE|[Aa]ddress already in use")
# How often a program that met a taken port is run once more: libraries choose one and the same by default.
_MORE_TRIES = 3
# What takes several times as long as its repaired twin, and at least so many seconds, does not end.
_HANG_TIMES, _SHORTEST_HANG = 4.0, 15.0
# Nor does it when all its processes wait for as long as that one took in all, and at least so many seconds.
_SHORTEST_REST = 10.0


class Examiner(Frozen):
    """How fixtures are run: by whom, where, how long, and whether their repairs are run as well."""

    runner: Runner
    surroundings: Surroundings
    limits: Limits
    scale: float = 1.0
    repairs: bool = True
    port: Lock = field(default_factory=Lock)

    def examine(self, fixture: Fixture, environment: Mapping[str, str]) -> Verdict | None:
        """The runs of a fixture, judged; ``None`` if one was cut short by an interruption."""
        header = fixture.header
        environment = {**environment, **manners(fixture, self.surroundings)}
        trigger = {**environment, **dict(header.trigger)}
        limit = self.surroundings.seconds(header.limit, header.outcome is Outcome.HANG) * self.scale
        fixed = self._fixed(fixture, trigger) if self.repairs and header.outcome is not Outcome.OK else None
        rest = None
        if header.outcome is Outcome.HANG and fixed is not None and fixed.outcome is Outcome.OK:
            limit = min(limit, max(_SHORTEST_HANG, _HANG_TIMES * fixed.seconds))
            rest = max(_SHORTEST_REST, fixed.seconds)
        run = self._observe(fixture.path, environment, limit, rest)
        triggered = self._observe(fixture.path, trigger, limit) if header.outcome is Outcome.LATENT else None
        seen = [one for one in (run, triggered, fixed) if one is not None]
        if any(one.end in ("cancelled", "lost") for one in seen):
            return None
        return judge(fixture, predict(fixture.root), run, triggered, fixed)

    def _fixed(self, fixture: Fixture, environment: Mapping[str, str]) -> Observation | None:
        """The run of the repaired program; ``None`` where there is no repair."""
        limit = self.surroundings.seconds(fixture.header.limit, False) * self.scale
        with self.runner.folder() as folder:
            program = repaired(fixture, folder)
            return None if program is None else self._observe(program, environment, limit)

    def _observe(
        self, program: Path, environment: Mapping[str, str], seconds: float, rest: float | None = None
    ) -> Observation:
        limits = replace(self.limits, seconds=seconds, rest=rest)
        # Programs that meet at a port which they name would meet each other's ranks there.
        with self.port if _NAMED_PORT.search(program.read_bytes()) else nullcontext():
            seen = observe(self.runner.run(program, limits, environment))
        for _ in range(_MORE_TRIES):
            if not (seen.outcome.fails and _TAKEN_PORT.search(seen.text)):
                break
            with self.port:
                seen = observe(self.runner.run(program, limits, environment))
        return seen
