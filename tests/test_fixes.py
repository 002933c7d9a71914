"""Every broken fixture is repaired to a fixpoint: its snapshot, and what any repair must keep.

``CUDALINT_SNAPSHOTS=write`` writes the snapshots anew (``<fixture>.fixed``, beside the fixture).
"""

from __future__ import annotations

import ast
import io
import os
import tokenize
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from fixture_markers import ROOT, expected, programs

from cudalint import rules
from cudalint.config import Config
from cudalint.finding import Applicability, Finding, Severity
from cudalint.fixing.rounds import fix
from cudalint.session import Report, Session

WRITES = os.environ.get("CUDALINT_SNAPSHOTS") == "write"
BROKEN = [path for path in programs() if expected(path.read_text(encoding="utf-8"))]


def snapshot(path: Path) -> Path:
    return path.with_suffix(".fixed")


def repaired(path: Path) -> tuple[Report, str | None, Report]:
    """What is found, the text after all repairs (None where there is none), and what is found then."""
    session = Session(Config())
    first = checked(path)
    if not any(f.fix is not None and f.fix.edits for f in first.findings):
        return first, None, first
    done = fix(session, [str(path)], unsafe=True)
    if not done.changes:
        return first, None, done.report
    (change,) = done.changes
    return first, change.after.decode(), done.report


@cache
def checked(path: Path) -> Report:
    return Session(Config()).check([str(path)])


def comments(text: str) -> Counter[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return Counter(token.string for token in tokens if token.type == tokenize.COMMENT)


def codes(findings: tuple[Finding, ...], severity: Severity) -> Counter[str]:
    return Counter(finding.code for finding in findings if finding.severity is severity)


@pytest.mark.parametrize("path", BROKEN, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_program_is_repaired_as_its_snapshot_shows(path: Path) -> None:
    before, text, after = repaired(path)
    kept = snapshot(path)
    if WRITES:
        kept.unlink(missing_ok=True)
        if text is not None:
            kept.write_text(text, encoding="utf-8", newline="")
    assert text == (kept.read_text(encoding="utf-8") if kept.exists() else None)
    if text is None:
        return
    ast.parse(text)
    original = path.read_text(encoding="utf-8")
    assert comments(original) == comments(text)
    assert codes(after.findings, Severity.ERROR) < codes(before.findings, Severity.ERROR) or not codes(
        before.findings, Severity.ERROR
    )
    assert not [f for f in after.findings if f.fix is not None and is_applied(f)], "a second run would change it"


def is_applied(finding: Finding) -> bool:
    return (
        finding.fix is not None and bool(finding.fix.edits) and finding.fix.applicability is not Applicability.DISPLAY
    )


def test_snapshots_belong_to_fixtures() -> None:
    strays = [str(p.relative_to(ROOT)) for p in ROOT.glob("*/*.fixed") if not p.with_suffix(".py").exists()]
    assert strays == []


@pytest.mark.parametrize("code", [c for c in rules.codes() if not c.startswith("CUD9")])
def test_a_rule_offers_what_it_declares(code: str) -> None:
    offered = [
        is_applied(finding)
        for path in BROKEN
        if path.parent.name == code
        for finding in checked(path).findings
        if finding.code == code
    ]
    match rules.rule(code).repair:
        case rules.RepairLevel.ALWAYS:
            assert all(offered)
        case rules.RepairLevel.SOMETIMES:
            assert any(offered)
            assert not all(offered)
        case rules.RepairLevel.NEVER:
            assert not any(offered)


def test_every_level_but_safe_says_why() -> None:
    silent = [
        f"{path.name}: {finding.code}"
        for path in BROKEN
        for finding in checked(path).findings
        if finding.fix is not None and finding.fix.applicability is not Applicability.SAFE and not finding.fix.reason
    ]
    assert silent == []
