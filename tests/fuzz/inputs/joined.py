"""Several cases as one project, where starting processes for each would cost too much."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from fuzz.case import Case

TOGETHER = 12


def joined(cases: Iterable[Case]) -> Iterator[Case]:
    """Cases of so many, each in a folder of its own."""
    rest = iter(cases)
    while several := list(islice(rest, TOGETHER)):
        files = {f"case{i}/{name}": data for i, case in enumerate(several) for name, data in case.files.items()}
        yield Case(f"{several[0].name} to {several[-1].name}", files)
