"""Programs of the oracle on real GPUs: what hardware does against what cudalint says and what paper CUDA does.

`python -m oracle --hardware --seed N --count 200 --out sample.json` on a machine with a GPU, torch, and what the
programs import. Programs whose imports are missing are skipped, and said to be.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from paper.run import Observed
from paper.watch import watched

from cudalint.verify.evidence import this_place
from cudalint.verify.gpus import Gpus, discover
from cudalint.verify.observe import observe
from cudalint.verify.runner import Limits, Runner
from oracle.runner import Case, judge
from oracle.verdict import disagreement, outcome_of

LIMIT = 100.0
# Contexts of many programs are made one after another by the driver, and who waits for it uses no time.
QUIET = 15.0
PER_CORE = 1.25
BUDGET = 420.0
# Every JAX program would take three quarters of the GPU that it shares with twenty others.
ENVIRONMENT = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
_IMPORT = re.compile(r"^\s*(?:import|from)\s+(\w+)", re.MULTILINE)


@dataclass(frozen=True)
class Measured:
    """One program: what paper showed and the linter said (`case`), and how it ended on hardware."""

    case: Case
    outcome: str | None  # None: skipped
    output: str
    seconds: float
    complaint: str | None
    why_not: str = ""

    @property
    def differs_from_paper(self) -> bool:
        """Whether paper CUDA ended otherwise."""
        return self.outcome is not None and self.outcome != self.case.outcome

    def as_json(self) -> dict[str, Any]:
        """What is kept: everything about a program on which two of the three do not agree."""
        kept: dict[str, Any] = {
            "hardware": self.outcome,
            "paper": self.case.outcome,
            "said": [str(said) for said in self.case.said],
            "seconds": round(self.seconds, 1),
        }
        if self.why_not:
            kept["not run"] = self.why_not
        if self.complaint is not None or self.differs_from_paper:
            kept |= {"complaint": self.complaint, "text": self.case.text}
            kept |= {"output": self.output[-3000:], "paper output": self.case.output[-3000:]}
        return kept


def sample(seeds: Sequence[int], gpus: Gpus, jobs: int | None = None, budget: float = BUDGET) -> Iterator[Measured]:
    """Run the programs of the seeds on hardware; where somebody differs they run again, fewer at once.

    After ``budget`` seconds no further program is started.
    """
    until = time.monotonic() + budget
    cores = len(os.sched_getaffinity(0))
    places = jobs or max(2, int(cores * PER_CORE))
    runner, shares = Runner(), _shares(gpus)
    cases = list(map(judge, seeds)) if jobs == 1 else _judged(seeds, cores)
    again: list[Measured] = []
    with ThreadPoolExecutor(max_workers=places) as threads:
        for first in threads.map(lambda case: _measure(case, runner, shares, until), cases):
            if first.complaint is None and not first.differs_from_paper:
                yield first
            else:
                again.append(first)
    with ThreadPoolExecutor(max_workers=max(1, places // 4)) as threads:
        for first, second in zip(
            again, threads.map(lambda one: _measure(one.case, runner, shares, until), again), strict=True
        ):
            yield first if second.outcome is None else second


def _judged(seeds: Sequence[int], jobs: int) -> list[Case]:
    """What paper shows and the linter says, by so many processes."""
    with ProcessPoolExecutor(max_workers=jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(judge, seeds))


def summary(measured: Iterable[Measured], seed: int, gpus: Gpus, seconds: float) -> dict[str, Any]:
    """All of it as one document."""
    programs = sorted(measured, key=lambda one: one.case.seed)
    ran = [one for one in programs if one.outcome is not None]
    place = this_place(gpus)
    return {
        "seed": seed,
        "count": len(programs),
        "ran": len(ran),
        "seconds": round(seconds),
        "machine": {"gpus": list(place.gpus), "driver": place.driver, "python": place.python},
        "versions": dict(place.versions),
        "observed": dict(Counter(one.outcome for one in ran).most_common()),
        "linter agrees": sum(one.complaint is None for one in ran),
        "paper agrees": sum(not one.differs_from_paper for one in ran),
        "programs": {str(one.case.seed): one.as_json() for one in programs},
    }


def measure_all(seed: int, count: int, jobs: int | None, budget: float, out: Path | None) -> int:
    """Run a sample, print what differs, and keep the summary; 1 if something differs, 2 if nothing could run."""
    gpus, began = discover(), time.monotonic()
    if not gpus.devices:
        print("no GPU was found: nothing ran")
        return 2
    found: list[Measured] = []
    for one in sample(range(seed, seed + count), gpus, jobs, budget):
        found.append(one)
        for line in _lines(one):
            print(line, flush=True)
    document = summary(found, seed, gpus, time.monotonic() - began)
    if out is not None:
        out.write_text(json.dumps(document, indent=1))
    print(json.dumps({key: value for key, value in document.items() if key != "programs"}))
    if not document["ran"]:
        return 2
    return 0 if document["ran"] == document["linter agrees"] == document["paper agrees"] else 1


def _lines(one: Measured) -> Iterator[str]:
    seed, said = one.case.seed, "; ".join(map(str, one.case.said)) or "nothing"
    if one.outcome is None:
        yield f"seed {seed}: not run, {one.why_not}"
    if one.complaint is not None:
        yield f"seed {seed}: linter: {one.complaint}; hardware {one.outcome}, said {said}"
    if one.differs_from_paper:
        yield f"seed {seed}: paper: {one.case.outcome}, hardware {one.outcome}"


def _shares(gpus: Gpus) -> list[dict[str, str]]:
    """The environments by which programs are spread over the GPUs; with one GPU nothing is set."""
    if len(gpus.devices) < 2:
        return [{}]
    return [{"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": str(gpu.index)} for gpu in gpus.devices]


def _measure(case: Case, runner: Runner, shares: Sequence[dict[str, str]], until: float) -> Measured:
    missing = sorted(name for name in set(_IMPORT.findall(case.text)) if find_spec(name) is None)
    if missing:
        return Measured(case, None, "", 0.0, None, f"{', '.join(missing)} not installed")
    if time.monotonic() > until:
        return Measured(case, None, "", 0.0, None, "the budget was spent")
    environment = ENVIRONMENT | shares[case.seed % len(shares)]

    def execute(program: Path) -> Observed:
        run = runner.run(program, Limits(seconds=LIMIT), environment)
        seen = observe(run)
        return Observed(seen.outcome.value, run.code, run.stdout, run.stderr, run.seconds, dict(run.deaths))

    with tempfile.TemporaryDirectory(prefix="oracle-") as folder:
        path = Path(folder) / f"program_{case.seed}.py"
        path.write_text(case.text)
        seen = watched(path, QUIET, execute)
    outcome = outcome_of(seen.outcome, seen.stdout)
    return Measured(case, outcome, seen.text, seen.seconds, disagreement(outcome, seen.text, case.said))
