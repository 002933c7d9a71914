"""Runs programs under paper CUDA, many at a time, and compares how they end with what cudalint says."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from typing import TypeVar

from paper.run import Observed, run
from paper.watch import watched

from oracle.grammar import Choice, draw
from oracle.render import render
from oracle.verdict import Said, disagreement, outcome_of, predict

T = TypeVar("T")

LIMIT = 60.0  # also on a busy machine: who hangs is noticed by stillness
QUIET = 1.0  # this long without work in any process is a hang: no program of the grammar waits for time
QUIET_LOADER = 2.6  # a loader gives its workers two seconds to end
# No program here fills a GPU, so that nothing depends on who comes first.
QUICK = {"PAPER_SLOWNESS": "0.1"}
# What is said is said of this Python, whatever it starts processes by.
OF_THIS_PYTHON = ""


@dataclass(frozen=True)
class Case:
    """One program, what happened, what was said, and how they differ."""

    seed: int
    choice: Choice
    text: str
    outcome: str
    output: str
    gaps: tuple[str, ...]
    said: tuple[Said, ...]
    complaint: str | None


def judge(seed: int) -> Case:
    """Generate, run and analyse the program of a seed; what does not come out the same twice is a race."""
    case = judge_choice(draw(seed), seed)
    return case if case.complaint is None else judge_choice(case.choice, seed)


def foretold(seed: int) -> tuple[str, tuple[Said, ...]]:
    """The program of a seed and what cudalint says about it: nothing else of cudalint decides the verdict."""
    text = render(draw(seed), seed)
    return text, tuple(predict(text))


def judge_choice(choice: Choice, seed: int) -> Case:
    """Run and analyse one program."""
    text = render(choice, seed)
    with tempfile.TemporaryDirectory(prefix="oracle-") as folder:
        path = Path(folder) / f"program_{seed}.py"
        path.write_text(text)
        observed = observe(path, QUIET_LOADER if choice.launcher == "loader" else QUIET)
    said = tuple(predict(text))
    outcome = outcome_of(observed.outcome, observed.stdout)
    complaint = disagreement(outcome, observed.text, said)
    if observed.gaps:
        complaint = f"paper CUDA does not know {', '.join(observed.gaps)}"
    return Case(seed, choice, text, outcome, observed.text, observed.gaps, said, complaint)


def judge_all(seeds: Iterable[int], jobs: int, budget: float = inf) -> Iterator[Case]:
    """Cases in the order of their seeds; after so many seconds no further one is begun."""
    return each(judge, seeds, jobs, budget)


def each(judge_one: Callable[[int], T], seeds: Iterable[int], jobs: int, budget: float = inf) -> Iterator[T]:
    """Judge many seeds, some at a time; the answers come in the order of the seeds.

    After ``budget`` seconds no further one is begun, and whoever ends the generator gets no answers of what still runs.
    """
    until = time.monotonic() + budget
    pool = ThreadPoolExecutor(max_workers=jobs)

    def in_time(seed: int) -> T | None:
        return judge_one(seed) if time.monotonic() < until else None

    try:
        for answer in pool.map(in_time, seeds):
            if answer is None:
                break
            yield answer
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def observe(program: Path, quiet: float, default: str = OF_THIS_PYTHON) -> Observed:
    """Run a program on paper, with this as its default start method; stillness of some seconds is a hang."""
    return watched(program, quiet, partial(on_paper, default=default))


def on_paper(program: Path, default: str = OF_THIS_PYTHON) -> Observed:
    """Run a program on a paper machine with one GPU."""
    paths = {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
    return run(program, gpus=1, limit=LIMIT, env=QUICK | paths | {"PAPER_START_METHOD": default})
