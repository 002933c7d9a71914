"""Makes a complaint about a repair small."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from oracle.fix_grammar import Broken, legal
from oracle.fix_runner import Judged, judge_broken
from oracle.shrink import plainer_values, plainest

PLAIN: dict[str, tuple[object, ...]] = {
    "crossing": ("none", "value"),
    "chosen": ("default", "context", "set_guard"),
    "touched_at": ("inline",),
    "touch": ("init", "tensor"),
    "placed": ("inline",),
    "home": ("function", "module"),
    "channel": ("return", "queue"),
    "result": ("pairs",),
    "argument": ("number",),
    "launcher": ("pool_map", "process", "executor_map"),
    "library": ("mp", "torch"),
    "single": (True,),
    "size": (1, 2),
    "made_in": ("main",),
    "with_block": (True, False),
    "framed": (True,),
    "state_first": (True,),
}


def shrink_repair(case: Judged, judge: Callable[[Broken, int], Judged] = judge_broken) -> Judged:
    """The plainest case found that has the same complaint."""
    return plainest(case, ("states", *PLAIN), _simpler, judge)


def _simpler(choice: Broken, name: str) -> Iterator[Broken]:
    if name == "states":
        yield from (replace(choice, states=(one,)) for one in choice.states if len(choice.states) > 1)
        return
    for value in plainer_values(choice, name, PLAIN):
        tried = replace(choice, **{name: value})  # type: ignore[arg-type]
        fitted = next(filter(legal, _fitted(tried, name)), None)
        if fitted is not None:
            yield fitted


def _fitted(choice: Broken, name: str) -> Iterator[Broken]:
    """The choice, and what other axes have to become with it."""
    yield choice
    if name == "launcher":
        yield replace(choice, with_block=False, home="function", channel="return")
        yield replace(choice, with_block=False, home="function", channel="queue", argument="number")
