"""Several cases as one project, where starting processes for each would cost too much."""

from __future__ import annotations

from collections.abc import Sequence

from fuzz.case import Case

TOGETHER = 12


def joined(cases: Sequence[Case]) -> Case:
    """Cases, each in a folder of its own."""
    files = {f"case{i}/{name}": data for i, case in enumerate(cases) for name, data in case.files.items()}
    return Case(f"{cases[0].name} to {cases[-1].name}", files)
