"""Where programs run: on this machine's hardware, or on something that stands in for it."""

from __future__ import annotations

import importlib.util
import socket
from collections.abc import Collection, Mapping
from pathlib import Path

from cudalint.structs import Frozen


class Footprint(Frozen):
    """A process on a physical GPU, and the most memory that it was seen to hold there."""

    pid: int
    gpu: int
    mib: int | None = None


class Surroundings:
    """The machine as it is: nothing is prepared, nothing is looked at afterwards."""

    is_hardware = True

    def enter(self, folder: Path) -> Mapping[str, str]:
        """Prepare the folder of one run; gives the variables that the program needs."""
        return {}

    def leave(self, folder: Path) -> tuple[str, ...]:
        """Look at the folder after the run; gives what makes the run worth nothing."""
        return ()

    def used(self, folder: Path, pids: Collection[int]) -> tuple[Footprint, ...]:
        """Which GPUs the processes of a run used, as far as it is known."""
        return self.footprints(pids)

    def footprints(self, pids: Collection[int]) -> tuple[Footprint, ...]:
        """The same, of who looks at processes from outside."""
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

    def reaches_models(self) -> bool:
        """Whether programs can fetch models."""
        try:
            socket.create_connection(("huggingface.co", 443), timeout=3).close()
        except OSError:
            return False
        return True


HARDWARE = Surroundings()
