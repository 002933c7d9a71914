"""How much a run takes on of one file and spends on it: what ``[tool.cudalint.limits]`` may say."""

from __future__ import annotations

from cudalint.structs import Frozen

# The most that each may be set to: what is read at all, and what the parser and the stack of a process hold.
MOST_FILE_SIZE = 256_000_000
MOST_DEPTH = 200
MOST_STEPS = 1_000_000
MOST_SECONDS = 86_400
MOST_CONTEXT_FILES = 1_000_000
MOST_CONTEXT_SIZE = 100_000_000_000
# How large a number is that is known: to compute with larger ones takes long, and Python refuses to write them.
MOST_BITS = 4_096


class Limits(Frozen):
    """Where a file is refused, and where an analysis is cut off.

    ``file_size``: bytes of a file that mentions CUDA or processes. ``depth``: calls within one another. ``steps``:
    statements of an entry; entries of other kinds have more or fewer, and change with it. ``seconds``: processor time
    for what a file starts, and as much again for what has no visible caller; None for as long as the steps take, so
    that the same program gives the same report on every machine. ``context_files`` and ``context_size``: how many files
    around those that a run is about are read with them, and their bytes.
    """

    file_size: int = 5_000_000
    depth: int = 40
    steps: int = 12_000
    seconds: int | None = None
    context_files: int = 20_000
    context_size: int = 200_000_000

    def scaled(self, steps: int) -> int:
        """A bound of steps, by as much larger or smaller as that of an entry is."""
        return max(1, steps * self.steps // DEFAULT.steps)


DEFAULT = Limits()
