"""Room to recurse: trees are walked, and programs run, by functions that call themselves."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

# Codegen of libcst recurses a few frames per operator of a run; the guard lets runs of 2,000 through.
TREE = 20_000
# The machine takes up to seven frames for each of the statements and expressions that it follows into calls
# (``MOST_NESTED``), and two for each link of a chain in the last of them.
MACHINE = 12_000


@contextlib.contextmanager
def room(frames: int) -> Iterator[None]:
    """Let calls nest at least so deep."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, frames))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
