"""How much of a large table a test takes by itself: a sample that stays the same, or all of it by command.

``CUDALINT_TESTS=all python -m pytest`` takes everything.
"""

from __future__ import annotations

import os


def every(number: int) -> int:
    """The step of a sample that takes one of so many; 1 where all was asked for."""
    return 1 if os.environ.get("CUDALINT_TESTS") == "all" else number
