"""Python's parsers, without their warnings about the text that they read: it is somebody else's."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Within it nothing is printed of doubtful escapes and comparisons of what is parsed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
