"""The processes that a test has started, however far they went from it."""

from __future__ import annotations

import os
from pathlib import Path


def alive(mark: str) -> list[str]:
    """Those that carry a mark in their environment."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if mark.encode() in Path(f"/proc/{pid}/environ").read_bytes():
                found.append(pid)
        except OSError:
            continue
    return found
