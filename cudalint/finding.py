"""What cudalint says about a program: findings, the steps that lead to them, and edits.

Rows and columns are 1-based; columns count characters; ends are exclusive.
"""

from __future__ import annotations

from enum import Enum

from cudalint.structs import Frozen, Ordered


class Severity(Enum):
    """How bad the measured outcome is, the mildest first.

    A note is true and fails nothing as the code stands: meant, or harmless until a line changes.
    """

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"

    @property
    def rank(self) -> int:
        """Larger is worse."""
        return tuple(Severity).index(self)


class Applicability(Enum):
    """How far a repair can be trusted."""

    SAFE = "safe"
    UNSAFE = "unsafe"
    DISPLAY = "display"


class StepKind(Enum):
    """Which segment of a trace a step belongs to."""

    CAUSE = "cause"
    LAUNCH = "launch"
    EFFECT = "effect"
    STEP = "step"


class Position(Ordered):
    """A place in a text: 1-based row, 1-based column in characters."""

    row: int
    column: int


class Span(Ordered):
    """A stretch of one file, its end exclusive."""

    filename: str
    start: Position
    end: Position


def at(filename: str, row: int, column: int) -> Span:
    """One character of a file; a place without extent at its beginning, which stands for all of it, where row is 0."""
    if row == 0:
        return Span(filename, Position(1, 1), Position(1, 1))
    return Span(filename, Position(row, column), Position(row, column + 1))


class Step(Frozen):
    """One step of the path that leads to a finding.

    ``process`` names the process the step runs in: ``main``, ``worker``, ``rank`` ...
    """

    span: Span
    message: str
    kind: StepKind
    process: str


class Edit(Frozen):
    """Replace the text in ``span`` by ``content``."""

    span: Span
    content: str


class Fix(Frozen):
    """A repair: what it does, how far it can be trusted, and its edits.

    ``reason`` says why it is not safer, in words that complete "because"; None for a safe one. A repair that is
    only displayed may have no edits: then the message is the advice.
    """

    applicability: Applicability
    message: str
    edits: tuple[Edit, ...]
    reason: str | None = None


class Finding(Frozen):
    """One violation of one rule.

    ``span`` is the anchor: the call that names the worker or passes the value.
    ``noqa_rows`` are the rows of the anchor's call on which a suppression counts.
    ``outcome`` is what hardware shows (``crash``, ``hang`` ...); ``condition`` says when,
    where it depends on a version or a platform. ``caught``: it would be that, and the program handles the exception;
    ``told``: by sending it to another process.
    """

    code: str
    name: str
    severity: Severity
    message: str
    span: Span
    trace: tuple[Step, ...] = ()
    outcome: str | None = None
    condition: str | None = None
    fix: Fix | None = None
    noqa_rows: tuple[int, int] | None = None
    caught: bool = False
    told: bool = False

    @property
    def sort_key(self) -> tuple[str, int, int, str, str]:
        """Order in every report: by file, place, code."""
        start = self.span.start
        return (self.span.filename, start.row, start.column, self.code, self.message)
