"""What the exit code of the command line says."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """What the exit code says."""

    CLEAN = 0
    FINDINGS = 1
    FAILED = 2
