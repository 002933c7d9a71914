"""What JAX's backend does in one process: starts at the first operation, and does not survive a fork."""

from __future__ import annotations

import os
import warnings
from typing import Any

import paper_driver as driver

FORK = (
    "os.fork() was called. os.fork() is incompatible with multithreaded code, and JAX is multithreaded, "
    "so this will likely lead to a deadlock."
)
EXHAUSTED = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate {} bytes."
WORKERS = 8  # so many preallocating processes do not fit on one GPU


class JaxRuntimeError(RuntimeError):
    """An error of the XLA runtime."""


JaxRuntimeError.__module__ = "jax.errors"


class State:
    """Of this process."""

    backend = ""  # "", gpu or cpu
    ran = False  # an operation was launched from Python, not only a backend made
    after_fork = ""  # in a child of such a parent: abort or hang


def _before() -> None:
    if State.backend:
        warnings.warn(FORK, RuntimeWarning, stacklevel=2)


@driver.after_fork
def _child() -> None:
    if State.backend == "gpu":
        State.after_fork = "hang" if State.ran else "abort"
    State.backend = "" if State.backend != "cpu" else "cpu"


os.register_at_fork(before=_before)


def _preallocate() -> None:
    """Three quarters of a GPU, unless told otherwise; many processes together do not fit."""
    gpu = driver.visible()[0]
    if os.environ.get("XLA_PYTHON_CLIENT_PREALLOCATE", "true").lower() in ("false", "0"):
        return
    if driver.here.pid in driver.settle(f"jax{gpu}", 0.2 if driver.here.forked else 0.6)[WORKERS - 1 :]:
        raise JaxRuntimeError(EXHAUSTED.format(int(driver.TOTAL * 0.75)))


def start(ran: bool = False) -> str:
    """Make the backend; answers gpu or cpu."""
    if State.after_fork == "abort":
        os.write(2, b"F external/xla: CUDA_ERROR_NOT_INITIALIZED: initialization error\n")
        os.abort()
    if State.after_fork == "hang":
        driver.sleep_for_ever()
    if not State.backend:
        wanted = os.environ.get("JAX_PLATFORMS", "")
        usable = wanted not in ("cpu",) and driver.gpus() > 0 and driver.cu_init("jax") and driver.visible()
        State.backend = "gpu" if usable else "cpu"
        if usable:
            for gpu in driver.visible()[:1]:
                driver.open_context(gpu)
            _preallocate()
    State.ran = State.ran or ran
    return State.backend


def inherited(allowed: bool = True) -> bool:
    """In a child of a JAX parent: may this call go on with what the parent knew?"""
    if State.after_fork == "hang" and not allowed:
        raise JaxRuntimeError("INTERNAL: CUDA error: Failed call to cuCtxSetCurrent: CUDA_ERROR_NOT_INITIALIZED: initialization error")
    return State.after_fork == "hang"


def np() -> Any:
    """numpy, when it is needed."""
    import numpy

    return numpy
