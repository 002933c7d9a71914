"""`python -m paper.record [PYTEST ARGUMENTS]`: run what changed since it was recorded, and record what passes.

From `tests/`. The record (`passed.txt`) has one line for each test that passed on paper: the hash of everything that
decides (`ingredients.py`) and the name of the test. A test whose hash is there need not run again. `--all-paper` runs
all; arguments that choose tests (`-k`, a file) leave the lines of others as they are. A line is true by itself, so that
git joins the lines of two branches (`.gitattributes`).
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import Enum
from pathlib import Path

import pytest

from paper.ingredients import ROOT

PASSED = Path(__file__).with_name("passed.txt")
# Each day's runs are one in so many: what no hash sees shows within this many days.
SLICES = 36


class Need(Enum):
    """Whether a test has to run."""

    NONE = "as recorded"
    DUE = "run because it is their day"
    CHANGED = "run because they changed"
    ASKED = "run because all were asked for"


@dataclass(frozen=True, slots=True)
class Record:
    """What passed: hashes by test."""

    passed: Mapping[str, frozenset[str]]

    def need(self, test: str, digest: str, day: date) -> Need:
        """Whether a test whose hash is this has to run on a day."""
        if digest not in self.passed.get(test, ()):
            return Need.CHANGED
        return Need.DUE if is_due(test, day) else Need.NONE


def is_due(test: str, day: date) -> bool:
    """Whether a test runs on this day in any case."""
    number = int.from_bytes(hashlib.sha256(test.encode()).digest()[:4], "big")
    return (number - day.toordinal()) % SLICES == 0


def read(path: Path = PASSED) -> Record:
    """The record as it lies there; empty where there is none."""
    passed: dict[str, set[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        digest, _, test = line.partition("  ")
        passed.setdefault(test, set()).add(digest)
    return Record({test: frozenset(digests) for test, digests in passed.items()})


def write(passed: Mapping[str, frozenset[str]], path: Path = PASSED) -> None:
    """Write a record, by the names of tests."""
    lines = [f"{digest}  {test}\n" for test in sorted(passed) for digest in sorted(passed[test])]
    path.write_text("".join(lines), encoding="utf-8")


def files() -> list[Path]:
    """The test modules that ask the record."""
    return [path for path in sorted((ROOT / "tests").glob("test_*.py")) if "Unchanged" in path.read_text("utf-8")]


def main(arguments: Sequence[str]) -> int:
    """Run the tests that ask the record, and write it."""
    chosen = [one for one in arguments if one != "--all-paper"]
    how = "add" if chosen else "replace"
    where = [] if any(Path(one.partition("::")[0]).exists() for one in chosen) else list(map(str, files()))
    return pytest.main(["-q", "-n", "3", f"--record-paper={how}", *arguments, *where])


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
