"""Where programs run: on this machine's hardware, or on something that stands in for it."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path


class Surroundings:
    """The machine as it is: nothing is prepared, nothing is looked at afterwards."""

    is_hardware = True

    def enter(self, folder: Path) -> Mapping[str, str]:
        """Prepare the folder of one run; gives the variables that the program needs."""
        return {}

    def leave(self, folder: Path) -> tuple[str, ...]:
        """Look at the folder after the run; gives what makes the run worth nothing."""
        return ()

    def seconds(self, limit: float, hangs: bool) -> float:
        """How long a program may take whose header says ``limit``."""
        return limit

    def has_module(self, name: str) -> bool:
        """Whether programs can import a module."""
        try:
            return importlib.util.find_spec(name) is not None
        except (ImportError, ValueError):
            return False


HARDWARE = Surroundings()
