"""Small projects of several files have exactly the findings that their markers name."""

from __future__ import annotations

import pytest
from small_projects import FOLDER, cases, files, findings, marked, places

PROJECTS = [
    pytest.param(text, id=f"{path.stem}: {name}")
    for path in sorted(FOLDER.glob("*.txt"))
    for name, text in cases(path.name).items()
]


@pytest.mark.parametrize("text", PROJECTS)
def test_findings_match_the_markers(text: str) -> None:
    given = files(text)
    assert places(findings(given)) == marked(given)
