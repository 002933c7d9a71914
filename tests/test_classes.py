"""User classes are looked at in Python's order, at a cost that grows with the hierarchy and no faster."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

import pytest

from cudalint.machine import classes
from cudalint.machine.classes import MOST_BASES, Orders, lineage
from cudalint.machine.heap import Class
from cudalint.machine.state import Process, State
from cudalint.machine.trace import Site
from cudalint.machine.values import Lib, Ref
from cudalint.project.analysis import Analysis, Options, analyse
from cudalint.text.source import SourceFile


def checked(text: str) -> Analysis:
    return analyse([SourceFile("program.py", text, text.encode())], Options())


def diamonds(count: int) -> str:
    """``A0`` is the top, and each diamond stands on the one before."""
    rows = ["class A0:\n    def start(self):\n        with Pool(1) as pool:\n            pool.map(work, [1])\n"]
    for i in range(1, count + 1):
        rows.append(f"class L{i}(A{i - 1}): pass\nclass R{i}(A{i - 1}): pass\nclass A{i}(L{i}, R{i}): pass\n")
    return "".join(rows)


def chain(count: int) -> str:
    rows = ["class A0:\n    def start(self):\n        with Pool(1) as pool:\n            pool.map(work, [1])\n"]
    return "".join([*rows, *(f"class A{i}(A{i - 1}): pass\n" for i in range(1, count + 1))])


def crosses(count: int) -> str:
    """Each class derives from the three before it."""
    rows = ["class A0:\n    def start(self):\n        with Pool(1) as pool:\n            pool.map(work, [1])\n"]
    for i in range(1, count + 1):
        bases = ", ".join(f"A{j}" for j in range(i - 1, max(i - 4, -1), -1))
        rows.append(f"class A{i}({bases}): pass\n")
    return "".join(rows)


def program(hierarchy: str, last: int) -> str:
    return (
        "from multiprocessing import Pool\n\nimport torch\n\n\n"
        "def work(n):\n    return torch.ones(n, device='cuda')\n\n\n"
        f"{hierarchy}\n\nif __name__ == '__main__':\n    torch.zeros(1, device='cuda')\n    A{last}().start()\n"
    )


@pytest.mark.parametrize(("hierarchy", "count"), [(diamonds, 26), (chain, 60), (chain, 120), (crosses, 20)])
def test_what_a_far_base_does_is_found(hierarchy: Callable[[int], str], count: int) -> None:
    assert [f.code for f in checked(program(hierarchy(count), count)).findings] == ["CUD101"]


def test_an_order_is_made_once_per_class(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Orders] = []

    class Counted(Orders):
        def __init__(self, canonical: Callable[[str], str]) -> None:
            super().__init__(canonical)
            made.append(self)

    monkeypatch.setattr("cudalint.machine.interpreter.core.Orders", Counted)
    counts = []
    for count in (10, 20, 40):
        made.clear()
        checked(program(diamonds(count), count))
        counts.append(max(orders.made for orders in made))
    # One more for the class as it is before it has members or a decorator.
    assert all(made <= 2 * (3 * count + 1) for made, count in zip(counts, (10, 20, 40), strict=True))
    assert counts[2] - counts[1] == 2 * (counts[1] - counts[0])


def heap(bases: dict[str, Iterable[str]]) -> State:
    state = State(Process(), {})
    for i, (name, above) in enumerate(bases.items()):
        values = tuple(((Ref(base) if base in bases else Lib(base)),) for base in above)
        state.store(Ref(name), Class(name, name, "m", values, Ref(("scope", name)), Site("m", i)))
    return state


def names(order: Iterable[Class | str]) -> list[str]:
    return [entry if isinstance(entry, str) else entry.name for entry in order]


def test_the_order_is_that_of_python() -> None:
    chosen = random.Random(7)
    compared = 0
    for _ in range(300):
        bases: dict[str, tuple[str, ...]] = {}
        made: dict[str, type] = {"lib.Base": type("lib.Base", (), {})}
        for i in range(8):
            above = tuple(chosen.sample([*made], k=min(len(made), chosen.randint(0, 3))))
            try:
                made[f"C{i}"] = type(f"C{i}", tuple(made[name] for name in above), {})
            except TypeError:
                continue
            bases[f"C{i}"] = above
        state, orders = heap(bases), Orders(str)
        for name in bases:
            assert names(orders.of(Ref(name), state)) == [c.__name__ for c in made[name].__mro__[:-1]]
            compared += 1
    assert compared > 2_000


def test_bases_bound_anew_give_another_order() -> None:
    one, other = heap({"A": (), "B": ("A",), "C": ("B",)}), heap({"A": ("lib.Base",), "B": ("A",), "C": ("B",)})
    shared = other.get(Ref("C"))
    assert shared is not None
    one.store(Ref("C"), shared)
    orders = Orders(str)
    for _ in range(2):
        assert names(orders.of(Ref("C"), one)) == ["C", "B", "A"]
        assert names(orders.of(Ref("C"), other)) == ["C", "B", "A", "lib.Base"]
    assert [c.name for c in lineage(Ref("C"), other)] == ["C", "B", "A"]


def test_a_class_that_lies_where_its_base_lay_ends() -> None:
    state = heap({"A": ("B",), "B": ("A", "B")})
    assert names(Orders(str).of(Ref("A"), state)) == ["A", "B"]
    assert names(Orders(str).of(Ref("nothing"), state)) == []


def test_an_order_is_bounded() -> None:
    state = heap({f"C{i}": (f"C{i - 1}",) if i else () for i in range(2 * MOST_BASES)})
    orders = Orders(str)
    for i in range(2 * MOST_BASES):
        assert len(orders.of(Ref(f"C{i}"), state)) == min(i + 1, MOST_BASES)
    assert orders.made == 2 * MOST_BASES


def test_rows_that_contradict_each_other_lose_nothing() -> None:
    state = heap({"A": (), "B": (), "C": ("A", "B"), "D": ("B", "A"), "E": ("C", "D")})
    assert sorted(names(classes.Orders(str).of(Ref("E"), state))) == ["A", "B", "C", "D", "E"]
