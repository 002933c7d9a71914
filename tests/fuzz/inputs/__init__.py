"""Where programs come from, by name: each source makes a case from a number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fuzz.case import Case
from fuzz.inputs import grammar, growing, hostile, mutants
from fuzz.inputs.joined import joined

Source = Callable[[int], Case]
SOURCES: dict[str, Source] = {
    "mutants": mutants.draw,
    "hostile": hostile.draw,
    "grammar": grammar.draw,
    "growing": growing.draw,
}
# How many numbers in a row share the work of making their cases, where any do.
BATCHES = {"grammar": grammar.BATCH}


@dataclass(frozen=True)
class Drawn:
    """The case of a number, not made yet; those of ``together`` numbers are one project."""

    source: str
    number: int
    together: int = 1

    @property
    def name(self) -> str:
        """What asks for it again."""
        last = self.number + self.together - 1
        return f"{self.source} {self.number}" + (f" to {last}" if self.together > 1 else "")

    def case(self) -> Case:
        """The case, the same each time; raises ``grammar.Missing``."""
        made = [SOURCES[self.source](number) for number in range(self.number, self.number + self.together)]
        return made[0] if self.together == 1 else joined(made)
