"""What was seen of an expression here, against what is recorded and what the models say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cudalint.structs import Frozen
from cudalint.verify.facts.claims import Claim
from cudalint.verify.facts.recorded import Expression

_LATER = "a child that uses CUDA afterwards"
_INSIDE = "in a child of a CUDA parent"


class Measured(Frozen):
    """One expression on this machine; ``why_not`` where nothing was seen."""

    framework: str
    expression: Expression
    seen: Mapping[str, Any]
    claim: Claim | None = None
    why_not: str = ""

    @property
    def differences(self) -> tuple[str, ...]:
        """How this machine differs from what is recorded."""
        return () if self.why_not or self.expression.is_new else tuple(_differences(self.expression, self.seen))

    @property
    def news(self) -> str:
        """What was seen of an expression of which nothing is recorded; empty for the others."""
        if self.why_not or not self.expression.is_new:
            return ""
        seen = self.seen
        told = [f"raises {seen['raised']}"] if seen.get("raised") else []
        told += [f"{_LATER} {_ends(seen['poisons'])} ({_line(seen['symptom'])})"] if "poisons" in seen else []
        told += [f"initialises CUDA: {_yes(seen['initialises'])}"] if "initialises" in seen else []
        told += [f"{_INSIDE}: {seen['in_child']} ({_line(seen['in_child_symptom'])})"] if "in_child" in seen else []
        return "; ".join(told)

    @property
    def contradictions(self) -> tuple[str, ...]:
        """How the models differ from this machine; what always raises says nothing about them."""
        if self.why_not or self.claim is None or self.seen.get("raised") or self.expression.raises:
            return ()
        return tuple(_contradictions(self.claim, self.seen))


def _differences(recorded: Expression, seen: Mapping[str, Any]) -> Iterator[str]:
    if seen.get("raised") and not recorded.raises:
        yield f"raised {seen['raised']}"
    poisons = seen.get("poisons")
    if poisons is not None and recorded.poisons is not None and poisons != recorded.poisons:
        yield f"{_LATER} {_ends(poisons)} ({_line(seen['symptom'])}), recorded: {_ends(recorded.poisons)}"
    elif poisons and recorded.symptom and recorded.symptom not in str(seen["symptom"]):
        yield f"{_LATER} says {_line(seen['symptom'])!r}, recorded: {recorded.symptom!r}"
    ready = seen.get("initialises")
    if ready is not None and recorded.initialises is not None and ready != recorded.initialises:
        yield f"initialises CUDA: {_yes(ready)}, recorded: {_yes(recorded.initialises)}"
    child = seen.get("in_child")
    if child is not None and recorded.in_child is not None and child != recorded.in_child:
        yield f"{_INSIDE}: {child} ({_line(seen['in_child_symptom'])}), recorded: {recorded.in_child}"


def _contradictions(claim: Claim, seen: Mapping[str, Any]) -> Iterator[str]:
    poisons = seen.get("poisons")
    if poisons is not None and poisons != claim.poisons:
        yield f"{_LATER} {_ends(poisons)}, the models say it {_ends(claim.poisons)}"
    child = seen.get("in_child")
    if child is not None and (child != "ok") != claim.in_child:
        yield f"{_INSIDE} it {_ends(child != 'ok')}, the models say it {_ends(claim.in_child)}"


def _line(text: object) -> str:
    return str(text).partition("\n")[0]


def _ends(fails: bool) -> str:
    return "fails" if fails else "works"


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"
