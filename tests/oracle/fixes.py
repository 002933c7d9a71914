"""A repaired program against its reference: a safe repair changes nothing, any other says what it changes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from paper.run import Observed

from oracle.fix_grammar import Broken
from oracle.fix_render import LABELS, RAISED
from oracle.states import STATES


class Grade(Enum):
    """The least trusted of the repairs that a program needs."""

    NONE = "none"
    SAFE = "safe"
    UNSAFE = "unsafe"


@dataclass(frozen=True)
class Repair:
    """What cudalint made of a program: its files afterwards, and why its repairs are not safe."""

    grade: Grade
    files: Mapping[str, str]
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Runs:
    """How the program ended as it is, with a loop in place of its workers, and as its repair leaves it."""

    as_it_is: Observed
    reference: Observed
    repaired: Observed | None


@dataclass(frozen=True)
class Complaint:
    """What is wrong, and the kinds of state that it is about; whether it is how a program ends, not what it prints."""

    what: str
    kinds: tuple[str, ...] = field(compare=False)  # two programs may have the same wrong with them
    of_an_end: bool = False

    def __str__(self) -> str:
        return f"{self.what}: {', '.join(self.kinds)}" if self.kinds else self.what


BROKEN = "the repaired program is broken"
CHANGED = "a safe repair changes what is printed"
WORKED = "a safe repair of a program that works as it is"
_STATES = re.compile(rf" (?=[{LABELS}] )")
UNNAMED = "the reason does not name what differs"
CARRIED = "a safe repair, although tasks find what earlier ones left"
CAUTIOUS = "not safe, although nothing is inherited"


def complaint(choice: Broken, repair: Repair, runs: Runs) -> Complaint | None:
    """What is wrong with a repair; None where nothing is, also where there is none."""
    gaps = {gap for run in (runs.as_it_is, runs.reference, runs.repaired) if run is not None for gap in run.gaps}
    if gaps:
        return Complaint(f"paper CUDA does not know {', '.join(sorted(gaps))}", ())
    if runs.reference.outcome != "ok":
        return Complaint(f"the reference ends with {runs.reference.outcome}", choice.states, True)
    if runs.as_it_is.outcome == "ok" and choice.crossing != "any":
        return Complaint("the program is not broken", choice.states, True)
    if repair.grade is Grade.NONE or runs.repaired is None:
        return None
    return _of_repair(choice, repair, runs, runs.repaired)


def _of_repair(choice: Broken, repair: Repair, runs: Runs, repaired: Observed) -> Complaint | None:
    safe = repair.grade is Grade.SAFE
    if repaired.outcome != "ok":
        return Complaint(f"{BROKEN} ({repair.grade.value}, {repaired.outcome})", choice.states, True)
    if safe and runs.as_it_is.outcome == "ok":
        return Complaint(WORKED, ())
    kinds = differing(choice, runs.reference.stdout, repaired.stdout)
    carried = tuple(name for name in choice.states if STATES[name].carried)
    if safe and carried:
        return Complaint(CARRIED, carried)
    if safe:
        return None if repaired.stdout == runs.reference.stdout else Complaint(CHANGED, kinds)
    unnamed = tuple(kind for kind in kinds if not named(kind, repair.reasons))
    if unnamed:
        return Complaint(UNNAMED, unnamed)
    if kinds or repaired.stdout == runs.reference.stdout:
        return _too_careful(choice)
    return Complaint("the output differs in what no state explains", choice.states)


def _too_careful(choice: Broken) -> Complaint | None:
    """Only plain programs are certain to be proven: those that catch nothing, ask for nothing, and have an order."""
    asks = choice.crossing != "none" or choice.touch == "is_available"
    if choice.channel == "file" and not choice.single:
        # Several workers add to one file: in which order, nothing settles.
        return None
    reused = choice.launcher.startswith("joblib")
    if not asks and all(kind.provable or (kind.handed and not reused) for kind in choice.kinds):
        return Complaint(CAUTIOUS, choice.states)
    return None


def named(kind: str, reasons: Iterable[str]) -> bool:
    """Whether a reason speaks of a kind of state."""
    return any(word in reason for word in STATES[kind].words for reason in reasons)


def differing(choice: Broken, wanted: str, got: str) -> tuple[str, ...]:
    """The kinds of state whose lines differ; where other lines do, all that are inherited may be why."""
    lines = Counter(_told(wanted))
    lines.subtract(_told(got))
    differ = [line for line, count in lines.items() if count]
    found = tuple(
        name
        for label, name in zip(LABELS, choice.states, strict=False)
        if any(line.startswith((f"{label} ", *STATES[name].marks)) for line in differ)
    )
    return found or (_inherited(choice) if wanted != got else ())


def _told(output: str) -> Iterator[str]:
    """The lines of an output; an exception tells of all states on one."""
    for line in output.splitlines():
        yield from _STATES.split(line) if line.startswith(RAISED) else (line,)


def _inherited(choice: Broken) -> tuple[str, ...]:
    found = tuple(name for name in choice.states if STATES[name].inherited)
    return found or choice.states
