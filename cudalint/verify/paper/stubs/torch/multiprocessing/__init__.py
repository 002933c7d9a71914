"""torch.multiprocessing: the real multiprocessing, with tensors that travel by handle, and spawn()."""

from __future__ import annotations

import multiprocessing
import sys
from multiprocessing import *  # noqa: F401,F403
from typing import Any

import paper_driver as driver

from torch.multiprocessing import reductions

__all__ = ["set_sharing_strategy", "get_sharing_strategy", "get_all_sharing_strategies", *multiprocessing.__all__]
_strategy = ["file_descriptor"]
reductions.init_reductions()


def set_sharing_strategy(name: str) -> None:
    """Remembered only."""
    _strategy[0] = name


def get_sharing_strategy() -> str:
    """What was set."""
    return _strategy[0]


def get_all_sharing_strategies() -> set[str]:
    """The strategies of Linux."""
    return {"file_descriptor", "file_system"}


def __getattr__(name: str) -> Any:
    if name in ("spawn", "start_processes", "SpawnContext", "ProcessContext", "ProcessRaisedException",
                "ProcessExitedException", "ProcessException"):  # fmt: skip
        import torch.multiprocessing.spawn as module

        for exported in ("start_processes", "SpawnContext", "ProcessContext", "ProcessRaisedException",
                         "ProcessExitedException", "ProcessException"):  # fmt: skip
            globals()[exported] = getattr(module, exported)
        globals()["spawn"] = module.spawn
        return globals()[name]
    if name in ("pool", "queues", "connection", "managers", "shared_memory", "process", "context", "synchronize"):
        import importlib

        return importlib.import_module(f"multiprocessing.{name}")
    if hasattr(multiprocessing, name):
        return getattr(multiprocessing, name)
    driver.unknown(f"torch.multiprocessing.{name}")


sys.modules.setdefault("torch.multiprocessing.queues", multiprocessing.queues if hasattr(multiprocessing, "queues") else None)  # type: ignore[arg-type]
if sys.modules["torch.multiprocessing.queues"] is None:
    del sys.modules["torch.multiprocessing.queues"]
