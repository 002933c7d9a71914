"""A sample of the small projects, repaired as far as it goes: all stays Python, no error takes another's place.

What takes several files is whole after one run.
"""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest
from sampling import every
from small_projects import FOLDER, cases, files
from test_fixes import comments

from cudalint import config
from cudalint.finding import Finding, Severity
from cudalint.fixing.rounds import fix
from cudalint.session import Session

EVERY = every(19)
PROJECTS = [
    pytest.param(text, id=f"{path.stem}: {name}")
    for path in sorted(FOLDER.glob("*.txt"))
    for name, text in cases(path.name).items()
    if "# expect:" in text
][EVERY // 2 :: EVERY]


def errors(findings: tuple[Finding, ...]) -> Counter[str]:
    return Counter(one.code for one in findings if one.severity is Severity.ERROR)


@pytest.mark.parametrize("text", PROJECTS)
def test_a_repaired_project_is_python_and_has_no_new_errors(tmp_path: Path, text: str) -> None:
    for name, content in files(text).items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    session = Session(config.load([str(tmp_path)]))
    before = errors(session.check([str(tmp_path)], repair=False).findings)
    done = fix(session, [str(tmp_path)], unsafe=True)
    assert errors(done.report.findings) <= before
    for change in done.changes:
        old, new = change.before.decode(), change.after.decode()
        ast.parse(new)
        assert comments(new) >= comments(old)
        Path(change.path).write_bytes(change.after)
    if len(done.changes) > 1:
        again = fix(Session(config.load([str(tmp_path)])), [str(tmp_path)], unsafe=True)
        assert not again.changes, "a second run would change it"
