"""Notices early that a program hangs: nothing moves any more in any of its processes.

What counts is how often one looked and saw nothing move, not how much time went by: on a busy machine, or one that
stood still itself, seconds pass in which nobody could have moved.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from paper.run import Observed

MOST_PROCESSES = 40  # a pool that replaces its workers for ever
BETWEEN = 0.1  # seconds between two looks, at least
_TICKS = 3  # so much processor time more is no move: what polls hangs, too


def watched(program: Path, quiet: float, execute: Callable[[Path], Observed]) -> Observed:
    """Run a program; one in which nothing moves for as many looks as make ``quiet`` seconds is ended: it hangs."""
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


class Stillness:
    """How often in a row nothing had moved."""

    def __init__(self, looks: int) -> None:
        self._looks, self._still = looks, 0
        self._last: dict[int, int | None] = {}

    def lasts(self, work: Mapping[int, int | None]) -> bool:
        """Whether nothing has moved for all these looks; ``work`` is what `_work` sees now."""
        has_moved = None in work.values() or work != self._last
        self._still = 0 if has_moved else self._still + 1
        self._last = dict(work)
        return self._still >= self._looks


class _Watch:
    """Follows the processes of one program from outside."""

    def __init__(self, program: Path, quiet: float) -> None:
        self.program, self.stillness = str(program.resolve()), Stillness(max(1, round(quiet / BETWEEN)))
        self.done, self.hung = threading.Event(), False
        self.seen: set[int] = set()

    def follow(self) -> None:
        """Look a few times a second until the run is over."""
        supervisor = main = None
        while not self.done.wait(BETWEEN):
            supervisor = supervisor or _find(_children(os.getpid()), self.program)
            main = main or (_find(_children(supervisor), self.program) if supervisor else None)
            if main is None or supervisor is None:
                continue
            now = _work(supervisor)
            self.seen.update(now)
            if self.stillness.lasts(now) or len(self.seen) > MOST_PROCESSES:
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


def _work(supervisor: int) -> dict[int, int | None]:
    """Every process below, with the processor time it has used; None for one with a thread that runs, or would."""
    moved: dict[int, int | None] = {}
    queue = _children(supervisor)
    while queue:
        pid = queue.pop()
        queue += _children(pid)
        fields = _fields(f"/proc/{pid}/stat")
        if fields:
            moved[pid] = None if _runs(pid) else (int(fields[11]) + int(fields[12])) // _TICKS
    return moved


def _runs(pid: int) -> bool:
    """Whether a thread of a process runs, waits for a processor, or for a disk."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return False
    return any(fields[0] in "RD" for one in threads if (fields := _fields(f"/proc/{pid}/task/{one}/stat")))


def _fields(path: str) -> list[str]:
    """What the kernel says of a process or a thread, from its state on; empty where it is gone."""
    return _read(path).rpartition(")")[2].split()


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""
