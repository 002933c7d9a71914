"""How much of a large table the tests take by themselves: a sample that stays the same, or all of it by command.

``CUDALINT_TESTS=all python -m pytest`` takes everything. Who names a file of tests gets all its rows.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from pathlib import Path

import pytest

# What was collected and is left to a run of everything.
LEFT_OUT: pytest.StashKey[list[pytest.Item]] = pytest.StashKey()
# Of the rows of these tables one in so many is a test of a run of all tests: each row is worth having while that is
# changed which it is about, and then its file is named; what all of them have in common a part shows as well.
SHARES = {
    "test_decisions.py": 3,
    "test_fixes.py": 3,
    "test_large_tables.py": 3,
    "test_library_calls.py": 4,
    "test_process_effects.py": 3,
    "test_projects.py": 4,
    "test_repaired_shapes.py": 3,
    "test_robustness.py": 3,
    "test_settings_files.py": 3,
    "test_spawn_programs.py": 8,
    "test_spawn_safety.py": 3,
    "test_verify_silent.py": 2,
}


def every(number: int) -> int:
    """The step of a sample that takes one of so many; 1 where all was asked for."""
    return 1 if _everything() else number


def split(items: Sequence[pytest.Item], arguments: Sequence[str]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """What is run of what was collected by these arguments, and what is left to a run of everything."""
    if _everything() or not all(Path(argument).is_dir() for argument in arguments):
        return list(items), []
    left = [item for item in items if _is_left(item)]
    out = set(left)
    return [item for item in items if item not in out], left


def _everything() -> bool:
    return os.environ.get("CUDALINT_TESTS") == "all"


def _is_left(item: pytest.Item) -> bool:
    share = SHARES.get(item.path.name, 1)
    return "[" in item.name and zlib.crc32(item.name.encode()) % share != 0
