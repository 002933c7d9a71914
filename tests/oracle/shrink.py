"""Makes a disagreement small: every axis goes to its plainest choice as long as the disagreement stays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

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


def shrink(case: Case) -> Case:
    """The plainest case found that has the same complaint."""
    for _ in range(3):
        before = case.choice
        for name in PLAIN:
            case = _plainer(case, name)
        if case.choice == before:
            return case
    return case


def _plainer(case: Case, name: str) -> Case:
    for choice in _simpler(case.choice, name):
        tried = judge_choice(choice, case.seed)
        if tried.complaint == case.complaint:
            return tried
    return case


def _simpler(choice: Choice, name: str) -> Iterator[Choice]:
    """Legal choices that are plainer on one axis; some axes move together."""
    values = PLAIN[name]
    now = getattr(choice, name)
    for value in values[: values.index(now)] if now in values else values:
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
