"""Makes a disagreement small: every axis goes to its plainest choice as long as the disagreement stays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from oracle.grammar import Choice, legal
from oracle.runner import Case, judge_choice

PLAIN: dict[str, tuple[object, ...]] = {
    "rounds": (1,),
    "remade": (True,),
    "chosen": ("default", "alias", "context", "set_guard"),
    "touch": ("nothing", "tensor"),
    "place": ("inline",),
    "when": ("before",),
    "channel": ("none", "argument"),
    "form": ("number", "cpu_tensor", "tensor"),
    "handling": ("ignore", "shape", "sum"),
    "made": ("before",),
    "table_at": ("module",),
    "home": ("function", "getitem", "collate"),
    "work": ("nothing", "factory"),
    "launcher": ("pool_map", "process", "executor_map"),
    "library": ("mp", "torch"),
    "framed": (True,),
    "size": (1, 2),
    "with_block": (False, True),
    "respawn": (False,),
    "consume": ("count",),
    "workers": (0, 1),
    "pin": (False,),
    "persistent": (False,),
    "shuffle": (False,),
}


class Found(Protocol):
    """A case: a choice, its seed, and what is wrong."""

    @property
    def choice(self) -> Any: ...
    @property
    def seed(self) -> int: ...
    @property
    def complaint(self) -> object: ...


F = TypeVar("F", bound=Found)


def shrink(case: Case) -> Case:
    """The plainest case found that has the same complaint."""
    return plainest(case, PLAIN, _simpler, judge_choice)


def plainest(
    case: F,
    axes: Iterable[str],
    simpler: Callable[[Any, str], Iterator[Any]],
    judge: Callable[[Any, int], F],
) -> F:
    """Go from choice to simpler choice, axis by axis, as long as the complaint stays."""
    for _ in range(3):
        before = case.choice
        for name in axes:
            tries = (judge(choice, case.seed) for choice in simpler(case.choice, name))
            case = next((tried for tried in tries if tried.complaint == case.complaint), case)
        if case.choice == before:
            return case
    return case


def plainer_values(choice: object, name: str, plain: Mapping[str, tuple[object, ...]]) -> tuple[object, ...]:
    """The values of an axis that are plainer than the choice's own, the plainest first."""
    values, now = plain[name], getattr(choice, name)
    return values[: values.index(now)] if now in values else values


def _simpler(choice: Choice, name: str) -> Iterator[Choice]:
    """Legal choices that are plainer on one axis; some axes move together."""
    for value in plainer_values(choice, name, PLAIN):
        tried = replace(choice, **{name: value})  # type: ignore[arg-type]
        for fitted in _fitted(tried, name):
            if legal(fitted):
                yield fitted
                break


def _fitted(choice: Choice, name: str) -> Iterator[Choice]:
    yield choice
    if name == "touch":
        yield replace(choice, place="inline", when="before")
    if name == "channel":
        yield replace(choice, form="number", handling="ignore", made="before", table_at="module")
        yield replace(choice, made="before", table_at="module")
    if name == "chosen" and choice.chosen == "default":
        yield replace(choice, method="default")
    if name == "form":
        yield replace(choice, handling="ignore")
    if name == "launcher":
        yield replace(choice, with_block=False, remade=True)
