"""What a rule is: a code, a name, the worst severity hardware showed, and the outcomes it reports."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from cudalint.finding import Severity
from cudalint.machine.outcome import Doubt, Kind, Outcome
from cudalint.structs import Frozen, field


def measured(outcome: Outcome) -> Severity | None:
    """The severity that hardware showed, reduced where the code leaves something open.

    What merely costs, what the program catches and gets over, what only some paths show, and what an unseen caller
    decides is a warning; what the code shows to be meant, or to come to nothing as it stands, is a note.
    """
    if outcome.benign:
        return Severity.NOTE
    # A test may have asked for the failure that it is told of.
    gets_over = outcome.caught and (outcome.in_test or not outcome.told)
    soft = outcome.how in ("cost", "latent") or gets_over or outcome.assumed or not outcome.certain
    return Severity.WARNING if soft else Severity.ERROR


def warned(outcome: Outcome) -> Severity | None:
    """At most a warning."""
    return Severity.NOTE if outcome.benign else Severity.WARNING


class RepairLevel(Enum):
    """Whether findings of a rule come with a repair that can be made; advice alone does not count."""

    ALWAYS = "always"
    SOMETIMES = "sometimes"
    NEVER = "never"


# Doubts that readers need to know to judge a finding, whatever rule it is of.
_SAID = frozenset({Doubt.BOUND, Doubt.PLACES, Doubt.WORKERS})


class Rule(Frozen):
    """The record of one rule; the docstring of its module is its page.

    ``repair`` declares whether its findings can be repaired.

    ``severity`` is the worst one; a single finding can be softer, as ``grade`` says (None: no finding).
    ``summary`` is one sentence in lower case without a full stop, as in a table. ``outcomes`` are what
    the rule names, each with the text of its message; ``{subject}``, ``{launcher}``, ``{detail}``
    and ``{doubt}`` come from the outcome.
    """

    code: str
    name: str
    severity: Severity
    summary: str
    outcomes: dict[Kind, str] = field(default_factory=dict)
    grade: Callable[[Outcome], Severity | None] = measured
    repair: RepairLevel = RepairLevel.NEVER

    def message(self, outcome: Outcome) -> str:
        """What a finding of this rule says."""
        text = self.outcomes[outcome.kind]
        doubt = "" if outcome.reason is None else outcome.reason.value
        message = text.format(subject=outcome.subject, launcher=outcome.launcher, detail=outcome.detail, doubt=doubt)
        return f"{message} ({doubt})" if outcome.reason in _SAID else message
