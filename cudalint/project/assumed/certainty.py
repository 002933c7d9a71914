"""How certain it is what goes wrong where a caller is assumed."""

from __future__ import annotations

from cudalint.machine.outcome import OF_INHERITING, Doubt, Outcome
from cudalint.structs import replace


def as_seen(outcome: Outcome) -> Outcome:
    """A launch after a use of CUDA that was seen is as certain as if a call were seen.

    What the launching function used itself counts where it also chooses the start method: else its callers may.
    """
    if outcome.kind not in OF_INHERITING or not outcome.certain or not outcome.cause or len(outcome.launch) < 2:
        return outcome
    launching = outcome.launch[-2].site
    is_own = any(step.site == launching for step in outcome.cause)
    return replace(outcome, doubt=Doubt.METHOD) if is_own and not outcome.chosen else replace(outcome, assumed=False)


def as_given(outcome: Outcome) -> Outcome:
    """What goes wrong where a caller gives options: one that gives none does not meet it."""
    return outcome if outcome.reason is not None else replace(outcome, doubt=Doubt.GIVEN)
