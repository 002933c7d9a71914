"""Room to recurse: trees are walked, and programs run, by functions that call themselves."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TypeVar

# Codegen of libcst recurses a few frames per operator of a run; the guard lets runs of 2,000 through.
TREE = 20_000
# The machine takes up to seven frames for each of the statements and expressions that it follows into calls
# (``MOST_NESTED``), and two for each link of a chain in the last of them.
MACHINE = 12_000
# A frame of so many slots takes more than a megabyte, for which Python makes a piece of two.
_SLOTS = 140_000
_T = TypeVar("_T")


@contextlib.contextmanager
def room(frames: int) -> Iterator[None]:
    """Let calls nest at least so deep."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, frames))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def in_one_piece(function: Callable[[], _T]) -> _T:
    """Call a function so that the frames of all that it calls lie in one piece of memory.

    Python keeps frames in pieces of 16 KB, and gives the last one back when the call ends that began it: what goes up
    and down between two pieces asks the system for memory all the time, which took a tenth of a run. What a large frame
    leaves of its piece is used by those above it, and costs nothing until it is.
    """
    return function()


in_one_piece.__code__ = in_one_piece.__code__.replace(co_stacksize=_SLOTS)
