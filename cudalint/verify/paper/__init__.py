"""Paper CUDA: stub frameworks that end as measured on hardware, under the real multiprocessing of this machine.

A program that runs on paper proves nothing about a GPU; it shows what the measurements say would happen there.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path

from cudalint.verify.gpus import Gpu, Gpus
from cudalint.verify.surroundings import HARDWARE, Footprint, Surroundings

STUBS = Path(__file__).resolve().parent / "stubs"
NAME = "paper CUDA, no hardware"
_MEMORY_MIB = 143_771
_UUID = "GPU-9a9e2000-0000-4000-8000-{:012x}"  # as the paper driver says it
_HANGING_SECONDS, _OTHER_SECONDS = 4.0, 60.0


def machine(count: int) -> Gpus:
    """The GPUs of a paper machine."""
    return Gpus(tuple(Gpu(index, NAME, _MEMORY_MIB, _UUID.format(index)) for index in range(max(1, count))), "none")


def obstacle() -> str | None:
    """Why nothing can run on paper here; ``None`` if it can."""
    return None if HARDWARE.has_module("numpy") else "paper CUDA needs NumPy, which is not installed"


class Paper(Surroundings):
    """Programs find the stubs where they look for the frameworks."""

    is_hardware = False

    def __init__(self, gpus: int) -> None:
        self._gpus = gpus

    def enter(self, folder: Path) -> Mapping[str, str]:
        """Make the folder in which all processes of a run keep what the paper driver knows."""
        state = folder / "paper"
        state.mkdir()
        others = os.environ.get("PYTHONPATH")
        return {
            "PYTHONPATH": str(STUBS) + (os.pathsep + others if others else ""),
            "PAPER_STATE": str(state),
            "PAPER_GPUS": str(self._gpus),
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
        }

    def leave(self, folder: Path) -> tuple[str, ...]:
        """Name what the program asked for and paper does not model, also where it swallowed the error."""
        asked = {words[1] for words in journal(folder / "paper") if words[0] == "gap"}
        return tuple(f"paper CUDA does not know {name}" for name in sorted(asked))

    def used(self, folder: Path, pids: Collection[int]) -> tuple[Footprint, ...]:
        """The contexts that the paper driver opened."""
        opened = {(int(words[2]), int(words[1])) for words in journal(folder / "paper") if words[0] == "context"}
        return tuple(Footprint(pid, gpu) for gpu, pid in sorted(opened))

    def seconds(self, limit: float, hangs: bool) -> float:
        """Paper takes no time: what is to hang is known to hang soon."""
        return min(limit, _HANGING_SECONDS if hangs else _OTHER_SECONDS)

    def has_module(self, name: str) -> bool:
        """Whether it is a stub, or installed."""
        place = STUBS.joinpath(*name.split("."))
        return place.is_dir() or place.with_suffix(".py").is_file() or super().has_module(name)


def journal(state: Path) -> list[list[str]]:
    """What the paper driver of all processes noted, line by line."""
    path = state / "journal"
    return [line.split() for line in path.read_text().splitlines() if line] if path.exists() else []
