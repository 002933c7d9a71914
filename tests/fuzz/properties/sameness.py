"""The same bytes whatever the hash seed, the order of files, the number of processes, and what a cache holds."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from fuzz.case import Case, laid_out

# What must make no difference, as environment and arguments; the first is what the others are held against.
WAYS: Mapping[str, tuple[Mapping[str, str], tuple[str, ...]]] = {
    "as it is": ({"PYTHONHASHSEED": "0"}, ("--no-cache", "--jobs=1")),
    "another hash seed": ({"PYTHONHASHSEED": "4711"}, ("--no-cache", "--jobs=1")),
    "two processes": ({"PYTHONHASHSEED": "7"}, ("--no-cache", "--jobs=2")),
    "a new cache": ({"PYTHONHASHSEED": "8"}, ("--cache-dir=.kept", "--jobs=1")),
    "a full cache": ({"PYTHONHASHSEED": "9"}, ("--cache-dir=.kept", "--jobs=2")),
}


def complaints(case: Case) -> Iterator[str]:
    """The ways that give another report."""
    with laid_out(case) as top:
        wanted = None
        for way, (environment, arguments) in WAYS.items():
            told = _told(top, environment, (*arguments, "."))
            wanted = wanted or told
            if told != wanted:
                yield f"another report with {way}"
        for folder, order in (("files in order", 1), ("files backwards", -1)):
            names = sorted(name for name in case.files if name.endswith(".py"))[::order]
            if names and _told(top, {"PYTHONHASHSEED": "3"}, ("--no-cache", *names)) != wanted:
                yield f"another report with {folder}"


def _told(top: Path, environment: Mapping[str, str], arguments: tuple[str, ...]) -> tuple[int, str, str]:
    """Exit code and streams of a run."""
    done = subprocess.run(
        [sys.executable, "-m", "cudalint", "check", "--output-format", "full", *arguments],
        cwd=top,
        env={**os.environ, **environment, "CUDALINT_NO_CACHE": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr
