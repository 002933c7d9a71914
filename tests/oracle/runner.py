"""Runs programs under paper CUDA, many at a time, and notices early that one hangs."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from paper.run import Observed, run

from oracle.grammar import Choice, draw
from oracle.render import render
from oracle.verdict import Said, disagreement, outcome_of, predict

LIMIT = 8.0
QUIET = 1.0  # this long without work in any process is a hang: no program of the grammar waits for time
QUIET_LOADER = 2.6  # a loader gives its workers two seconds to end
QUICK = {"PAPER_SLOWNESS": "0.1"}  # no program here fills a GPU, so that nothing depends on who comes first
MOST_PROCESSES = 40  # a pool that replaces its workers for ever


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


def judge_choice(choice: Choice, seed: int) -> Case:
    """Run and analyse one program."""
    text = render(choice, seed)
    with tempfile.TemporaryDirectory(prefix="oracle-") as folder:
        path = Path(folder) / f"program_{seed}.py"
        path.write_text(text)
        observed = watched(path, QUIET_LOADER if choice.launcher == "loader" else QUIET)
    said = tuple(predict(text))
    outcome = outcome_of(observed.outcome, observed.stdout)
    complaint = disagreement(outcome, observed.text, said)
    if observed.gaps:
        complaint = f"paper CUDA does not know {', '.join(observed.gaps)}"
    return Case(seed, choice, text, outcome, observed.text, observed.gaps, said, complaint)


def judge_all(seeds: Iterable[int], jobs: int) -> Iterator[Case]:
    """Cases in the order of their seeds."""
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        yield from pool.map(judge, seeds)


def on_paper(program: Path) -> Observed:
    """Run a program on a paper machine with one GPU."""
    paths = {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
    return run(program, gpus=1, limit=LIMIT, env=QUICK | paths)


def watched(program: Path, quiet: float = QUIET, execute: Callable[[Path], Observed] = on_paper) -> Observed:
    """Run a program; one in which nothing moves any more is ended and counts as a hang."""
    watch = _Watch(program, quiet)
    thread = threading.Thread(target=watch.follow, daemon=True)
    thread.start()
    try:
        observed = execute(program)
    finally:
        watch.done.set()
        thread.join()
    if not watch.hung:
        return observed
    return Observed("hang", None, observed.stdout, observed.stderr, observed.seconds, gaps=observed.gaps)


class _Watch:
    """Follows the processes of one program from outside."""

    def __init__(self, program: Path, quiet: float) -> None:
        self.program, self.quiet = str(program.resolve()), quiet
        self.done, self.hung = threading.Event(), False
        self.seen: set[int] = set()

    def follow(self) -> None:
        """Look a few times a second until the run is over."""
        supervisor = main = None
        last: dict[int, int] = {}
        still = time.monotonic()
        while not self.done.wait(0.1):
            supervisor = supervisor or _find(_children(os.getpid()), self.program)
            main = main or (_find(_children(supervisor), self.program) if supervisor else None)
            if main is None or supervisor is None:
                continue
            now = _work(supervisor)
            self.seen.update(now)
            if now != last:
                last, still = now, time.monotonic()
            if time.monotonic() - still > self.quiet or len(self.seen) > MOST_PROCESSES:
                self._end(main)
                return

    def _end(self, main: int) -> None:
        self.hung = not self.done.is_set()
        try:
            os.kill(main, signal.SIGKILL)
        except ProcessLookupError:
            self.hung = False


def _find(pids: Iterable[int], word: str) -> int | None:
    for pid in pids:
        command = _read(f"/proc/{pid}/cmdline")
        if word in command.split("\0"):
            return pid
    return None


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            found += [int(child) for child in _read(f"/proc/{pid}/task/{task}/children").split()]
    except OSError:
        pass
    return found


def _work(supervisor: int) -> dict[int, int]:
    """Every process below, with the processor time it has used; one that runs now has always moved."""
    moved: dict[int, int] = {}
    queue = _children(supervisor)
    while queue:
        pid = queue.pop()
        queue += _children(pid)
        fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
        if not fields:
            continue
        used = (int(fields[11]) + int(fields[12])) // 3
        moved[pid] = time.monotonic_ns() if fields[0] in "RD" else used
    return moved


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""
