"""Which process holds how much of which physical GPU, asked of the driver's management library while programs run."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Collection
from types import TracebackType
from typing import Any

from cudalint.verify.surroundings import Footprint, Surroundings

_SECONDS = 0.25


class Hardware(Surroundings):
    """The GPUs of this machine, watched from outside for as long as the ``with`` block lasts.

    Without nvidia-ml-py, or where the driver numbers processes otherwise than this machine does (in some
    containers), nothing is known of who used which GPU.
    """

    def __init__(self) -> None:
        self._held: dict[tuple[int, int], int] = {}
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._nvml = _nvml()
        self._thread = threading.Thread(target=self._follow, name="cudalint-sampling", daemon=True)

    def __enter__(self) -> Hardware:
        if self._nvml is not None:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        if self._nvml is not None:
            self._thread.join(5)
            self._nvml.nvmlShutdown()

    def footprints(self, pids: Collection[int]) -> tuple[Footprint, ...]:
        """The most that each of these processes held, and of which GPU; said once, as numbers are used again."""
        with self._lock:
            keys = sorted(key for key in self._held if key[1] in pids)
            return tuple(Footprint(pid, gpu, self._held.pop((gpu, pid))) for gpu, pid in keys)

    def _follow(self) -> None:
        nvml = self._nvml
        while not self._done.wait(_SECONDS):
            try:
                for index in range(nvml.nvmlDeviceGetCount()):
                    self._look(index, nvml.nvmlDeviceGetComputeRunningProcesses(nvml.nvmlDeviceGetHandleByIndex(index)))
            except nvml.NVMLError:
                continue

    def _look(self, index: int, processes: Collection[Any]) -> None:
        with self._lock:
            for process in processes:
                mib = (process.usedGpuMemory or 0) >> 20
                key = (index, int(process.pid))
                self._held[key] = max(mib, self._held.get(key, 0))


def _nvml() -> Any:
    try:
        found: Any = importlib.import_module("pynvml")
    except ImportError:
        return None
    try:
        found.nvmlInit()
    except found.NVMLError:
        return None
    return found
