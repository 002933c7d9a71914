"""What torch knows of CUDA in this process: lazily initialised, and spoilt by a fork."""

from __future__ import annotations

import os
import warnings
from typing import Any, Callable

import paper_driver as driver

FORKED = (
    "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, "
    "you must use the 'spawn' start method"
)
_ASYNC = (
    "\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below "
    "might be incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
)
NO_DRIVER = "CUDA driver initialization failed, you might not have a CUDA gpu."


class AcceleratorError(RuntimeError):
    """An error that the CUDA runtime itself reported."""


class OutOfMemoryError(RuntimeError):
    """No room left on the GPU."""


AcceleratorError.__module__ = OutOfMemoryError.__module__ = "torch"


class State:
    """torch's own flags; the driver's are in paper_driver."""

    initialized = False
    registered = False  # torch hooked the fork: children get its own message instead of the driver's
    bad_fork = False
    cached_count: int | None = None
    lock_token = 0


class Memory:
    """The caching allocator: bytes of living tensors and bytes kept, per logical device."""

    allocated: dict[int, int] = {}
    reserved: dict[int, int] = {}
    peak: dict[int, int] = {}
    made: dict[int, int] = {}  # how many tensors were given memory, in all


_queued: list[Callable[[], None]] = []


@driver.after_fork
def _child() -> None:
    State.bad_fork = State.bad_fork or State.registered
    State.registered = State.initialized = False
    State.lock_token += 1
    Memory.allocated, Memory.reserved, Memory.peak, Memory.made = {}, {}, {}, {}
    if hasattr(driver.thread, "device"):
        del driver.thread.device


def initialization_error(what: str = "initialization error") -> AcceleratorError:
    """The runtime's error as torch words it."""
    return AcceleratorError(f"CUDA error: {what}{_ASYNC}")


def driver_failure() -> RuntimeError:
    """What torch meets when another library's cuInit came before the fork."""
    if driver.here.poison_source in ("torch", "torch-raw", "jax"):
        return initialization_error()
    return RuntimeError(NO_DRIVER)


def query_count() -> int:
    """Ask the runtime for the devices: hooks the fork and runs cuInit, opens nothing."""
    State.registered = True
    driver.cu_init("torch")
    if driver.here.poisoned and not State.bad_fork and driver.here.poison_source not in ("torch-raw", "jax"):
        warnings.warn(f"CUDA initialization: {NO_DRIVER}", stacklevel=3)
        return 0
    return len(driver.visible())


def is_available() -> bool:
    """True where a GPU is visible; without the NVML check it initialises the driver."""
    if os.environ.get("PYTORCH_NVML_BASED_CUDA_CHECK") == "1":
        return len(driver.visible_now()) > 0
    return query_count() > 0


def device_count() -> int:
    """NVML's answer, by the environment of the moment, until torch is initialised and has cached one."""
    if State.cached_count is not None:
        return State.cached_count
    count = len(driver.visible_now())
    if State.initialized:
        State.cached_count = count
    return count


def lazy_init() -> None:
    """What every real use of CUDA does first."""
    if State.initialized:
        return
    if State.bad_fork:
        raise RuntimeError(FORKED)
    if driver.here.poisoned:
        raise driver_failure()
    if not driver.visible_now() and not driver.here.initialised:
        driver.cu_init("torch")
        State.registered = True
        raise RuntimeError("No CUDA GPUs are available")
    State.registered = True
    driver.cu_init("torch")
    if not driver.visible():
        raise RuntimeError("No CUDA GPUs are available")
    State.initialized = True
    import torch.cuda  # the real one is part of importing torch

    while _queued:
        _queued.pop(0)()


def raw_use(context: bool = True) -> None:
    """A call that reaches the runtime without torch's own initialisation, so torch's fork hook is not set."""
    if driver.here.poisoned:
        raise initialization_error()
    driver.cu_init("torch-raw")
    if not driver.visible():
        raise initialization_error("no CUDA-capable device is detected")
    if context:
        use(driver.current_device())


def lazy_call(function: Callable[[], None]) -> None:
    """Run now if CUDA is initialised, else when it will be."""
    if State.initialized:
        function()
    else:
        _queued.append(function)


def physical(index: int) -> int:
    """The GPU behind a logical device of this process."""
    seen = driver.visible()
    if not 0 <= index < len(seen):
        raise initialization_error("invalid device ordinal")
    return seen[index]


def use(index: int) -> int:
    """Open the context of a logical device; answers the physical GPU."""
    gpu = physical(index)
    try:
        driver.open_context(gpu)
    except driver.OutOfMemory:
        raise initialization_error("out of memory") from None
    return gpu


def blas(index: int) -> None:
    """The first matrix product of a process on a GPU makes cuBLAS handles."""
    key = (os.getpid(), index)
    if key not in _handles:
        _handles.add(key)
        try:
            driver.hold(physical(index), driver.BLAS)
        except driver.OutOfMemory:
            raise RuntimeError(
                "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"
            ) from None


_handles: set[tuple[int, int]] = set()


def _grow(index: int, gpu: int, want: int) -> None:
    """Take whole segments from the GPU; give back what is cached before giving up."""
    have = Memory.reserved.get(index, 0)
    more = -(-(want - have) // driver.SEGMENT) * driver.SEGMENT
    try:
        driver.hold(gpu, more)
    except driver.OutOfMemory:
        free = driver.TOTAL - driver.used(gpu)
        raise OutOfMemoryError(
            f"CUDA out of memory. Tried to allocate {more / driver.MIB:.2f} MiB. GPU {index} has a total capacity "
            f"of {driver.TOTAL / 1024**3:.2f} GiB of which {free / driver.MIB:.2f} MiB is free."
        ) from None
    Memory.reserved[index] = have + more


class Block:
    """Memory of one tensor on the GPU, freed with it."""

    __slots__ = ("index", "size", "pid", "__weakref__")

    def __init__(self, index: int, size: int) -> None:
        self.pid = 0
        gpu = use(index)
        size = -(-size // 512) * 512
        want = Memory.allocated.get(index, 0) + size
        if want > Memory.reserved.get(index, 0):
            _grow(index, gpu, want)
        Memory.allocated[index] = want
        Memory.made[index] = Memory.made.get(index, 0) + 1
        Memory.peak[index] = max(Memory.peak.get(index, 0), want)
        self.index, self.size, self.pid = index, size, driver.here.pid

    def __del__(self) -> None:
        try:
            if self.pid == driver.here.pid:
                Memory.allocated[self.index] -= self.size
        except (AttributeError, TypeError, KeyError):  # the interpreter is going down
            pass


def empty_cache() -> None:
    """Give unused segments back to the GPU."""
    if not State.initialized:
        return
    for index, reserved in list(Memory.reserved.items()):
        keep = -(-Memory.allocated.get(index, 0) // driver.SEGMENT) * driver.SEGMENT
        if keep < reserved:
            driver.hold(physical(index), keep - reserved)
            Memory.reserved[index] = keep


def guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of torch.cuda that initialises CUDA before it does anything."""

    def call(*args: Any, **kwargs: Any) -> Any:
        lazy_init()
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = function.__name__
    call.__doc__ = function.__doc__
    return call
