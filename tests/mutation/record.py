"""Which test notices which mutant (`noticed.txt`): each test with the mutants that it ends; without one, first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

FILE = Path(__file__).resolve().parent / "noticed.txt"
# What is recorded: models grow most, and an entry without a test is a claim that nothing holds.
KIND = "model entry"
_NONE = "no test"
_INDENT = "    "


def read() -> dict[str, str | None]:
    """The test that notices a mutant, or None, by the mutant's name."""
    found: dict[str, str | None] = {}
    test: str | None = None
    for line in FILE.read_text(encoding="utf-8").splitlines():
        if line.startswith(_INDENT):
            found[f"{KIND} {line.strip()}"] = test
        else:
            test = None if line == _NONE else line
    return found


def write(noticed: Mapping[str, str | None]) -> None:
    """Record what was seen."""
    mutants: defaultdict[str, list[str]] = defaultdict(list)
    for name, test in noticed.items():
        mutants[test or _NONE].append(name.removeprefix(f"{KIND} "))
    FILE.write_text("".join(_lines(mutants)), encoding="utf-8")


def _lines(mutants: Mapping[str, list[str]]) -> Iterable[str]:
    for test in sorted(mutants, key=lambda t: (t != _NONE, t)):
        yield f"{test}\n"
        yield from (f"{_INDENT}{name}\n" for name in sorted(mutants[test]))
