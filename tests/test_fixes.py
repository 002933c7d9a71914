"""Every broken fixture is repaired to a fixpoint: its snapshot, and what any repair must keep.

``CUDALINT_SNAPSHOTS=write`` writes the snapshots anew (``<fixture>.fixed``, beside the fixture);
``python recorded_findings.py`` writes what is said of each finding.
"""

from __future__ import annotations

import ast
import io
import os
import tokenize
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from fixture_markers import ROOT, broken
from recorded_findings import recorded
from recorded_findings import text as said

from cudalint.config import Config
from cudalint.finding import Applicability, Finding, Severity
from cudalint.fixing.rounds import fix
from cudalint.found import Report
from cudalint.session import Session

WRITES = os.environ.get("CUDALINT_SNAPSHOTS") == "write"
BROKEN = broken()


def snapshot(path: Path) -> Path:
    return path.with_suffix(".fixed")


class Remembering(Session):
    """A session that checks a text once, however often it is asked."""

    def __init__(self) -> None:
        super().__init__(Config())
        self.known: dict[tuple[str, bytes | None, bool], Report] = {}

    def check(self, paths: Iterable[str], *, instead: Mapping[str, bytes] | None = None, **options: Any) -> Report:
        (path,) = paths
        key = (path, (instead or {}).get(path), bool(options))
        if key not in self.known:
            self.known[key] = super().check([path], instead=instead, **options)
        return self.known[key]


SESSION = Remembering()
RECORDED = recorded()


def checked(path: Path) -> Report:
    return SESSION.check([str(path)])


def repaired(path: Path) -> tuple[Report, str | None, Report]:
    """What is found, the text after all repairs (None where there is none), and what is found then."""
    first = checked(path)
    if not any(f.fix is not None and f.fix.edits for f in first.findings):
        return first, None, first
    done = fix(SESSION, [str(path)], unsafe=True)
    if not done.changes:
        return first, None, done.report
    (change,) = done.changes
    return first, change.after.decode(), done.report


def comments(text: str) -> Counter[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return Counter(token.string for token in tokens if token.type == tokenize.COMMENT)


def codes(findings: tuple[Finding, ...], severity: Severity) -> Counter[str]:
    return Counter(finding.code for finding in findings if finding.severity is severity)


@pytest.mark.parametrize("path", BROKEN, ids=lambda p: str(p.relative_to(ROOT)))
def test_findings_are_as_recorded_and_repaired_as_the_snapshot_shows(path: Path) -> None:
    before, text, after = repaired(path)
    assert said(before.findings) == RECORDED[path.relative_to(ROOT).as_posix()]
    assert_doubts_are_named(before)
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


def test_what_is_recorded_belongs_to_fixtures() -> None:
    assert RECORDED.keys() == {path.relative_to(ROOT).as_posix() for path in BROKEN}


def is_applied(finding: Finding) -> bool:
    return (
        finding.fix is not None and bool(finding.fix.edits) and finding.fix.applicability is not Applicability.DISPLAY
    )


def test_snapshots_belong_to_fixtures() -> None:
    strays = [str(p.relative_to(ROOT)) for p in ROOT.glob("*/*.fixed") if not p.with_suffix(".py").exists()]
    assert strays == []


def assert_doubts_are_named(report: Report) -> None:
    """Every level but safe says why."""
    fixes = [finding.fix for finding in report.findings if finding.fix is not None]
    assert [fix.message for fix in fixes if fix.applicability is not Applicability.SAFE and not fix.reason] == []
