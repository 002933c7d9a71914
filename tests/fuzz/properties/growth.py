"""Twice as much of anything costs hardly more than twice as much: n log n, in calls that cudalint makes, no seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType

from cudalint import config
from cudalint.session import Session
from fuzz.case import Case, laid_out

# What 2n more may cost of what n more does, of sizes n, 2n and 4n; for n log n this is 2.4 at most from n = 10 on.
MOST = 2.6
# Differences below this are noise: a cache that fills, a module that is imported.
NOISE = 3_000


def complaints(case: Case) -> Iterator[str]:
    """What grows too fast between the folders of a case, which hold the same thing in sizes n, 2n and 4n."""
    if {name.partition("/")[0] for name in case.files} != {"1", "2", "4"}:
        yield "it has one size, so that nothing is known of its growth: take --source growing"
        return
    with laid_out(case) as top:
        _checked(top / "1")  # so that all modules are there
        one, two, four = (counted(partial(_checked, top / times)) for times in ("1", "2", "4"))
    first, second = max(two - one, NOISE), four - two
    if second > MOST * first:
        times, shape = f"{second / first:.1f} times", case.name.partition("(")[0]
        yield f"'{shape}' cost {times} as much for the next 2n as for n: {one}, {two}, {four} calls"


def _checked(folder: Path) -> None:
    (folder / "pyproject.toml").write_text("[tool.cudalint]\n", encoding="utf-8")
    Session(config.load([str(folder)])).check([str(folder)])


def counted(run: Callable[[], None]) -> int:
    """How many functions, of Python and of C, a run calls."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        if event in ("call", "c_call"):
            count += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(before)
    return count
