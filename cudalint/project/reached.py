"""Which functions entries reached, and of which it was asked in vain."""

from __future__ import annotations

from collections.abc import Iterable

from cudalint.machine.interpreter import Machine
from cudalint.project.callers import Place
from cudalint.structs import Mutable, field


class Reached(Mutable):
    """The functions that entries reached so far: ``before`` anything was assumed, and in all.

    ``missed`` are those of which it was asked since the last ``begin``, and that were not.
    """

    places: set[Place] = field(default_factory=set)
    before: frozenset[Place] = frozenset()
    missed: set[Place] = field(default_factory=set)

    def begin(self, places: Iterable[Place]) -> None:
        """Have reached these, and been asked of none."""
        self.places = set(places)
        self.missed = set()

    def has(self, place: Place) -> bool:
        """Whether a function was reached; what rests on the answer rests on its not being reached later."""
        if place in self.places:
            return True
        self.missed.add(place)
        return False

    def note(self, machine: Machine) -> None:
        """Have reached what an entry did."""
        self.places.update((site.module, site.ordinal) for site in machine.record.reached)
