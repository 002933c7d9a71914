"""What cudalint said of a package, kept until one of the two changes: a long run goes on where it was stopped.

What is kept stands for itself: it can be made on one machine and compared with the reviewed list on another.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from reviewed import Finding

from cudalint import fingerprint


@dataclass(frozen=True, slots=True)
class Outcome:
    """One check of one package: what was found, and what it took.

    ``findings`` is None where cudalint came to no end: ``errors`` says why, unless ``over``, ended at its limit, does.
    ``wall`` and ``limit`` are seconds, ``size`` and ``peak`` bytes.
    """

    code: int
    findings: tuple[Finding, ...] | None
    errors: str
    files: int
    size: int
    wall: float
    peak: int
    over: bool
    limit: float


@dataclass(frozen=True, slots=True)
class Key:
    """The cudalint that checked and what it checked, by their contents."""

    cudalint: str
    package: str


@dataclass(frozen=True, slots=True)
class Kept:
    """An outcome and what it rests on."""

    key: Key
    outcome: Outcome


def key(folder: Path, files: Iterable[Path]) -> Key:
    """A name for the cudalint of this checkout, and one for these files of the package in ``folder``."""
    parts: list[str | bytes] = []
    for path in sorted(files):
        parts += [path.relative_to(folder).as_posix(), path.read_bytes()]
    return Key(fingerprint.analysis(), fingerprint.digest(*parts))


def read(file: Path) -> Kept | None:
    """What a file keeps; none where it is not there, or of another make."""
    try:
        entry = json.loads(file.read_text(encoding="utf-8"))
        found, known = entry["outcome"].pop("findings"), Key(**entry["key"])
        findings = None if found is None else tuple(_finding(**each) for each in found)
        return Kept(known, Outcome(findings=findings, **entry["outcome"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _finding(*, told: Iterable[str], **rest: str) -> Finding:
    return Finding(told=tuple(told), **rest)


def still_holds(kept: Kept, wanted: Key, limit: float) -> bool:
    """Whether another run would say the same; it may get further than one that was ended at an earlier limit."""
    return kept.key == wanted and not (kept.outcome.over and kept.outcome.limit < limit)


def write(file: Path, kept: Kept) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    scratch = file.with_suffix(".new")
    scratch.write_text(json.dumps(asdict(kept), indent=1), encoding="utf-8")
    os.replace(scratch, file)
