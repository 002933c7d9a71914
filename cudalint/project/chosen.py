"""A program that is given another word for one of its options than the default, and what only then goes wrong."""

from __future__ import annotations

from collections.abc import Collection

from cudalint.machine import heap
from cudalint.machine.assumptions import Assumption
from cudalint.machine.outcome import Doubt, Outcome
from cudalint.machine.state import State
from cudalint.machine.values import const
from cudalint.project.entry_result import EntryResult
from cudalint.structs import Frozen, replace

# So many words of the options of one program are tried, one at a time. All together take no more steps than that many
# runs of the program, where these are few some more, and no more than one run may take.
MOST_CHOICES, MOST_RUNS, FEWEST_STEPS, MOST_STEPS = 4, 2, 2_000, 12_000


class Choice(Frozen):
    """An option as a user spells it, and the word that it is given."""

    flag: str
    word: str

    @property
    def said(self) -> str:
        """What a user writes."""
        return f"{self.flag} {self.word}"

    def give(self, state: State) -> None:
        """Put it on the command line of a program that is about to begin, where there may be more."""
        state.store(heap.ARGV, heap.Sequence("list", (const(self.flag), const(self.word)), open=True))

    def alone(self, found: EntryResult, usual: Collection[EntryResult]) -> EntryResult:
        """What comes of this choice alone: what also happens without it is known, and better, from there."""
        known = {(outcome.kind, outcome.anchor) for result in usual for outcome in result.outcomes}
        launched = {launch for result in usual for launch in result.launches}
        new = (o for o in found.outcomes if not o.benign and (o.kind, o.anchor) not in known)
        return replace(
            found,
            outcomes=tuple(map(self._doubted, new)),
            launches={launch: made for launch, made in found.launches.items() if launch not in launched},
            # It is looked as far as that goes.
            cut=None,
        )

    def _doubted(self, outcome: Outcome) -> Outcome:
        given = Assumption(f"`{self.said}`", "is given")
        assumptions = (given, *outcome.assumptions)
        return replace(outcome, certain=False, doubt=Doubt.CHOSEN, assumptions=assumptions, outlived=False)
