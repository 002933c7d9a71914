"""Formats for other programs, each read as its reader reads it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import junitparser
import pytest
from format_schemas import GITLAB, RDJSON

from cudalint.finding import Applicability, Edit, Finding, Fix, Position, Severity, Span
from cudalint.found import Effort, Report
from cudalint.report.render import OutputFormat, Style, render
from cudalint.structs import replace

Run = Callable[..., "subprocess.CompletedProcess[str]"]

TEXT = "\n" * 11 + "é = 'ü';    work()\n"
PLACE = Span("/project/train.py", Position(12, 10), Position(12, 17))


@pytest.fixture
def report(finding: Finding) -> Report:
    """An error, a warning and a note."""
    others = (replace(finding, severity=one, span=PLACE) for one in (Severity.WARNING, Severity.NOTE))
    return Report(findings=(finding, *others), texts={"/project/train.py": TEXT, "/project/lib.py": "\n\n"})


def text(report: Report, output_format: OutputFormat, *, unsafe_fixes: bool = False) -> str:
    return render(report, output_format, Style(False, "/project", unsafe_fixes=unsafe_fixes))


def test_gitlab(report: Report, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CI_PROJECT_DIR", raising=False)
    issues = json.loads(text(report, OutputFormat.GITLAB))
    jsonschema.validate(issues, GITLAB)
    assert [issue["severity"] for issue in issues] == ["major", "minor", "info"]
    assert len({issue["fingerprint"] for issue in issues}) == 3
    assert issues[0]["location"] == {"path": "train.py", "lines": {"begin": 12, "end": 12}}
    assert "before Python 3.14" in issues[0]["description"]
    assert text(Report(), OutputFormat.GITLAB) == "[]\n"
    monkeypatch.setenv("CI_PROJECT_DIR", "/")
    assert json.loads(text(report, OutputFormat.GITLAB))[0]["location"]["path"] == "project/train.py"
    # A runner may have its folders behind links, and stand-ins for one say what they like.
    (tmp_path / "builds").symlink_to("/project")
    for named in (tmp_path / "builds", "/elsewhere", "/proj"):
        monkeypatch.setenv("CI_PROJECT_DIR", str(named))
        assert json.loads(text(report, OutputFormat.GITLAB))[0]["location"]["path"] == "train.py"


def test_junit(report: Report) -> None:
    (suite,) = junitparser.JUnitXml.fromstring(text(report, OutputFormat.JUNIT).encode())
    assert (suite.tests, suite.failures, suite.skipped) == (3, 2, 1)
    first, second, third = suite
    assert (first.classname, first.name) == ("train.py", "CUD101 cuda-in-forked-worker at 12:10")
    assert [type(one.result[0]).__name__ for one in (first, second, third)] == ["Failure", "Failure", "Skipped"]
    assert "train.py:12:10: `work` uses CUDA" in first.result[0].message
    assert "before Python 3.14" in first.result[0].message
    (clean,) = junitparser.JUnitXml.fromstring(text(Report(), OutputFormat.JUNIT).encode())
    assert (clean.tests, clean.failures) == (1, 0)


def test_junit_of_names_that_xml_cannot_hold(finding: Finding) -> None:
    odd = replace(finding, message="\x00 <&> \x1b]", span=replace(PLACE, filename="/\udc80.py"))
    (suite,) = junitparser.JUnitXml.fromstring(text(Report(findings=(odd,)), OutputFormat.JUNIT).encode())
    assert suite.failures == 1


def test_rdjson_counts_bytes(report: Report) -> None:
    document = json.loads(text(report, OutputFormat.RDJSON))
    jsonschema.validate(document, RDJSON)
    first, second, third = document["diagnostics"]
    assert [one["severity"] for one in (first, second, third)] == ["ERROR", "WARNING", "INFO"]
    start, end = Position(12, 10), Position(12, 17)
    before = [TEXT.split("\n")[11][: place.column - 1] for place in (start, end)]
    assert first["location"]["range"] == {
        "start": {"line": 12, "column": len(before[0].encode()) + 1},
        "end": {"line": 12, "column": len(before[1].encode()) + 1},
    }
    assert first["relatedLocations"][0]["message"] == "main: initialises CUDA"
    assert "before Python 3.14" in first["message"]
    assert first["suggestions"] == []


def test_rdjson_suggests_what_may_be_repaired(finding: Finding) -> None:
    def edit(row: int, first: int, last: int, content: str) -> Edit:
        return Edit(Span("/project/train.py", Position(row, first), Position(row, last)), content)

    edits = (edit(2, 5, 8, "three"), edit(1, 1, 4, "two"))
    unsafe = Fix(Applicability.UNSAFE, "do", edits, "it may not")
    texts = {"/project/train.py": "one é\nfor one\n"}
    one = Report(findings=(replace(finding, fix=unsafe),), texts=texts)

    def suggestions(report: Report, unsafe_fixes: bool) -> list[dict[str, Any]]:
        document = json.loads(text(report, OutputFormat.RDJSON, unsafe_fixes=unsafe_fixes))
        jsonschema.validate(document, RDJSON)
        found = document["diagnostics"][0]["suggestions"]
        assert isinstance(found, list)
        return found

    assert suggestions(one, False) == []
    (made,) = suggestions(one, True)
    assert made["range"] == {"start": {"line": 1, "column": 1}, "end": {"line": 2, "column": 8}}
    assert made["text"] == "two é\nfor three"
    safe = replace(finding, fix=replace(unsafe, applicability=Applicability.SAFE))
    assert suggestions(Report(findings=(safe,), texts=texts), False) == [made]
    other = replace(unsafe, edits=(*edits, Edit(Span("/project/lib.py", *_ends()), "")))
    assert suggestions(Report(findings=(replace(finding, fix=other),), texts=texts), True) == []


def _ends() -> tuple[Position, Position]:
    return Position(1, 1), Position(1, 2)


def test_grouped(report: Report, finding: Finding) -> None:
    other = replace(finding, span=replace(PLACE, filename="/project/::odd.py"))
    two = replace(report, findings=(*report.findings, other))
    said = f"{finding.message} ({finding.condition})"
    assert text(two, OutputFormat.GROUPED).splitlines()[:8] == [
        "train.py:",
        f"  12:10: CUD101 {said}",
        f"  12:10: CUD101 {said}",
        f"  12:10: CUD101 note: {said}",
        "",
        "./::odd.py:",
        f"  12:10: CUD101 {said}",
        "",
    ]
    assert text(Report(effort=Effort(files_read=1)), OutputFormat.GROUPED) == "All checks passed!\n"


def test_json_lines_are_the_objects_of_json(report: Report) -> None:
    rows = text(report, OutputFormat.JSON_LINES).splitlines()
    assert [json.loads(row) for row in rows] == json.loads(text(report, OutputFormat.JSON))
    assert len({json.loads(row)["fingerprint"] for row in rows}) == 3
    assert text(Report(), OutputFormat.JSON_LINES) == ""


def test_every_format_is_written_by_the_command_line(run: Run, tmp_path: Path, forked: str) -> None:
    (tmp_path / "train.py").write_text(forked, encoding="utf-8")
    for output_format in OutputFormat:
        done = run("check", "--output-format", output_format.value)
        assert (done.returncode, done.stderr) == (1, "")
        assert "CUD101" in done.stdout
        assert run("check", "--isolated", "--ignore=ALL", "-q", "--output-format", output_format.value).returncode == 0
