"""What has to be so for something to come about, where several paths lead to it: not what others make up for."""

from __future__ import annotations

from collections.abc import Sequence

from cudalint.machine import questions
from cudalint.machine.assumptions import Facts
from cudalint.machine.questions import Fact
from cudalint.structs import Mutable

# Of more ways, and of more cases, it is not asked what they have in common: each is said as it is.
MOST_WAYS = 24
_MOST_CASES = 400


def needed(way: Facts, ways: Sequence[Facts]) -> Facts:
    """What a way assumes without that whose opposite leads to the same, by one way or another."""
    if len(ways) > MOST_WAYS:
        return way
    left = way
    for question, answer in way:
        rest = tuple(fact for fact in left if fact != (question, answer))
        if _Cases(_MOST_CASES).are_met(ways, (*rest, (question, not answer))):
            left = rest
    return left


def needs_either(told: Facts, way: Facts, ways: Sequence[Facts]) -> bool:
    """Whether a way needs one of these facts: not where with none of them one of the ways is open all the same."""
    if len(ways) > MOST_WAYS:
        return True
    neither = tuple((question, not answer) for question, answer in told)
    return not _Cases(_MOST_CASES).are_met(ways, (*way, *neither))


def cover_all(ways: Sequence[Facts]) -> bool:
    """Whether one of these ways is open, whatever is so."""
    return len(ways) <= MOST_WAYS and (() in ways or _Cases(_MOST_CASES).are_met(ways, ()))


class _Cases(Mutable):
    left: int

    def are_met(self, ways: Sequence[Facts], given: Facts) -> bool:
        """Whether one of these ways is open in each case that can be where these facts hold."""
        self.left -= 1
        if self.left < 0:
            return False
        possible = [opened for way in ways if (opened := _open(way, given)) is not None]
        if not possible or not all(possible):
            return bool(possible)
        question, _ = min(possible, key=len)[0]
        return all(self.are_met(possible, (*given, (question, answer))) for answer in (True, False))


def _open(way: Facts, given: Facts) -> Facts | None:
    """What a way assumes beside these facts; None where they contradict it."""
    left: list[Fact] = []
    for question, wanted in way:
        answer = questions.answered(given, question)
        if answer is (not wanted):
            return None
        if answer is None:
            left.append((question, wanted))
    return tuple(left)
