"""Reads the headers and markers of fixtures."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import tomli

ROOT = Path(__file__).resolve().parent.parent / "fixtures"

_EXPECT = re.compile(r"#\s*expect:\s*(?P<list>CUD\d{3}@\d+(?:\s*,\s*CUD\d{3}@\d+)*)")
_MISSING = re.compile(r"#\s*expect-missing:\s*(?P<code>CUD\d{3})(?:\s*\((?P<reason>[^)]*)\))?")
_HEADER = re.compile(r"^# /// script\n(?P<body>(?:#.*\n)*?)# ///$", re.MULTILINE)


@dataclass(frozen=True, slots=True, order=True)
class Expected:
    """One finding that a fixture must have."""

    code: str
    row: int
    column: int


def expected(text: str) -> set[Expected]:
    """All ``# expect:`` markers of a text."""
    found: set[Expected] = set()
    for row, line in enumerate(text.splitlines(), 1):
        match = _EXPECT.search(line)
        for item in match["list"].split(",") if match else ():
            code, _, column = item.strip().partition("@")
            found.add(Expected(code, row, int(column)))
    return found


def known_misses(text: str) -> list[tuple[int, str, str | None]]:
    """Row, code and reason of each ``# expect-missing:`` marker."""
    rows = enumerate(text.splitlines(), 1)
    return [(row, m["code"], m["reason"]) for row, line in rows for m in [_MISSING.search(line)] if m]


def header(text: str) -> Mapping[str, object]:
    """The ``[tool.cudalint]`` table of a fixture's header; empty without one."""
    match = _HEADER.search(text)
    if match is None:
        return {}
    lines = [line[2:] if line.startswith("# ") else line[1:] for line in match["body"].splitlines()]
    document = tomli.loads("\n".join(lines))
    table = document.get("tool", {}).get("cudalint", {})
    return table if isinstance(table, dict) else {}


def programs() -> list[Path]:
    """Every single-file fixture, seeds included, as printed blocks not."""
    return sorted(p for p in ROOT.glob("*/*.py") if p.parent.name != "as_printed")


def broken() -> list[Path]:
    """The single-file fixtures that have findings."""
    return [path for path in programs() if expected(path.read_text(encoding="utf-8"))]


def folders() -> list[Path]:
    """The main program of each fixture of several files: the one with a header."""
    candidates = (p for p in ROOT.glob("*/*/**/*.py") if re.match(r"(?:broken|ok)_", p.relative_to(ROOT).parts[1]))
    return sorted(p for p in candidates if header(p.read_text(encoding="utf-8")))


def folder_of(program: Path) -> Path:
    """The folder of a fixture of several files."""
    return ROOT.joinpath(*program.relative_to(ROOT).parts[:2])
