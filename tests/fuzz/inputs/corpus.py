"""Programs that people wrote: the fixtures, and the small projects of the tests."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import small_projects

from fuzz.case import Case

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"


@cache
def corpus() -> tuple[Case, ...]:
    """All of them, in an order that does not change."""
    return (*_fixtures(), *_projects())


def _fixtures() -> list[Case]:
    found: list[Case] = []
    for folder in sorted(FIXTURES.iterdir()):
        for path in sorted(folder.iterdir()):
            name = f"{folder.name}/{path.name}"
            if path.suffix == ".py":
                found.append(Case(name, {"program.py": path.read_bytes()}))
            elif path.is_dir():
                files = {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*.py"))}
                found.append(Case(name, files))
    return [case for case in found if case.files]


def _projects() -> list[Case]:
    found: list[Case] = []
    for path in sorted(small_projects.FOLDER.glob("*.txt")):
        for name, text in small_projects.cases(path.name).items():
            files = {file: body.encode() for file, body in small_projects.files(text).items()}
            found.append(Case(f"{path.stem}: {name}", files))
    return [case for case in found if any(name.endswith(".py") for name in case.files)]
