"""A run of all tests takes a sample of large tables; who names a file gets all of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from sampling import SHARES, split

HERE = Path(__file__).parent


@pytest.mark.parametrize("name", SHARES)
def test_a_share_is_taken_of_a_table_that_there_is(name: str) -> None:
    assert "parametrize" in (HERE / name).read_text(encoding="utf-8")


def test_a_run_of_all_takes_a_stable_share_and_a_named_file_all(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = [item for item in request.session.items if item.path == Path(__file__)]
    monkeypatch.setitem(SHARES, Path(__file__).name, 3)
    monkeypatch.delenv("CUDALINT_TESTS", raising=False)
    taken, left = split(items, [str(HERE)])
    assert request.node in taken
    assert left
    assert sorted(map(id, taken + left)) == sorted(map(id, items))
    assert split(items, [str(HERE)]) == (taken, left)
    assert split(items, [f"{__file__}::{request.node.name}"]) == (items, [])
    monkeypatch.setenv("CUDALINT_TESTS", "all")
    assert split(items, [str(HERE)]) == (items, [])
