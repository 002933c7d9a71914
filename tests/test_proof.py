"""Rules and reports quote what hardware was seen to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cudalint import proof
from cudalint.hosts.cli import main


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package beside evidence of one's own."""
    folder = tmp_path / "docs" / "evidence"
    folder.mkdir(parents=True)
    monkeypatch.setattr(proof, "_PACKAGE", tmp_path / "cudalint")
    proof._proofs.cache_clear()
    yield folder
    proof._proofs.cache_clear()


def entry(verdict: str, observed: str, *findings: str) -> dict[str, object]:
    return {"verdict": verdict, "observed": observed, "predicted": [{"finding": finding} for finding in findings]}


def test_only_what_was_seen_and_predicted_is_counted(machine: Path) -> None:
    fixtures = {
        "a": entry("confirmed", "hang", "CUD301@3:1", "CUD301@9:1"),
        "b": entry("confirmed", "hang", "CUD301@3:1"),
        "c": entry("refuted", "hang", "CUD301@3:1"),
        "d": entry("confirmed", "ok", "CUD301@3:1"),
        "e": entry("confirmed", "crash", "CUD301@3:1", "CUD101@1:1"),
        "f": {"verdict": "not run"},
    }
    head = {"machine": {"gpus": ["A100"], "driver": "570"}, "versions": {"torch": "2.9.1"}}
    (machine / "a.json").write_text(json.dumps({**head, "fixtures": fixtures}))
    (machine / "b.json").write_text("{ broken")
    # The same programs on two of these GPUs are not counted twice.
    two = {"machine": {"gpus": ["A100", "A100"], "driver": "570"}, "versions": {"torch": "2.9.1"}}
    (machine / "c.json").write_text(json.dumps({**two, "fixtures": {"a": fixtures["a"]}}))
    assert proof.quote("CUD301", "hang") == "A100, torch 2.9"
    assert proof.quote("CUD301", "child-death") is None
    assert proof.section("CUD301").splitlines()[2:] == [
        "- hang: 2 programs on A100, torch 2.9, driver 570",
        "- crash: 1 program on A100, torch 2.9, driver 570",
    ]
    assert proof.section("CUD901") == ""


def test_notebooks_are_quoted_by_the_rules_that_they_showed(machine: Path) -> None:
    def ran(verdict: str, end: str, *findings: tuple[str, str]) -> dict[str, object]:
        shown = [{"finding": finding, "status": status} for finding, status in findings]
        return {"verdict": verdict, "findings": shown, "run": {"end": end}}

    fixtures = {
        "a": ran(
            "confirmed", "crash (exit 1)", ("CUD101@cell 4:2:7", "confirmed"), ("CUD108@cell 5:1:1", "not reached")
        ),
        "b": ran("confirmed", "crash (exit 1)", ("CUD101@cell 2:2:7", "confirmed"), ("CUD101@cell 3:1:1", "confirmed")),
        "c": ran("refuted", "ok", ("CUD101@cell 2:2:7", "refuted")),
        "d": ran("confirmed", "ok"),
        "e": {"verdict": "not run", "reasons": ["needs 2 GPUs"]},
    }
    head = {"machine": {"gpus": ["A100"], "driver": "570", "python": "3.12.3"}, "versions": {"torch": "2.11.0"}}
    (machine / "notebooks").mkdir()
    (machine / "notebooks" / "a.json").write_text(json.dumps({**head, "fixtures": fixtures}))
    where = "A100, torch 2.11, driver 570, Python 3.12.3"
    assert proof.section("CUD101").splitlines()[2:] == [f"- crash: 2 notebooks on {where}"]
    assert proof.section("CUD108") == ""


def test_the_page_of_a_rule_quotes_the_evidence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rule", "CUD301"]) == 0
    page = capsys.readouterr().out
    assert "## Evidence" in page
    assert "- hang: " in page.partition("## Evidence")[2]
    assert main(["rule", "CUD301", "--output-format", "json"]) == 0
    assert {"outcome", "programs", "gpu"} <= set(json.loads(capsys.readouterr().out)["evidence"][0])
