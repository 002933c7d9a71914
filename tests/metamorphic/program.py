"""The programs that are changed: every fixture, and generated ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import libcst as cst
from fixture_markers import ROOT, header, programs
from oracle.grammar import draw
from oracle.render import render

MAIN = "program"
Files = dict[str, cst.Module]  # by module name; the program itself is MAIN


@dataclass(frozen=True)
class Program:
    """A program as it stands: its text, and what its header promises (nothing for a generated one)."""

    name: str
    text: str
    header: Mapping[str, Any] = field(default_factory=dict)
    loader: bool = False

    @property
    def fixture(self) -> bool:
        """Whether a person wrote it."""
        return bool(self.header)


def fixtures() -> Iterator[Program]:
    """All fixtures of one file."""
    for path in programs():
        text = path.read_text(encoding="utf-8")
        yield Program(str(path.relative_to(ROOT)), text, header(text), "DataLoader" in text)


def generated(seed: int, count: int) -> Iterator[Program]:
    """Programs of the oracle's grammar."""
    for number in range(seed, seed + count):
        choice = draw(number)
        yield Program(f"seed {number}", render(choice, number), loader=choice.launcher == "loader")
