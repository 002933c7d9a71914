"""Runs a program and says what it took of the machine: the processor's seconds, the clock's, and memory."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

# Between two looks at a process at most so many seconds, and never more than a hundredth of what it has run.
LONGEST_WAIT = 0.05


@dataclass(frozen=True, slots=True)
class Usage:
    """What a program and the children that it waited for took.

    ``cpu`` and ``wall`` are seconds. ``peak`` is the most memory that any one of its processes held, in bytes; Linux
    counts from what the caller held when it started it. ``code`` is negative where a signal ended it. ``over`` says
    that it was ended because it took too long.
    """

    code: int
    cpu: float
    wall: float
    peak: int
    over: bool


class Interrupted(Exception):
    """Whoever wanted to know what a program takes no longer does."""


def used(
    command: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    output: BinaryIO,
    errors: BinaryIO,
    limit: float,
    stopped: Callable[[], bool] = lambda: False,
) -> Usage:
    """Run a command to its end, or for ``limit`` seconds; it is ended too, with all it started, when ``stopped``."""
    began = time.monotonic()
    # In a session of its own, so that it can be ended with all that it started.
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=errors,
        start_new_session=True,
    )
    over = False
    try:
        while True:
            pid, status, resources = os.wait4(process.pid, os.WNOHANG)
            elapsed = time.monotonic() - began
            if pid:
                break
            if stopped():
                raise Interrupted
            if elapsed > limit and not over:
                over = True
                os.killpg(process.pid, signal.SIGKILL)
            time.sleep(min(LONGEST_WAIT, elapsed / 100))
    except BaseException:
        # It hears no interruption of the terminal.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    process.returncode = os.waitstatus_to_exitcode(status)
    peak = resources.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return Usage(process.returncode, resources.ru_utime + resources.ru_stime, elapsed, peak, over)
