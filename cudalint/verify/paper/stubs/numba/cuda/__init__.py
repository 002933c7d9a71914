"""numba.cuda on paper: kernels run as Python loops over their threads."""

from __future__ import annotations

import threading
from typing import Any

import paper_driver as driver
from numba.cuda.cudadrv.driver import CudaAPIError
from numba.cuda.cudadrv.error import CudaDriverError, CudaSupportError  # noqa: F401

_here = {"own": False, "forked": False}
_place = threading.local()


@driver.after_fork
def _child() -> None:
    _here["forked"] = _here["forked"] or _here["own"]
    _here["own"] = False


def _np() -> Any:
    import numpy

    return numpy


def _use(index: int | None = None) -> int:
    """What every kernel, copy or query of a device does first."""
    if _here["forked"]:
        raise CudaDriverError("CUDA initialized before forking")
    if not driver.cu_init("numba"):
        raise CudaSupportError(
            "Error at driver init: Call to cuInit results in CUDA_ERROR_NOT_INITIALIZED (3)"
        )
    _here["own"] = True
    seen = driver.visible()
    index = driver.current_device() if index is None else index
    if index >= len(seen):
        raise CudaSupportError("No CUDA devices found") if not seen else IndexError("list index out of range")
    try:
        driver.open_context(seen[index])
    except driver.OutOfMemory:
        raise CudaAPIError(2, "Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY") from None
    return index


def _query() -> int:
    if driver.cu_init("numba"):
        _here["own"] = True
    return len(driver.visible())


def is_available() -> bool:
    """Whether there is a GPU; initialises the driver."""
    return _query() > 0


class _Context:
    def __init__(self, index: int) -> None:
        self.device = Device(index)

    def get_memory_info(self) -> tuple[int, int]:
        """Free and total bytes."""
        gpu = driver.visible()[self.device.id]
        return driver.TOTAL - driver.used(gpu), driver.TOTAL

    def synchronize(self) -> None:
        """Wait."""


class Device:
    """A device."""

    def __init__(self, index: int) -> None:
        self.id = index
        self.name = b"NVIDIA H200"
        self.compute_capability = (9, 0)
        self.uuid = f"GPU-{driver.uuid(driver.visible()[index])}"

    def __enter__(self) -> "Device":
        self._before = driver.current_device()
        driver.thread.device = _use(self.id)
        return self

    def __exit__(self, *_: object) -> None:
        driver.thread.device = self._before

    def reset(self) -> None:
        """Nothing on paper."""


class _Devices:
    def __len__(self) -> int:
        return _query()

    def __getitem__(self, index: int) -> Device:
        return [Device(i) for i in range(_query())][index]

    def __iter__(self) -> Any:
        return iter([Device(i) for i in range(_query())])

    def __repr__(self) -> str:
        return f"<Managed Device list of {_query()}>"


def list_devices() -> _Devices:
    """All devices."""
    _query()
    return _Devices()


def detect() -> bool:
    """Print the devices."""
    _use()
    print(f"Found {_query()} CUDA devices")
    return True


def get_current_device() -> Device:
    """This thread's device."""
    return Device(_use())


def select_device(index: int) -> Device:
    """Choose this thread's device."""
    driver.thread.device = _use(index)
    return Device(index)


def current_context(devnum: int | None = None) -> _Context:
    """This thread's context."""
    return _Context(_use(devnum))


def synchronize() -> None:
    """Wait."""
    _use()


def close() -> None:
    """Nothing on paper."""


class DeviceNDArray:
    """An array on a GPU: not to be pickled."""

    def __init__(self, array: Any) -> None:
        _use()
        self._a, self._pid = array, driver.here.pid

    def _touch(self) -> Any:
        if self._pid != driver.here.pid:
            raise CudaDriverError("CUDA initialized before forking")
        return self._a

    shape = property(lambda self: self._a.shape)
    size = property(lambda self: self._a.size)
    dtype = property(lambda self: self._a.dtype)

    def __len__(self) -> int:
        return len(self._a)

    def copy_to_host(self, ary: Any = None, stream: Any = 0) -> Any:
        """A copy in host memory."""
        _use()
        if ary is None:
            return self._touch().copy()
        ary[...] = self._touch()
        return ary

    def copy_to_device(self, ary: Any, stream: Any = 0) -> None:
        """Overwrite."""
        _use()
        self._touch()[...] = getattr(ary, "_a", ary)

    def __getitem__(self, key: Any) -> Any:
        return self._touch()[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._touch()[key] = value

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": self.shape, "paper": self._touch(), "version": 3}

    def get_ipc_handle(self) -> "IpcArrayHandle":
        """What another process opens the same memory with."""
        _use()
        return IpcArrayHandle(self._touch())

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("no default __reduce__ due to non-trivial __cinit__")


class IpcArrayHandle:
    """Made for pickling: opened in a ``with`` block of the other process."""

    def __init__(self, array: Any) -> None:
        self._a = array

    def __enter__(self) -> DeviceNDArray:
        return DeviceNDArray(self._a)

    def __exit__(self, *_: object) -> None:
        pass


def to_device(value: Any, stream: Any = 0, copy: bool = True, to: Any = None) -> DeviceNDArray:
    """A copy on the device."""
    _use()
    return DeviceNDArray(_np().array(value))


def device_array(shape: Any, dtype: Any = "float64", *_: Any, **__: Any) -> DeviceNDArray:
    """An empty array on the device."""
    _use()
    return DeviceNDArray(_np().zeros(shape, dtype))


def device_array_like(value: Any, stream: Any = 0) -> DeviceNDArray:
    """An empty array like another."""
    return device_array(value.shape, value.dtype)


def as_cuda_array(value: Any) -> DeviceNDArray:
    """Another library's array."""
    return DeviceNDArray(value.__cuda_array_interface__["paper"])


def pinned_array(shape: Any, dtype: Any = "float64", **_: Any) -> Any:
    """Page-locked host memory."""
    _use()
    return _np().zeros(shape, dtype)


class _Stream:
    def __init__(self) -> None:
        _use()

    def synchronize(self) -> None:
        """Wait."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("cannot pickle 'Stream' object")


def stream() -> _Stream:
    """A stream."""
    return _Stream()


def default_stream() -> _Stream:
    """The default stream."""
    return _Stream()


event = stream


class _Index:
    def __init__(self, name: str) -> None:
        self._name = name

    x = property(lambda self: getattr(_place, self._name, 0))
    y = z = property(lambda self: 0)


threadIdx, blockIdx, blockDim, gridDim = (_Index(n) for n in ("thread", "block", "width", "blocks"))


def grid(ndim: int) -> Any:
    """This thread's place."""
    here = _place.block * _place.width + _place.thread
    return here if ndim == 1 else (here, 0) if ndim == 2 else (here, 0, 0)


def gridsize(ndim: int) -> Any:
    """How many threads."""
    return _place.blocks * _place.width


def syncthreads() -> None:
    """Nothing on paper."""


class _Kernel:
    def __init__(self, function: Any) -> None:
        self.py_func = function
        self.__name__ = getattr(function, "__name__", "kernel")

    def __call__(self, *args: Any) -> Any:
        return self.py_func(*args)

    def __getitem__(self, shape: Any) -> Any:
        blocks, width = (s if isinstance(s, int) else s[0] for s in shape[:2])
        return lambda *args: self._launch(blocks, width, args)

    def _launch(self, blocks: int, width: int, args: Any) -> None:
        _use()
        inner = [a._touch() if isinstance(a, DeviceNDArray) else a for a in args]
        _place.blocks, _place.width = blocks, width
        for number in range(min(blocks * width, 4096)):
            _place.block, _place.thread = divmod(number, width)
            self.py_func(*inner)

    def forall(self, count: int, *_: Any) -> Any:
        """As many threads as there are elements."""
        return self[1, count]


def jit(function: Any = None, *_: Any, **__: Any) -> Any:
    """A kernel; compiling is left to its first launch."""
    return _Kernel(function) if callable(function) else lambda found: _Kernel(found)


def __getattr__(name: str) -> Any:
    if name == "gpus":  # asking for the list is asking the driver
        _query()
        return _Devices()
    driver.unknown(f"numba.cuda.{name}")
