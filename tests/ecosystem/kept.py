"""What cudalint said of a package, kept until one of the two changes: a long run goes on where it was stopped."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from cudalint import fingerprint


@dataclass(frozen=True, slots=True)
class Outcome:
    """One check of one package: its report as JSON, and what it took.

    ``wall`` and ``limit`` are seconds, ``size`` and ``peak`` bytes. ``over`` says that it was ended at its limit.
    """

    code: int
    report: str
    errors: str
    files: int
    size: int
    wall: float
    peak: int
    over: bool
    limit: float


def key(folder: Path) -> str:
    """A name for the cudalint of this checkout together with the package in ``folder``."""
    parts: list[str | bytes] = [fingerprint.analysis()]
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        parts += [path.relative_to(folder).as_posix(), path.read_bytes()]
    return fingerprint.digest(*parts)


def read(file: Path, wanted: str, limit: float) -> Outcome | None:
    """The outcome under this key; none where another run would get further than the one that was ended."""
    try:
        entry = json.loads(file.read_text(encoding="utf-8"))
        outcome = Outcome(**entry["outcome"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if entry["key"] != wanted or (outcome.over and outcome.limit < limit):
        return None
    return outcome


def write(file: Path, wanted: str, outcome: Outcome) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    scratch = file.with_suffix(".new")
    scratch.write_text(json.dumps({"key": wanted, "outcome": asdict(outcome)}), encoding="utf-8")
    os.replace(scratch, file)
