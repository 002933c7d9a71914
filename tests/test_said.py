"""What is said of programs that differ in one word: severity, code, outcome and message, where codes alone tell less.

`said.txt` has each program, and behind `=== said` a line for each finding.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from small_projects import files, findings

_CASE = re.compile(r"^##### (.*)\n", re.MULTILINE)
_, *_PARTS = _CASE.split((Path(__file__).parent / "said.txt").read_text(encoding="utf-8"))
CASES = dict(zip(_PARTS[::2], _PARTS[1::2], strict=True))


@pytest.mark.parametrize("name", CASES)
def test_what_is_said(name: str) -> None:
    given = files(CASES[name])
    expected = given.pop("said")
    found = (f"{f.severity.value} {f.code} {f.outcome}: {f.message}\n" for f in findings(given))
    assert "".join(found) == expected
