"""What the page of comparisons says of cudalint is shown by tests that are there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
import tomli

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "comparison.md"
FEATURES = tomli.loads((TESTS / "features.toml").read_text(encoding="utf-8"))


def table() -> dict[str, str]:
    """The features of the page, each with what is said of cudalint."""
    section = PAGE.read_text(encoding="utf-8").partition("## Features of linters")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in re.findall(r"^\|.*\|$", section, re.M)]
    head, _, *features = rows
    assert head[:2] == ["feature", "cudalint"]
    assert {len(row) for row in rows} == {len(head)}
    return {feature: says for feature, says, *_ in features}


@cache
def functions_of(name: str) -> frozenset[str]:
    tree = ast.parse((TESTS / f"{name}.py").read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def test_the_page_says_what_the_tests_show() -> None:
    assert table() == {feature: entry["says"] for feature, entry in FEATURES.items()}


@pytest.mark.parametrize("feature", FEATURES)
def test_a_feature_is_shown_by_tests(feature: str) -> None:
    entry = FEATURES[feature]
    assert bool(entry["shown_by"]) == (entry["says"] != "no")
    for test in entry["shown_by"]:
        name, _, function = test.partition("::")
        assert function in functions_of(name), test
