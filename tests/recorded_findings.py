"""What is said of each finding in a fixture, as it was last read by a person: `recorded/CUDnnn.txt`.

`python recorded_findings.py` writes it anew (from `tests/`); read the difference before it is committed.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from fixture_markers import ROOT, broken

from cudalint.config import Config
from cudalint.finding import Finding, Fix
from cudalint.session import Session

FOLDER = Path(__file__).resolve().parent / "recorded"
_PART = re.compile(r"^##### (.*)\n", re.MULTILINE)


def text(findings: Iterable[Finding]) -> str:
    """Each finding with its place, outcome, condition, message, steps and repair."""
    return "".join(f"{line}\n" for finding in findings for line in _lines(finding))


def _lines(finding: Finding) -> Iterator[str]:
    start, end = finding.span.start, finding.span.end
    place = f"{start.row}:{start.column}-{end.row}:{end.column}"
    condition = "" if finding.condition is None else f", {finding.condition}"
    yield f"{place} {finding.code} {finding.severity.value}: {finding.outcome}{condition}"
    yield f"  {finding.message}"
    for step in finding.trace:
        row, column = step.span.start.row, step.span.start.column
        yield f"  {step.kind.value:<6} {row}:{column} [{step.process}] {step.message}"
    if finding.fix is not None:
        yield from _repair(finding.fix)


def _repair(fix: Fix) -> Iterator[str]:
    reason = "" if fix.reason is None else f" ({fix.reason})"
    yield f"  {fix.applicability.value}: {fix.message}{reason}"


def recorded() -> dict[str, str]:
    """What is recorded, by fixture."""
    found: dict[str, str] = {}
    for path in sorted(FOLDER.glob("*.txt")):
        _, *parts = _PART.split(path.read_text(encoding="utf-8"))
        found.update((f"{path.stem}/{name}", said) for name, said in zip(parts[::2], parts[1::2], strict=True))
    return found


def write() -> None:
    """Write what is said now."""
    session = Session(Config())
    said: defaultdict[str, list[str]] = defaultdict(list)
    for path in broken():
        said[path.parent.name].append(f"##### {path.name}\n{text(session.check([str(path)]).findings)}")
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.txt"):
        old.unlink()
    for name, parts in said.items():
        (FOLDER / f"{name}.txt").write_text("".join(parts), encoding="utf-8")


if __name__ == "__main__":
    write()
    print(f"written for {len(recorded())} fixtures in {ROOT}")
