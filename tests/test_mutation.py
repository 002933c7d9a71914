"""Each entry of the models is noticed by a test: `python -m mutation --kind "model entry" --record`, from `tests/`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from mutation import record
from mutation.models import model_mutants
from sampling import LEFT_OUT

TESTS = Path(__file__).resolve().parent
# None may be left: an entry without which the same is said, by what lies on a GPU or by a name, goes, or a row shows
# what it says better.
MOST_UNNOTICED = 0


def test_every_entry_is_recorded() -> None:
    entries = {mutant.name for mutant in model_mutants() if mutant.kind == record.KIND}
    known = record.read()
    assert len(entries) > 1_400
    assert sorted(entries ^ known.keys()) == [], "run `python -m mutation --kind 'model entry' --record` in tests/"


def test_no_more_entries_are_without_a_test() -> None:
    assert sum(test is None for test in record.read().values()) <= MOST_UNNOTICED


def test_the_tests_that_are_recorded_exist(request: pytest.FixtureRequest) -> None:
    """Of the files that this run collected as a whole: a test that gets another name is to be recorded again."""
    config = request.config
    chosen = (config.option.keyword, config.option.markexpr, config.option.deselect)
    if any(chosen) or any("::" in argument for argument in config.args):
        pytest.skip("only some tests of the files were collected")
    there = {item.nodeid for item in (*request.session.items, *config.stash[LEFT_OUT])}
    files = {test.partition("::")[0] for test in there}
    recorded = {test for test in record.read().values() if test is not None and test.partition("::")[0] in files}
    assert sorted(recorded - there) == [], "run `python -m mutation --kind 'model entry' --record` in tests/"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a mutant is a process that was forked")
def test_a_sample_is_noticed_by_the_tests_that_are_recorded() -> None:
    asked = ["--kind", "model entry", "--recorded", "--seed", "1", "--count", "8"]
    done = subprocess.run(
        [sys.executable, "-m", "mutation", *asked], cwd=TESTS, capture_output=True, text=True, timeout=300, check=False
    )
    assert "8 killed, 0 survived" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0
