"""The runs that are compared, each in a process of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from ecosystem.usage import Usage, used

ROOT = Path(__file__).resolve().parents[2]
_READING = Path(__file__).with_name("reading.py")
_CUDALINT = (sys.executable, "-m", "cudalint")
_AGAINST_BYTECODE = ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")
# A program with a finding that is repaired, so that all of cudalint is imported.
_REPAIRED = ROOT / "fixtures" / "CUD101" / "broken_available_is_no_guard.py"


class Kind(Enum):
    """What is run on a project; the value is what tables and JSON call it."""

    READ = "read"
    RUFF = "ruff"
    COLD = "cold"
    WARM = "warm"
    TOUCHED = "touched"
    ALONE = "one file"


class Unusable(Exception):
    """A program that the benchmark needs is not there; the text says which."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What a run of cudalint did, as ``--verbose`` tells it; bytes are those of files."""

    files_read: int
    bytes_read: int
    files_parsed: int
    bytes_parsed: int
    nodes: int
    functions: int
    entries: int
    cut: int


@dataclass(frozen=True, slots=True)
class Sample:
    """One run: seconds of processor and clock, the most bytes of memory, and why it failed, empty where it did not."""

    project: str
    round: int
    kind: Kind
    cpu: float
    wall: float
    peak: int
    counts: Counts | None
    failure: str


@dataclass(frozen=True, slots=True)
class Project:
    """A folder that is measured, the file in it that is edited and checked alone, and where its cache may lie."""

    name: str
    folder: Path
    file: str
    cache: Path


@dataclass(frozen=True, slots=True)
class Tools:
    """What is measured: where ruff is, and whether this cudalint keeps a cache."""

    ruff: str
    caches: bool

    @staticmethod
    def here() -> Tools:
        """Those of this environment and this checkout; raises ``Unusable`` without ruff."""
        beside = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        ruff = shutil.which("ruff", path=beside)
        if ruff is None:
            raise Unusable("ruff is not installed: pip install -e '.[test,dev]'")
        return Tools(ruff, _keeps_a_cache())

    def command(self, kind: Kind, project: Project) -> tuple[str, ...]:
        """How a kind of run is started in the project's folder."""
        check = (*_CUDALINT, "check", "--verbose")
        cache = ("--cache-dir", str(project.cache)) if self.caches else ("--no-cache",)
        match kind:
            case Kind.READ:
                return (sys.executable, str(_READING), ".")
            case Kind.RUFF:
                return (self.ruff, "check", "--no-cache", "--isolated", "--quiet", "--exit-zero", ".")
            case Kind.COLD | Kind.WARM | Kind.TOUCHED:
                return (*check, *cache, ".")
            case Kind.ALONE:
                return (*check, "--no-cache", project.file)


def measured(tools: Tools, kind: Kind, project: Project, number: int, limit: float) -> Sample:
    """Run it once, in the state that its kind stands for: cold without a cache, touched after an edit."""
    if kind is Kind.COLD:
        shutil.rmtree(project.cache, ignore_errors=True)
    if kind is Kind.TOUCHED:
        _touch(project.folder / project.file, number)
    with tempfile.TemporaryFile() as errors, open(os.devnull, "wb") as nothing:
        usage = used(
            tools.command(kind, project),
            cwd=project.folder,
            environment=_environment(),
            output=nothing,
            errors=errors,
            limit=limit,
        )
        errors.seek(0)
        said = errors.read().decode("utf-8", "replace")
    counts = counted(said)
    failure = _failure(kind, usage, said, counts, limit)
    return Sample(project.name, number, kind, usage.cpu, usage.wall, usage.peak, counts, failure)


def rounds(
    tools: Tools, projects: tuple[Project, ...], kinds: tuple[Kind, ...], count: int, limit: float
) -> Iterator[Sample]:
    """Every kind on every project, and again, so that what disturbs the machine disturbs all alike.

    What failed once is not repeated.
    """
    hopeless: set[tuple[str, Kind]] = set()
    for number in range(1, count + 1):
        for project in projects:
            for kind in kinds:
                if (project.name, kind) in hopeless:
                    continue
                sample = measured(tools, kind, project, number, limit)
                if sample.failure:
                    hopeless.add((project.name, kind))
                if sample.failure and kind is Kind.COLD:
                    # What builds on a cold run fares no better.
                    hopeless.update((project.name, later) for later in (Kind.WARM, Kind.TOUCHED))
                yield sample


_NUMBER = r"([\d,]+)"
_COUNTS = (
    rf"\bread {_NUMBER} files",
    rf"\bread [\d,]+ files \({_NUMBER} bytes\)",
    rf"\bparsed {_NUMBER} ",
    rf"\bparsed [\d,]+ \({_NUMBER} bytes\)",
    rf"\blowered {_NUMBER} nodes",
    rf"\bentered {_NUMBER} functions",
    rf"\bran {_NUMBER} entries",
    rf"\b{_NUMBER} cut\b",
)


def counted(said: str) -> Counts | None:
    """The counts in what ``cudalint check --verbose`` said last; None where it said none, as other programs do."""
    last = said.strip().rpartition("\n")[2]
    found = [re.search(pattern, last) for pattern in _COUNTS]
    numbers = [int(match.group(1).replace(",", "")) for match in found if match is not None]
    return Counts(*numbers) if len(numbers) == len(_COUNTS) else None


def _failure(kind: Kind, usage: Usage, said: str, counts: Counts | None, limit: float) -> str:
    if usage.over:
        return f"more than {limit:.0f} s"
    is_cudalint = kind not in (Kind.READ, Kind.RUFF)
    if usage.code not in ((0, 1) if is_cudalint else (0,)):
        last = said.strip().rpartition("\n")[2]
        return f"ended with {usage.code}: {last[-200:]}"
    return "no counts" if is_cudalint and counts is None else ""


def _touch(path: Path, number: int) -> None:
    """Change a comment: each round another one, so that no cache has seen the file."""
    head, _, _ = path.read_bytes().partition(b"\n# touched")
    path.write_bytes(head + f"\n# touched by round {number}\n".encode())


def _keeps_a_cache() -> bool:
    """Whether there is a cache; what runs for that writes the bytecode that an installed cudalint has."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(_REPAIRED, folder)
        command = [*_CUDALINT, "check", "--cache-dir", str(Path(folder) / "cache"), folder]
        done = subprocess.run(command, cwd=folder, env=_environment(), capture_output=True, check=False)
    return done.returncode == 1


def _environment() -> dict[str, str]:
    """This environment with this checkout, and with bytecode: each run would compile cudalint otherwise."""
    kept = {name: value for name, value in os.environ.items() if name not in _AGAINST_BYTECODE}
    return {**kept, "PYTHONPATH": str(ROOT)}
