"""Every fixture has exactly the findings that its markers name; so have the seeds as their documents print them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import tomli
from expected_severity import severity, softened
from fixture_markers import ROOT, Expected, expected, header, known_misses, programs

from cudalint.finding import Severity
from cudalint.project.analysis import Options, analyse
from cudalint.text.source import SourceFile

_OUTCOMES = {"crash", "hang", "child-death", "wrong-device", "cost", "latent", "ok"}


def graded(path: Path, *, alone: bool = False) -> set[tuple[Expected, Severity]]:
    """What is found, with severities."""
    text = path.read_text(encoding="utf-8")
    source = SourceFile(str(path), text, text.encode())
    findings = analyse([source], Options(), alone=alone).findings
    return {(Expected(f.code, f.span.start.row, f.span.start.column), f.severity) for f in findings}


def wanted(path: Path) -> set[tuple[Expected, Severity]]:
    """What the markers of a fixture name, with severities."""
    return {(one, severity(name(path), one)) for one in expected(path.read_text(encoding="utf-8"))}


def found(path: Path) -> set[Expected]:
    return {one for one, _ in graded(path)}


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", programs(), ids=name)
def test_findings_match_the_markers(path: Path) -> None:
    assert graded(path) == wanted(path)


def test_what_is_softer_than_its_rule_is_marked() -> None:
    marked = {(name(path), Expected(one.code, one.row, 0)) for path in programs() for one, _ in wanted(path)}
    assert softened() <= marked


def test_a_rule_declares_the_worst_that_its_findings_are() -> None:
    from cudalint.rules import registry

    worst: dict[str, Severity] = {}
    for path in programs():
        for one, found in wanted(path):
            worst[one.code] = max(worst.get(one.code, found), found, key=lambda s: s.rank)
    declared = {code: rule.severity for code, rule in registry().items() if not code.startswith("CUD9")}
    assert worst == declared


def test_no_fixture_has_a_known_miss() -> None:
    """What is missed is measured as well as what is found; `test_projects.py` has what is known to be missed."""
    marked = {name(path): known_misses(path.read_text(encoding="utf-8")) for path in programs()}
    assert {path: misses for path, misses in marked.items() if misses} == {}


def test_headers_say_how_programs_end() -> None:
    wrong = {name(path): words for path in programs() if (words := list(wrong_in_header(path)))}
    assert wrong == {}


def wrong_in_header(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    table = header(text)
    if table.get("outcome") not in _OUTCOMES:
        yield "no outcome"
    if not isinstance(table.get("gpus"), int):
        yield "no number of GPUs"
    marked = {e.code for e in expected(text)} | {code for _, code, _ in known_misses(text)}
    if path.name.startswith("broken_") and path.parent.name not in marked:
        yield "a broken program must be marked with the rule of its folder"
    if path.name.startswith("ok_") and table.get("outcome") not in {"ok", "cost"}:
        yield "it does not end well"


def test_every_rule_has_enough_programs() -> None:
    from cudalint.rules import codes

    for code in codes():
        if code.startswith("CUD9"):
            continue
        assert len(list((ROOT / code).glob("broken_*.py"))) >= 3, code
        assert len(list((ROOT / code).glob("ok_*.py"))) >= 3, code


def test_blocks_as_printed_get_the_codes_of_the_seeds() -> None:
    folder = ROOT / "seeds" / "as_printed"
    printed = tomli.loads((folder / "expected.toml").read_text(encoding="utf-8"))
    assert sorted(printed) == sorted(p.name for p in folder.glob("*.py"))
    for file, marks in printed.items():
        marked = {f"{e.code}@{e.row}:{e.column}" for e in found(folder / file)}
        assert marked == set(marks), file


@pytest.mark.parametrize("path", programs(), ids=name)
def test_one_file_alone_finds_what_its_own_main_shows(path: Path) -> None:
    # What the whole program shows is what its markers say: see above.
    whole, alone = wanted(path), graded(path, alone=True)
    assert alone <= whole
    assert {one.code for one, _ in whole - alone} <= {"CUD102"}
