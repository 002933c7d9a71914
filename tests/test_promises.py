"""What docs/stability.md promises holds, and is what was recorded when it was promised."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from release.promises import FILE, PROGRAM, broken, current

from cudalint import api, verify
from cudalint.hosts.checks import Exit

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "stability.md").read_text(encoding="utf-8")
PROMISED: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))


def rows(first: str) -> dict[str, str]:
    """The rows of the table whose head begins with a word: the last cell by the first."""
    table = re.search(rf"^\| {first} \|.*\n\|[ |-]+\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    assert table is not None
    cells = [row.strip("|").split(" | ") for row in table[1].splitlines()]
    return {row[0].strip(): " | ".join(row[1:]).strip() for row in cells}


@pytest.fixture(scope="module")
def held() -> dict[str, Any]:
    """What holds now, as JSON has it."""
    found: dict[str, Any] = json.loads(json.dumps(current()))
    return found


def test_what_was_promised_holds(held: dict[str, Any]) -> None:
    assert broken(PROMISED, held) == []


def test_what_holds_is_recorded(held: dict[str, Any]) -> None:
    """Whatever is new is to be recorded before it is released: ``python -m release.promises``."""
    assert broken(held, PROMISED) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda held: held["rules"].pop("CUD101"), "rules: CUD101 is gone"),
        (lambda held: held["rules"].update(CUD101="other"), "rules: CUD101: cuda-in-forked-worker became other"),
        (lambda held: held["settings"].remove("select"), "settings: select is gone"),
        (lambda held: held["exit codes"].update(FAILED=3), "exit codes: FAILED: 2 became 3"),
        (lambda held: held["keys of JSON"]["step"].remove("kind"), "keys of JSON: step: kind is gone"),
    ],
)
def test_a_broken_promise_is_named(change: Callable[[dict[str, Any]], object], said: str) -> None:
    held = copy.deepcopy(PROMISED)
    change(held)
    held["formats"].append("new")
    assert broken(PROMISED, held) == [said]


def test_the_page_names_the_exit_codes() -> None:
    stated = {int(code): rest.partition(" | ")[0].strip("`") for code, rest in rows("exit code").items()}
    assert stated == {one.value: one.name for one in Exit}
    assert {verify.CONFIRMED, verify.REFUTED, verify.NOTHING_RAN} == {Exit.CLEAN, Exit.FINDINGS, Exit.FAILED}
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert {int(code) for code in re.findall(r"^\| (\d) \|", readme, re.MULTILINE)} == {*map(int, Exit)}


def test_the_page_names_the_keys_of_json() -> None:
    values = re.compile(r"\([^()]*\)")
    stated = {name: set(re.findall(r"`(\w+)`", values.sub("", row))) for name, row in rows("object").items()}
    in_notebooks = {"edit": {"cell"}, "step": {"cell"}}
    assert stated == {name: {*keys, *in_notebooks.get(name, ())} for name, keys in PROMISED["keys of JSON"].items()}


def test_the_page_names_severities_and_kinds() -> None:
    for key in ("severities", "applicability", "kinds of steps"):
        for word in PROMISED[key]:
            assert f"`{word}`" in PAGE


@pytest.mark.parametrize(("name", "shift"), [("train.py", ""), ("other.py", "# a comment\n" * 30)])
def test_a_fingerprint_is_that_of_the_release(tmp_path: Path, name: str, shift: str) -> None:
    path = tmp_path / name
    path.write_text(shift + PROGRAM, encoding="utf-8")
    report = api.check([str(path)], api.Options(isolated=True))
    known = api.fingerprints(report, str(tmp_path))
    found = {finding.code: print_ for finding, print_ in zip(report.findings, known, strict=True)}
    assert found == PROMISED["fingerprints"]
