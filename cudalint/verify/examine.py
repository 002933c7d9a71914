"""All runs of one fixture, judged: as it is, with its trigger, and repaired."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from cudalint.verify.headers import Fixture, Outcome
from cudalint.verify.observe import Observation, observe
from cudalint.verify.predict import predict
from cudalint.verify.repair import repaired
from cudalint.verify.runner import Limits, Runner
from cudalint.verify.surroundings import Surroundings
from cudalint.verify.verdict import Verdict, judge


@dataclass(frozen=True, slots=True)
class Examiner:
    """How fixtures are run: by whom, where, how long, and whether their repairs are run as well."""

    runner: Runner
    surroundings: Surroundings
    limits: Limits
    scale: float = 1.0
    repairs: bool = True

    def examine(self, fixture: Fixture, environment: Mapping[str, str]) -> Verdict | None:
        """The runs of a fixture, judged; ``None`` if one was cut short by an interruption."""
        latent = fixture.header.outcome is Outcome.LATENT
        trigger = {**environment, **dict(fixture.header.trigger)}
        run = self._observe(fixture, fixture.path, environment)
        triggered = self._observe(fixture, fixture.path, trigger) if latent and run is not None else None
        if run is None or (latent and triggered is None):
            return None
        fixed: Observation | None = None
        if self.repairs and fixture.header.outcome is not Outcome.OK:
            with tempfile.TemporaryDirectory(prefix="cudalint-fixed-") as folder:
                program = repaired(fixture, Path(folder))
                fixed = None if program is None else self._observe(fixture, program, trigger)
                if program is not None and fixed is None:
                    return None
        return judge(fixture, predict(fixture.root), run, triggered, fixed)

    def _observe(self, fixture: Fixture, program: Path, environment: Mapping[str, str]) -> Observation | None:
        """One run; ``None`` if it was cut short by an interruption."""
        hangs = fixture.header.outcome is Outcome.HANG and program == fixture.path
        seconds = self.surroundings.seconds(fixture.header.limit, hangs) * self.scale
        run = self.runner.run(program, replace(self.limits, seconds=seconds), environment)
        return None if run.end in ("cancelled", "lost") else observe(run)
