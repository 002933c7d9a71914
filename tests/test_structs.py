"""What values equal, and what is forgotten when one is made from another."""

from __future__ import annotations

import pytest

from cudalint.machine.heap import Dict, Sequence
from cudalint.machine.operators import _remember
from cudalint.machine.values import Const, Member, Ref, Unknown, const, unknown
from cudalint.structs import Partly, replace

NAN = float("nan")
KIND = Member("kinds", "Kind.GPU", "GPU", const("cuda"), Ref("one"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Unknown(("asks", "a"), 3), Unknown(("asks", "a"))),
        (Const("cuda", KIND), Const("cuda")),
        (KIND, replace(KIND, cls=Ref("another"))),
        # One thing is the same wherever it is named, though Python says that it equals nothing.
        (Const(NAN), Const(NAN)),
    ],
    ids=["unknown", "member", "class of a member", "no number"],
)
def test_what_does_not_count_makes_no_difference(one: Partly, other: Partly) -> None:
    assert (one == other, one != other) == (True, False)
    assert hash(one) == hash(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [(Const(1), Const(True)), (Const(0.0), Const(0)), (Unknown("a"), Unknown("b")), (Unknown("a"), Const("a"))],
    ids=["a flag", "a float", "another", "another class"],
)
def test_what_counts_does(one: Partly, other: Partly) -> None:
    assert (one == other, one != other) == (False, True)


@pytest.mark.parametrize("held", [Dict({}), Sequence("list", ())], ids=["dict", "list"])
def test_a_changed_container_remembers_nothing(held: Dict | Sequence) -> None:
    _remember(held, unknown("key"), const(1))
    assert held.last is not None
    assert replace(held, element=const(2)).last is None
