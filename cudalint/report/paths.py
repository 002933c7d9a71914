"""Paths as people read them."""

from __future__ import annotations

import os


def relative(path: str, directory: str) -> str:
    """``path`` seen from ``directory``, or unchanged where it is not below it."""
    if not path.startswith(directory.rstrip(os.sep) + os.sep):
        return path
    return os.path.relpath(path, directory)
