"""What is made of very much goes by a short name: the same for what compares equal, and for nothing else."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cudalint.machine.short_names import shortened
from cudalint.machine.trace import Chain, Site, TraceStep
from cudalint.machine.values import MOST_PARTS, Const, Dev, Lib, Rank, Tensor, Unknown, only, unknown

SINGLE = st.one_of(
    st.integers(-3, 3).map(Const),
    st.text("ab\0", max_size=3),
    st.sampled_from([Lib("torch"), Rank("local"), Dev("cuda", 0), None, frozenset({1, 2}), ("a", "b")]),
)
PARTS = st.recursive(
    SINGLE, lambda inner: st.lists(inner, max_size=3).map(lambda made: Unknown(tuple(made))), max_leaves=8
)
ONE = """\
from cudalint.machine.short_names import shortened
from cudalint.machine.values import *
print(shortened((Unknown(("call", Lib("a"), frozenset("xyz"))), Rank("each", numbers=frozenset({3, 1, 2})), 1.5, b"")))
"""


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)  # other tests may have the processor
@given(PARTS, PARTS)
def test_names_are_equal_where_the_parts_are(one: object, other: object) -> None:
    assert (shortened(one) == shortened(other)) is (one == other)


def test_where_something_came_from_does_not_count() -> None:
    ways = [Chain(TraceStep(Site("main", n), "sends", "main"), None) for n in (1, 2)]
    one, other = (Unknown(("call", Tensor("torch", Dev("cuda"), ("main",), way))) for way in ways)
    assert one == other
    assert shortened(one) == shortened(other)


def test_other_processes_give_the_same_names() -> None:
    def name(seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        return subprocess.run(
            [sys.executable, "-c", ONE], env=environment, capture_output=True, text=True, check=True
        ).stdout

    assert name("1") == name("2") != ""


def test_a_thing_within_itself_over_and_over_is_gone_through_once() -> None:
    part: Unknown = Unknown(("a",))
    for _ in range(100):
        part = Unknown((part, part))
    assert shortened(part) == shortened(Unknown(part.sym))


def long(first: str, times: int) -> Unknown:
    """A long calculation that begins with something."""
    made = only(unknown(first))
    for _ in range(times):
        assert isinstance(made, Unknown)
        made = only(unknown("call", made, ("text", 1)))
    assert isinstance(made, Unknown)
    return made


@pytest.mark.parametrize("times", [1, MOST_PARTS])
def test_long_calculations_are_told_apart_by_what_they_begin_with(times: int) -> None:
    assert long("a", times) == long("a", times)
    assert long("a", times) != long("b", times)


@pytest.mark.parametrize("times", range(20, 80))
def test_a_question_shows_what_it_is_about(times: int) -> None:
    made = long("a", times)
    asked = only(unknown("not", unknown("is", "==", made, Const(""))))
    assert isinstance(asked, Unknown)
    assert isinstance(asked.sym, tuple)
    assert asked.sym[1] == unknown("is", "==", made, Const(""))
    assert made in asked.sym[1][0].sym
