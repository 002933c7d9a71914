"""One measured behaviour as a tiny program, and whether it ends on paper as it did on hardware."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from paper.run import Observed, run
from paper.watch import watched

LIMIT = 60.0  # only a program that hangs takes this long, also on a busy machine
QUIET = 1.0  # no row that hangs waits for time


@dataclass(frozen=True)
class Row:
    """A program, how it must end, and what its output must (and must not) show."""

    id: str
    outcome: str
    program: str
    pattern: str = ""
    absent: str = ""
    gpus: int = 1
    env: dict[str, str] = field(default_factory=dict)


def check_row(row: Row, program: Path) -> list[str]:
    """Run the program of a row from this file; what differs from what was measured."""
    program.write_text(row.program)

    def execute(path: Path) -> Observed:
        return run(path, gpus=row.gpus, limit=LIMIT, env=row.env)

    seen = watched(program, QUIET, execute) if row.outcome == "hang" else execute(program)
    complaints = [f"paper CUDA does not know {name}" for name in seen.gaps]
    if seen.outcome != row.outcome:
        complaints.append(f"wanted {row.outcome}, observed {seen.outcome}")
    if not re.search(row.pattern, seen.text):
        complaints.append(f"no {row.pattern!r} in the output")
    if row.absent and re.search(row.absent, seen.text):
        complaints.append(f"{row.absent!r} in the output")
    return [*complaints, seen.text] if complaints else []
