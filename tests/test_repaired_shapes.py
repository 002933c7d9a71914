"""What becomes of programs in the shapes that people write: ``repaired_shapes.txt`` has them as diffs.

A heading names the code of the first finding and how far its repair can be trusted; ``display`` is advice, which may
have an edit as well.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from cudalint.finding import Finding
from cudalint.fixes.edits import apply, as_changes
from cudalint.fixes.engine import repaired
from cudalint.project.analysis import Analysis, Options, analyse
from cudalint.text.source import SourceFile

_TEXT = (Path(__file__).parent / "repaired_shapes.txt").read_text(encoding="utf-8")
_, *_PARTS = re.split(r"^##### (CUD\d{3}) (\w+): (.*)\n", _TEXT, flags=re.MULTILINE)
SHAPES = dict(zip(_PARTS[2::4], zip(_PARTS[::4], _PARTS[1::4], _PARTS[3::4], strict=True), strict=True))


def files(diff: str) -> dict[str, str]:
    """The rows of each file, with their marks."""
    _, *parts = re.split(r"^=== (.*)\n", diff, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True)) if parts else {"program.py": diff}


def side(diff: str, marks: str) -> str:
    """The text before, or after."""
    return "".join(f"{row[2:]}\n" for row in diff.splitlines() if not row or row[0] in marks)


def analysed(texts: Mapping[str, str]) -> Analysis:
    return analyse([SourceFile(name, text, text.encode()) for name, text in texts.items()], Options())


def first(analysis: Analysis) -> Finding:
    return min(analysis.findings, key=lambda finding: finding.span.start)


@pytest.mark.parametrize("name", SHAPES)
def test_what_becomes_of_a_program(name: str) -> None:
    code, level, diff = SHAPES[name]
    before = {file: side(rows, " -") for file, rows in files(diff).items()}
    analysis = analysed(before)
    finding = first(analysis)
    fix = repaired(analysis, [finding])[finding]
    edits = {file: [edit for edit in fix.edits if edit.span.filename == file] for file in before}
    after = {file: apply(text, as_changes(text, edits[file])) for file, text in before.items()}
    assert (finding.code, fix.applicability.value) == (code, level)
    assert after == {file: side(rows, " +") for file, rows in files(diff).items()}
    if level != "display":
        left = [one for one in analysed(after).findings if (one.code, one.message) == (finding.code, finding.message)]
        assert left == []
