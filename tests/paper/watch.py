"""Notices early that a program hangs: nothing moves any more in any of its processes."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from paper.run import Observed

MOST_PROCESSES = 40  # a pool that replaces its workers for ever


def watched(program: Path, quiet: float, execute: Callable[[Path], Observed]) -> Observed:
    """Run a program; one in which nothing moves for ``quiet`` seconds is ended and counts as a hang."""
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
