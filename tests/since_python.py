"""What Python did otherwise before some version, so that what a program shows there is not what was measured."""

from __future__ import annotations

import sys

import pytest

# A lock of a fork context goes to a spawned process unnoticed before: that process dies when it looks for the lock, and
# who waits for what it was to send waits for ever (seen with Python 3.10.13).
_LOCKS_ARE_REFUSED = (3, 11, 5)
_SINCE = {
    "CUD101/ok_executor_max_tasks_per_child.py": (3, 11),
    "CUD108/broken_fork_lock_initargs.py": _LOCKS_ARE_REFUSED,
    "CUD108/broken_fork_queue.py": _LOCKS_ARE_REFUSED,
    "spawn-fork-lock": _LOCKS_ARE_REFUSED,
    "contextlib.chdir": (3, 11),
}


def is_as_measured(name: str) -> bool:
    """Whether the running Python does what was measured of a fixture, a row or a function."""
    return sys.version_info >= _SINCE.get(name, (3, 10))


def skip_where_otherwise(name: str) -> None:
    """Leave out the test of a fixture or a row that shows something else with the running Python."""
    if not is_as_measured(name):
        pytest.skip(f"this needs Python {'.'.join(map(str, _SINCE[name]))}")
