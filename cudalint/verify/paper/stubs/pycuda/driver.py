"""pycuda.driver on paper: a stack of contexts in each thread (measured: 2 x H100, driver 580, PyCUDA 2026.1)."""

from __future__ import annotations

import threading
from typing import Any

import paper_driver as driver

_begun = {"init": False}
_stacks = threading.local()


class LogicError(Exception):
    """What the driver refuses."""


def init(flags: int = 0) -> None:
    """Initialise the driver, which a child of a process that did so cannot."""
    if not driver.cu_init("pycuda"):
        raise LogicError("cuInit failed: initialization error")
    _begun["init"] = True


def _stack() -> list["Context"]:
    if not hasattr(_stacks, "held"):
        _stacks.held = []
    return _stacks.held


def _current(asked: str) -> "Context":
    """The context that a call works with; none is current in a thread that made and pushed none."""
    if not _stack():
        raise LogicError(f"{asked} failed: invalid device context")
    return _stack()[-1]


class Context:
    """A context, made current by the thread that makes it."""

    def __init__(self, gpu: int) -> None:
        self._gpu = gpu
        driver.open_context(driver.visible()[gpu])

    def push(self) -> None:
        """Make it current in this thread."""
        _stack().append(self)

    @staticmethod
    def pop() -> None:
        """Make the one before it current again."""
        if not _stack():
            raise LogicError("context::pop failed: invalid device context - cannot pop non-current context")
        _stack().pop()


class Device:
    """A GPU by its number."""

    def __init__(self, number: int) -> None:
        if not _begun["init"]:
            raise LogicError("cuDeviceGet failed: initialization error")
        self._number = number

    @staticmethod
    def count() -> int:
        """How many GPUs there are."""
        return len(driver.visible())

    def name(self) -> str:
        """What it is called."""
        return "NVIDIA H200"

    def make_context(self) -> Context:
        """A context there, current in this thread."""
        made = Context(self._number)
        made.push()
        return made


class DeviceAllocation:
    """Memory on a GPU."""

    def __init__(self, size: int) -> None:
        self._bytes = bytearray(size)

    def free(self) -> None:
        """Give it back."""
        _current("cuMemFree")

    def __reduce__(self) -> Any:
        raise RuntimeError('Pickling of "pycuda._driver.DeviceAllocation" instances is not enabled')


def mem_alloc(size: int) -> DeviceAllocation:
    """Memory in the current context."""
    _current("cuMemAlloc")
    return DeviceAllocation(size)


def memcpy_htod(dest: DeviceAllocation, src: Any) -> None:
    """Copy to the GPU and wait."""
    _current("cuMemcpyHtoD")
    dest._bytes[:] = bytes(memoryview(src).cast("B"))


__getattr__ = driver.lazy("pycuda.driver")
