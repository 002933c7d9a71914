"""``cudalint check --watch``: the same check again whenever a file changes, until it is interrupted."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from cudalint.config import ConfigError
from cudalint.discovery import NotFound
from cudalint.hosts import streams
from cudalint.hosts.exits import Exit

# By path: when it was changed, its size, and which file it is, as an editor may put another one in its place.
States: TypeAlias = Mapping[str, tuple[int, int, int]]

_PAUSE_SECONDS = 0.25
# Looking takes at most a part of the time, however large the project.
_PAUSES_FOR_A_LOOK = 10
_CLEAR = "\x1b[2J\x1b[3J\x1b[H"


def watch(files: Callable[[], Iterable[str]], check: Callable[[], int], *, quiet: bool) -> int:
    """Check now and after each change of a file, until that is interrupted or nobody reads on.

    Args:
        files: the files that count, as they are now.
        check: checks, prints, and gives an exit code.
        quiet: say nothing but what ``check`` says.

    Returns:
        The exit code of the last check.
    """
    out = _identity()
    code: int = Exit.CLEAN
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            before = _states(files)
            if sys.stdout.isatty():
                streams.put(_CLEAR)
            code = _checked(check)
            if not quiet:
                streams.say(f"cudalint: {len(before):,} files are watched; Ctrl-C ends it")
            while _states(files, before) == before:
                if not _has_reader(out):
                    return code
    return code


def _checked(check: Callable[[], int]) -> int:
    """One check; what is wrong with the settings is said, and the next state of them is another matter."""
    try:
        return check()
    except ConfigError as error:
        streams.say(f"cudalint: error: {error}")
    except NotFound as error:
        streams.say(f"cudalint: error: no such file or directory: {error}")
    return Exit.FAILED


def _states(files: Callable[[], Iterable[str]], before: States | None = None) -> States:
    """What the files are like; after a pause, if they were looked at ``before``."""
    if before is not None:
        time.sleep(_PAUSE_SECONDS)
    began = time.monotonic()
    found: dict[str, tuple[int, int, int]] = {}
    for path in files():
        with contextlib.suppress(OSError):
            state = os.stat(path)
            found[path] = state.st_mtime_ns, state.st_size, state.st_ino
    if before is not None:
        time.sleep(_PAUSES_FOR_A_LOOK * (time.monotonic() - began))
    return found


def _identity() -> tuple[int, int] | None:
    """Which file standard output is: another one, after its reader has gone."""
    try:
        state = os.fstat(sys.stdout.fileno())
    except (OSError, ValueError):
        return None
    return state.st_dev, state.st_ino


def _has_reader(out: tuple[int, int] | None) -> bool:
    if out is None or _identity() != out:
        return False
    if not hasattr(select, "poll"):  # not on Windows, where a reader that has gone is met when something is written
        return True
    asked = select.poll()
    asked.register(sys.stdout.fileno(), 0)
    return not any(event & (select.POLLERR | select.POLLHUP | select.POLLNVAL) for _, event in asked.poll(0))
