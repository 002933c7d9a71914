"""What cudalint says about a program at this moment."""

from __future__ import annotations

from pathlib import Path

from cudalint.config import Config
from cudalint.finding import Severity
from cudalint.intake import INTERNAL_ERROR, SYNTAX_ERROR
from cudalint.session import Session
from cudalint.structs import Frozen

# Codes that say that there is no prediction.
UNREADABLE = frozenset({INTERNAL_ERROR, SYNTAX_ERROR})


class Prediction(Frozen):
    """One finding: where, how bad, and how the program is said to end."""

    code: str
    row: int
    column: int
    severity: Severity
    outcome: str | None

    def __str__(self) -> str:
        return f"{self.code}@{self.row}:{self.column}"


def predict(program: Path) -> tuple[Prediction, ...]:
    """The findings of a program, or of a folder of modules, taken by itself, whatever the configuration around says."""
    report = Session(Config(exclude=()).as_measured()).check((str(program),))
    return tuple(
        Prediction(
            code=finding.code,
            row=finding.span.start.row,
            column=finding.span.start.column,
            severity=finding.severity,
            outcome=finding.outcome,
        )
        for finding in report.findings
    )
