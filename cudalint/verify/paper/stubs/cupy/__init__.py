"""cupy on paper: arrays on the thread's current device."""

from __future__ import annotations

from typing import Any

import paper_driver as driver
from cupy_backends.cuda.api.runtime import CUDARuntimeError

__version__ = "14.2.0"
_INIT = "cudaErrorInitializationError: initialization error"


def _use(index: int | None = None) -> int:
    """What every array does first; answers the logical device."""
    if not driver.cu_init("cupy"):
        raise CUDARuntimeError(3, _INIT)
    seen = driver.visible()
    if not seen:
        raise CUDARuntimeError(100, "cudaErrorNoDevice: no CUDA-capable device is detected")
    index = driver.current_device() if index is None else index
    if index >= len(seen):
        raise CUDARuntimeError(101, "cudaErrorInvalidDevice: invalid device ordinal")
    try:
        driver.open_context(seen[index])
    except driver.OutOfMemory:
        raise CUDARuntimeError(2, "cudaErrorMemoryAllocation: out of memory") from None
    return index


def _query() -> int:
    driver.cu_init("cupy")
    return len(driver.visible())


def _np() -> Any:
    import numpy

    return numpy


class ndarray:
    """An array on a GPU."""

    __module__ = "cupy"
    __array_priority__ = 100

    def __init__(self, array: Any) -> None:
        self._index = _use()
        self._a = array
        self._pid = driver.here.pid

    def _touch(self) -> Any:
        if self._pid != driver.here.pid:
            raise CUDARuntimeError(3, _INIT)
        return self._a

    def get(self) -> Any:
        """A copy in host memory."""
        return _np().array(self._touch())

    def item(self) -> Any:
        """The only element."""
        return self._touch().item()

    def tolist(self) -> Any:
        """Nested lists."""
        return self._touch().tolist()

    @property
    def device(self) -> Any:
        """Its device."""
        return _Device(self._index)

    shape = property(lambda self: self._a.shape)
    size = property(lambda self: self._a.size)
    dtype = property(lambda self: self._a.dtype)
    ndim = property(lambda self: self._a.ndim)
    nbytes = property(lambda self: self._a.nbytes)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": self.shape, "paper": self._touch(), "version": 3}

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a NumPy array explicitly.")

    def __len__(self) -> int:
        return len(self._a)

    def __repr__(self) -> str:
        return repr(self._touch())

    def __str__(self) -> str:
        return str(self._touch())

    def __float__(self) -> float:
        return float(self._touch())

    def __int__(self) -> int:
        return int(self._touch())

    def __bool__(self) -> bool:
        return bool(self._touch())

    def __getitem__(self, key: Any) -> "ndarray":
        return _wrap(self._touch()[_plain(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self._touch()[_plain(key)] = _plain(value)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.get(),)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in ("sum", "mean", "max", "min", "dot", "reshape", "astype", "copy", "std", "prod", "ravel", "flatten",
                    "argmax", "argmin", "transpose", "fill", "sort", "any", "all"):  # fmt: skip
            found = getattr(self._touch(), name)
            return lambda *args, **kwargs: _wrap(found(*(_plain(a) for a in args), **kwargs))
        if name == "T":
            return _wrap(self._touch().T)
        driver.unknown(f"cupy.ndarray.{name}")


def _rebuild(array: Any) -> ndarray:
    _use()
    return ndarray(array)


def _wrap(value: Any) -> Any:
    return ndarray(_np().asarray(value)) if value is not None else None


def _plain(value: Any) -> Any:
    return value._touch() if isinstance(value, ndarray) else value


def _operator(name: str) -> Any:
    def operate(self: ndarray, *others: Any) -> Any:
        return _wrap(getattr(self._touch(), name)(*(_plain(o) for o in others)))

    return operate


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"):
    for _form in (f"__{_name}__", f"__r{_name}__"):
        setattr(ndarray, _form, _operator(_form))
for _name in ("neg", "abs", "eq", "ne", "lt", "le", "gt", "ge", "and", "or", "invert"):
    setattr(ndarray, f"__{_name}__", _operator(f"__{_name}__"))


def _made(name: str) -> Any:
    def make(*args: Any, **kwargs: Any) -> ndarray:
        _use()
        kwargs.pop("blocking", None)
        return _wrap(getattr(_np(), name)(*(_plain(a) for a in args), **kwargs))

    make.__name__ = name
    return make


for _name in ("ones zeros empty full arange linspace eye array asarray ones_like zeros_like full_like empty_like "
              "sqrt exp log sin cos tanh square abs sum mean max min dot matmul stack concatenate where maximum "
              "minimum argmax argsort sort multiply add clip std var prod outer tensordot ascontiguousarray").split():
    globals()[_name] = _made(_name)
driver.by_name("cupy", {n: f for n, f in globals().items() if getattr(f, "__qualname__", "").startswith("_made.")})
asarray: Any = globals()["asarray"]
for _name in ("float32", "float64", "float16", "int32", "int64", "int8", "uint8", "bool_", "complex64"):
    globals()[_name] = _name.rstrip("_")
newaxis, pi, inf, nan = None, 3.141592653589793, float("inf"), float("nan")


def asnumpy(value: Any, *_: Any, **__: Any) -> Any:
    """A copy in host memory."""
    return value.get() if isinstance(value, ndarray) else _np().asarray(value)


def show_config(*_: Any) -> None:
    """Prints nothing."""


class _Pool:
    def used_bytes(self) -> int:
        """Nothing is counted."""
        return 0

    def total_bytes(self) -> int:
        """Nothing is counted."""
        return 0

    def free_all_blocks(self) -> None:
        """Nothing to free."""

    def set_limit(self, *_: Any, **__: Any) -> None:
        """Remembered nowhere."""


_pool = _Pool()


def get_default_memory_pool() -> _Pool:
    """Touches nothing."""
    return _pool


get_default_pinned_memory_pool = get_default_memory_pool


class _Device:
    """A device: a value until it is used."""

    def __init__(self, device: int | None = None) -> None:
        self.id = driver.current_device() if device is None else int(device)

    def use(self) -> "_Device":
        """Select it for this thread."""
        _use(self.id)
        driver.thread.device = self.id
        return self

    def __enter__(self) -> "_Device":
        self._before = driver.current_device()
        return self.use()

    def __exit__(self, *_: object) -> None:
        driver.thread.device = self._before

    def synchronize(self) -> None:
        """Wait."""
        _use(self.id)

    @property
    def mem_info(self) -> tuple[int, int]:
        """Free and total bytes."""
        gpu = driver.visible()[_use(self.id)]
        return driver.TOTAL - driver.used(gpu), driver.TOTAL

    def __int__(self) -> int:
        return self.id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Device) and other.id == self.id

    def __hash__(self) -> int:
        return self.id

    def __repr__(self) -> str:
        return f"<CUDA Device {self.id}>"


class _Stream:
    null: Any = None

    def __init__(self, null: bool = False, non_blocking: bool = False, **_: Any) -> None:
        _use()

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle 'Stream' object")

    def __enter__(self) -> "_Stream":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def synchronize(self) -> None:
        """Wait."""


def _driver_version() -> int:
    _query()
    return 13000


def _properties(index: int) -> dict[str, Any]:
    gpu = driver.visible()[_use(index)]
    return {"name": b"NVIDIA H200", "uuid": driver.uuid(gpu).encode(), "totalGlobalMem": driver.TOTAL}


def _set_device(index: int) -> None:
    _Device(index).use()


def _memory() -> tuple[int, int]:
    return _Device().mem_info


_Space = driver.Space


runtime = _Space(
    paper_name="cupy.cuda.runtime", getDeviceCount=_query, runtimeGetVersion=lambda: 13020, getDevice=lambda: _use(),
    driverGetVersion=_driver_version, CUDARuntimeError=CUDARuntimeError, getDeviceProperties=_properties,
    setDevice=_set_device, memGetInfo=_memory, deviceSynchronize=lambda: _use() and None,
    deviceGetPCIBusId=lambda index: f"0000:{27 + 16 * driver.visible()[_use(index)]:02X}:00.0",
)  # fmt: skip


def _available() -> bool:
    return _query() > 0


def _current_stream() -> Any:
    return _Stream()


cuda = _Space(
    paper_name="cupy.cuda", is_available=_available, runtime=runtime, Device=_Device, Stream=_Stream,
    get_cuda_path=lambda: "/usr/local/cuda", set_allocator=lambda *_: None, get_current_stream=_current_stream,
    set_pinned_memory_allocator=lambda *_: None, MemoryPool=lambda *_: _Pool(), get_device_id=lambda: _use(),
)  # fmt: skip


def _seed(value: Any = None) -> None:
    _use()
    _np().random.seed(value)


def _drawn(name: str) -> Any:
    def draw(*args: Any, **kwargs: Any) -> ndarray:
        _use()
        kwargs.pop("dtype", None)
        return _wrap(getattr(_np().random, name)(*args, **kwargs))

    return draw


random = _Space(paper_name="cupy.random", seed=_seed,
                **{n: _drawn(n) for n in ("rand", "randn", "random", "randint", "normal", "uniform", "standard_normal")})  # fmt: skip


def _norm(value: ndarray, *args: Any) -> ndarray:
    return _wrap(_np().linalg.norm(value._touch(), *args))


linalg = _Space(paper_name="cupy.linalg", norm=_norm)
__getattr__ = driver.lazy("cupy")
