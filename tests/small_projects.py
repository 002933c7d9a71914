"""Small projects written as one text: files behind ``=== path`` lines, ``# expect: CODE`` on the row of a finding.

The files in ``projects/`` hold many of them, each behind a ``##### name`` line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from cudalint.finding import Finding
from cudalint.project.analysis import Options, analyse
from cudalint.text.source import SourceFile

FOLDER = Path(__file__).resolve().parent / "projects"
_CASE = re.compile(r"^##### (.*)\n", re.MULTILINE)
_FILE = re.compile(r"^=== (\S+)\n", re.MULTILINE)
_EXPECT = re.compile(r"#\s*expect:\s*([\w, ]+)")
ROOT = "/project"


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A finding by its file, row and code."""

    path: str
    row: int
    code: str


def cases(name: str) -> dict[str, str]:
    """The projects of one file, by name."""
    _, *parts = _CASE.split((FOLDER / name).read_text(encoding="utf-8"))
    return dict(zip(parts[::2], parts[1::2], strict=True))


def files(text: str) -> dict[str, str]:
    """The texts of a project by path."""
    _, *parts = _FILE.split(text)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def sources(given: dict[str, str]) -> list[SourceFile]:
    """The files as the analysis takes them."""
    return [SourceFile(f"{ROOT}/{path}", text, text.encode()) for path, text in given.items()]


def marked(given: dict[str, str]) -> set[Place]:
    """The findings that the markers name."""
    return {
        Place(path, row, code.strip())
        for path, text in given.items()
        for row, line in enumerate(text.splitlines(), 1)
        for match in _EXPECT.findall(line)
        for code in match.split(",")
    }


def findings(given: dict[str, str]) -> tuple[Finding, ...]:
    """What cudalint says about a project."""
    return analyse(sources(given), Options(), root=ROOT).findings


def places(found: tuple[Finding, ...]) -> set[Place]:
    """Findings as markers would name them."""
    return {Place(f.span.filename.removeprefix(f"{ROOT}/"), f.span.start.row, f.code) for f in found}


def hops(finding: Finding) -> list[str]:
    """A trace as ``segment file:row`` lines."""
    return [
        f"{step.kind.value} {step.span.filename.removeprefix(f'{ROOT}/')}:{step.span.start.row}"
        for step in finding.trace
    ]
