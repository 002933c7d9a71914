"""What rules declare: how severe an outcome is, what is said of it, how often it is repaired."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from recorded_findings import recorded
from small_projects import cases, files, findings

from cudalint import rules
from cudalint.finding import Severity
from cudalint.machine.outcome import Kind, Outcome
from cudalint.machine.trace import Site
from cudalint.structs import replace

RECORDED = recorded()
CODES = [code for code in rules.codes() if not code.startswith("CUD9")]
# What no fixture of one file shows.
PROJECTS = {
    "CUD502": [("false_alarms.txt", "a barrier comes before the rank selects its device")],
    "CUD504": [
        ("checkpoints.txt", "every rank loads what rank 0 saved from its GPU"),
        ("trainers.txt", "several GPUs need no strategy to be told, and their number may be a list"),
    ],
    "CUD505": [("rank_numbers.txt", "ranks that nobody tells which of how many they are")],
}
CRASH = Outcome(Kind.CUDA_IN_FORK, Site("main", 1), "crash", certain=True, assumed=False)


@pytest.mark.parametrize(
    ("outcome", "severity"),
    [
        (CRASH, Severity.ERROR),
        (replace(CRASH, how="hang"), Severity.ERROR),
        (replace(CRASH, how="child-death"), Severity.ERROR),
        (replace(CRASH, how="wrong-device"), Severity.ERROR),
        (replace(CRASH, how="cost"), Severity.WARNING),
        (replace(CRASH, how="latent"), Severity.WARNING),
        (replace(CRASH, caught=True), Severity.WARNING),
        (replace(CRASH, caught=True, told=True), Severity.ERROR),
        (replace(CRASH, caught=True, told=True, in_test=True), Severity.WARNING),
        (replace(CRASH, assumed=True), Severity.WARNING),
        (replace(CRASH, certain=False), Severity.WARNING),
        (replace(CRASH, benign=True), Severity.NOTE),
        (replace(CRASH, how="cost", benign=True), Severity.NOTE),
    ],
)
def test_what_is_certain_and_fails_is_an_error(outcome: Outcome, severity: Severity) -> None:
    assert rules.rule("CUD101").grade(outcome) is (severity if outcome.certain and not outcome.assumed else None)
    assert rules.rule("CUD301").grade(outcome) is severity


@pytest.mark.parametrize(
    ("outcome", "severity"),
    [
        (CRASH, None),
        (replace(CRASH, assumed=True), Severity.WARNING),
        (replace(CRASH, detail="unseen"), Severity.WARNING),
        (replace(CRASH, certain=False), Severity.WARNING),
        (replace(CRASH, certain=False, caught=True), None),
        (replace(CRASH, assumed=True, in_test=True), None),
    ],
)
def test_what_is_not_seen_whole_is_a_warning_of_another_rule(outcome: Outcome, severity: Severity | None) -> None:
    assert rules.rule("CUD102").grade(outcome) is severity


@pytest.mark.parametrize("code", CODES)
def test_all_that_a_rule_says_is_recorded(code: str) -> None:
    """Of some fixture that `recorded/` holds, or of a project, with what it names filled in."""
    lines = [line.strip() for text in RECORDED.values() for line in text.splitlines() if line.startswith("  ")]
    lines += [one.message for file, name in PROJECTS.get(code, ()) for one in findings(files(cases(file)[name]))]
    for kind, template in rules.rule(code).outcomes.items():
        said = re.compile(re.sub(r"\\\{\w+\\\}", ".+", re.escape(template)))
        assert any(map(said.fullmatch, lines)), f"{kind}: {template}"


def has_repairs(said: str, code: str) -> Iterator[bool]:
    """Of each finding of a code, as it is recorded, whether it has a repair that can be made."""
    for one in re.split(r"^(?=\d)", said, flags=re.MULTILINE)[1:]:
        if one.split()[1] == code:
            yield re.search(r"^  (safe|unsafe): ", one, re.MULTILINE) is not None


@pytest.mark.parametrize("code", CODES)
def test_a_rule_declares_how_often_it_is_repaired(code: str) -> None:
    """By what is recorded of the fixtures of its folder, which is what is found (`test_fixes.py`)."""
    said = [text for name, text in RECORDED.items() if name.startswith(f"{code}/")]
    offered = {has for text in said for has in has_repairs(text, code)}
    level = rules.RepairLevel
    expected = {(True,): level.ALWAYS, (False,): level.NEVER, (False, True): level.SOMETIMES}
    assert rules.rule(code).repair is expected[tuple(sorted(offered))]
