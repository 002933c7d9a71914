"""What was judged, and what was complained of, by kind: the same whatever order the answers come in."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from fuzz.inputs import Drawn
from fuzz.judge import Complaints
from fuzz.judges import Asked

# So many cases of a kind are named.
MOST_NAMED = 12


def kind(complaint: str) -> str:
    """What is the same for two complaints of one fault: its words without what is in them of a program.

    Where the time was up is chance.
    """
    return re.sub(r"'[^']*'|\d+(\.\d+)?", "_", re.sub(r"( of processor time), in .*", r"\1", complaint))


@dataclass(frozen=True)
class Failure:
    """A case, the property that it breaks, and how."""

    case: Asked
    name: str
    complaint: str

    @property
    def kind(self) -> str:
        return kind(self.complaint)

    def order(self) -> tuple[int, str, str]:
        """Those of small numbers come first."""
        return self.case.number if isinstance(self.case, Drawn) else 0, self.case.name, self.complaint


class Tally:
    """Counts answers, and keeps what failed."""

    def __init__(self, properties: Sequence[str]) -> None:
        self.cases = 0
        self._properties = properties
        self._names: set[str] = set()
        self._failed: Counter[str] = Counter()
        self._kinds: dict[tuple[str, str], list[Failure]] = defaultdict(list)

    def add(self, case: Asked, complaints: Complaints) -> None:
        """Take an answer."""
        self.cases += 1
        self._names.add(case.name)
        for name, found in complaints.items():
            self._failed[name] += 1
            by_kind = {kind(complaint): Failure(case, name, complaint) for complaint in reversed(found)}
            for each, failure in by_kind.items():
                self._kinds[name, each].append(failure)

    @property
    def has_failures(self) -> bool:
        """Whether anything was complained of."""
        return bool(self._kinds)

    def first_failures(self) -> list[Failure]:
        """The first case of each kind, those of the most frequent kinds first."""
        return [failures[0] for _, failures in self._ranked()]

    def has(self, case: Asked) -> bool:
        """Whether there is an answer for a case."""
        return case.name in self._names

    def told(self) -> str:
        """Counts by property, and the cases of each kind."""
        rows = [f"{name}: {self.cases} judged, {self._failed[name]} failed" for name in self._properties]
        for (name, each), failures in self._ranked():
            named = ", ".join(failure.case.name for failure in failures[:MOST_NAMED])
            more = f" and {len(failures) - MOST_NAMED} more" if len(failures) > MOST_NAMED else ""
            rows.append(f"{len(failures):5} {name}: {each}\n      {named}{more}")
        return "\n".join(rows)

    def _ranked(self) -> list[tuple[tuple[str, str], list[Failure]]]:
        ordered = [(key, sorted(failures, key=Failure.order)) for key, failures in self._kinds.items()]
        return sorted(ordered, key=lambda item: (-len(item[1]), item[0]))
