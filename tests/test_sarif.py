"""SARIF against the official schema, and what code scanning services take from it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from format_schemas import sarif

from cudalint import rules
from cudalint.finding import Finding
from cudalint.fixing.rounds import alone
from cudalint.found import Report
from cudalint.report import links
from cudalint.report.render import OutputFormat, Style, render
from cudalint.session import Session
from cudalint.structs import replace
from cudalint.text.lines import Rows

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def valid(text: str) -> dict[str, Any]:
    """The only run of a log that the schema takes."""
    document = json.loads(text)
    assert [f"{error.json_path}: {error.message}" for error in sarif().iter_errors(document)] == []
    (run,) = document["runs"]
    assert isinstance(run, dict)
    return run


def test_the_schema_refuses_what_is_no_log(finding: Finding) -> None:
    document = json.loads(render(Report(findings=(finding,)), OutputFormat.SARIF, Style(False, "/project")))
    document["runs"][0]["results"][0]["level"] = "fatal"
    assert not sarif().is_valid(document)


def test_runs_of_every_kind_are_valid(run: Run, tmp_path: Path, finding: Finding) -> None:
    valid(run("check", "--output-format=sarif").stdout)
    (tmp_path / "broken.py").write_text("def f(:\n", encoding="utf-8")
    (tmp_path / "café a.py").write_text("import torch\nx = 1  # noqa: CUD101\n", encoding="utf-8")
    (tmp_path / "binary.py").write_bytes(b"import torch\0")
    found = valid(run("check", "--output-format=sarif").stdout)
    assert [result["ruleId"] for result in found["results"]] == ["CUD901", "CUD901", "CUD902"]
    places = [result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in found["results"]]
    assert places == ["binary.py", "broken.py", "caf%C3%A9%20a.py"]
    every = tuple(replace(finding, code=code, name=rules.rule(code).name) for code in rules.codes())
    valid(render(Report(findings=every), OutputFormat.SARIF, Style(False, "/project")))


def test_each_result_has_a_fingerprint_help_and_its_steps(run: Run, tmp_path: Path, forked: str) -> None:
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text(forked, encoding="utf-8")
    found = valid(run("check", "--output-format=sarif").stdout)
    driver = found["tool"]["driver"]
    assert driver["informationUri"] == links.HOME
    assert [rule["helpUri"] for rule in driver["rules"]] == [links.rule("CUD101")]
    results = found["results"]
    assert len({result["partialFingerprints"]["cudalint/v1"] for result in results}) == len(results) == 2
    for result in results:
        assert [step["id"] for step in result["relatedLocations"]] == [*range(len(result["relatedLocations"]))]
        (flow,) = result["codeFlows"][0]["threadFlows"]
        shown = [{key: value for key, value in step.items() if key != "id"} for step in result["relatedLocations"]]
        assert [step["location"] for step in flow["locations"]] == shown
        assert "baselineState" not in result


def _place(replacement: dict[str, Any]) -> tuple[int, int]:
    region = replacement["deletedRegion"]
    return region["startLine"], region["startColumn"]


def replaced(text: str, replacements: list[dict[str, Any]]) -> str:
    """A text as a consumer of SARIF repairs it: from the end, so that places stay true."""
    rows = Rows(text)
    for one in sorted(replacements, key=_place, reverse=True):
        region = one["deletedRegion"]
        start = rows.offset(region["startLine"], region["startColumn"])
        end = rows.offset(region["endLine"], region["endColumn"])
        text = text[:start] + one["insertedContent"]["text"] + text[end:]
    return text


def test_a_repair_is_replacements_that_do_what_it_does(run: Run, tmp_path: Path, forked: str) -> None:
    path = tmp_path / "train.py"
    settings = '[tool.cudalint]\nextend-unsafe-fixes = ["CUD101"]\n'
    (tmp_path / "pyproject.toml").write_text(settings, encoding="utf-8")
    path.write_text(forked, encoding="utf-8")
    (result,) = valid(run("check", "--output-format=sarif").stdout)["results"]
    (fix,) = result["fixes"]
    assert fix["properties"] == {"applicability": "unsafe", "reason": "the configuration says so"}
    (change,) = fix["artifactChanges"]
    assert change["artifactLocation"] == {"uri": "train.py"}
    from cudalint import config

    (finding,) = Session(config.load([str(path)])).check([str(path)]).findings
    assert finding.fix is not None
    (done,) = alone(finding.fix)
    assert replaced(forked, change["replacements"]) == done.after.decode()


def test_advice_without_edits_is_no_fix(finding: Finding) -> None:
    (result,) = valid(render(Report(findings=(finding,)), OutputFormat.SARIF, Style(False, "/project")))["results"]
    assert "fixes" not in result
