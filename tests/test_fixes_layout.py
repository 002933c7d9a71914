"""Repairs in programs of any layout: what they keep, and that they repair the same."""

from __future__ import annotations

import ast
import random
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from fixture_markers import broken
from formatting import LAYOUTS, Layout, carriage_returns, form_feeds, other_names, tabs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_fixes import comments

from cudalint.config import Config
from cudalint.fixing.rounds import Fixed, fix_text
from cudalint.session import Session

BROKEN = broken()

# Repaired as the plain text is. Elsewhere a repair may not be made: it would lose a comment, or tear a row apart.
EASY = {carriage_returns, tabs, form_feeds, other_names}


@cache
def as_written(path: Path) -> Fixed:
    return fix_text(Session(Config()), str(path), path.read_bytes(), unsafe=True)


def codes(done: Fixed) -> Counter[str]:
    return Counter(finding.code for finding in done.report.findings)


@pytest.mark.long
@settings(max_examples=35, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    path=st.sampled_from(BROKEN),
    layouts=st.lists(st.sampled_from(LAYOUTS), min_size=1, max_size=3, unique=True),
    seed=st.integers(0, 99),
)
def test_a_repair_keeps_everything_else_in_any_layout(path: Path, layouts: list[Layout], seed: int) -> None:
    text = path.read_text(encoding="utf-8")
    for layout in sorted(layouts, key=LAYOUTS.index, reverse=True):
        text = layout(text, random.Random(seed))
    done = fix_text(Session(Config()), str(path), text.encode(), unsafe=True)
    repaired = done.stdin.decode()
    ast.parse(repaired)
    assert comments(repaired) == comments(text)
    assert repaired.count("\f") == text.count("\f")
    if "\r\n" in text:
        assert "\n" not in repaired.replace("\r\n", "")
    if EASY.issuperset(layouts):
        assert codes(done) == codes(as_written(path))


LACKS = """\
from multiprocessing import Pool
from rembg import new_session, remove

@remove
def cut(picture):
    return (lambda *a, given=remove: remove)(*[remove])(picture, session=session)

if __name__ == "__main__":
    session = new_session("u2net")
    with Pool(2) as pool:
        print(pool.map(cut, [b"a", b"b"]))
"""


@pytest.mark.parametrize("change", [("", ""), ("\n", "\r"), ("\n", "\r\n"), ("from multi", "\ufefffrom multi")])
def test_a_repair_that_brings_an_error_is_not_made_in_any_layout(change: tuple[str, str]) -> None:
    """A program is tried out as it is read: what is at the top of a row is found there."""
    text = LACKS.replace(*change) if change[0] else LACKS
    plain = as_text(LACKS)
    done = as_text(text)
    assert codes(done) == codes(plain) == Counter(["CUD103"])
    assert done.count == 0


def as_text(text: str) -> Fixed:
    return fix_text(Session(Config()), "/project/main.py", text.encode(), unsafe=True)
