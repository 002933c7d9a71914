"""How often Python looks for garbage; imports nothing of cudalint, so that it counts for what is imported next."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

# Of what is imported, and of what the machine makes, hardly anything refers to itself, and looking for cycles among it
# costs a seventh of a run; to look through all of it once more when the process ends, a twentieth.
_BETWEEN_COLLECTIONS = 100_000


@contextlib.contextmanager
def collected_rarely() -> Iterator[None]:
    """Look for cycles rarely within this, and not at all where nobody does."""
    thresholds = gc.get_threshold()
    gc.set_threshold(max(thresholds[0], _BETWEEN_COLLECTIONS) if thresholds[0] else 0, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


def let_go() -> None:
    """Have Python not look for cycles when it ends, which is soon: what is left goes with the process."""
    gc.freeze()
