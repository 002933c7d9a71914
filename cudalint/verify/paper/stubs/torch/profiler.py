"""torch.profiler: making a profile reaches the runtime."""

from typing import Any

import paper_driver as driver

from torch import _gpu


class ProfilerActivity:
    """What to record."""

    CPU, CUDA = "CPU", "CUDA"


class profile:
    """A recording."""

    def __init__(self, *, activities: Any = None, **_: Any) -> None:
        if activities is None or ProfilerActivity.CUDA in activities:
            if activities is None:
                driver.cu_init("torch-raw")
            else:
                _gpu.query_count()

    def __enter__(self) -> "profile":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def step(self) -> None:
        """Nothing on paper."""

    def key_averages(self, *_: Any, **__: Any) -> Any:
        """Nothing recorded."""
        driver.unknown("torch.profiler.profile.key_averages")


__getattr__ = driver.lazy("torch.profiler")
