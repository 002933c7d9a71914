"""torch.cuda: which call initialises, which only asks, which touches nothing, as measured."""

from __future__ import annotations

import contextlib
import sys
import types
from collections import OrderedDict
from typing import Any

import paper_driver as driver

import torch
from torch import _gpu
from torch._gpu import (
    AcceleratorError,
    Memory,
    OutOfMemoryError,
    State,
    device_count,
    empty_cache,
    guarded,
    is_available,
    lazy_call,
    lazy_init,
)

_lazy_init, _lazy_call = lazy_init, lazy_call
DeferredCudaCallError = type("DeferredCudaCallError", (Exception,), {})
has_half = has_magma = True


def init() -> None:
    """Initialise CUDA in this process."""
    lazy_init()


def is_initialized() -> bool:
    """Whether torch initialised CUDA here; False in every fresh fork."""
    return State.initialized and not State.bad_fork


def _is_in_bad_fork() -> bool:
    return State.bad_fork


def _index(where: Any = None) -> int:
    """The index that a device argument means, -1 for none."""
    if where is None:
        return driver.current_device()
    if isinstance(where, int):
        return where
    found = torch.device(where)
    if found.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {found}")
    return driver.current_device() if found.index is None else found.index


@guarded
def current_device() -> int:
    """The device of this thread."""
    return driver.current_device()


@guarded
def set_device(where: Any) -> None:
    """Choose the device of this thread."""
    index = _index(where)
    if index >= 0:
        _gpu.use(index)
        driver.thread.device = index
        driver.thread.chosen = True


class device:
    """A device for a `with` block; as a statement it does nothing."""

    def __init__(self, where: Any) -> None:
        self.where = where

    def __enter__(self) -> None:
        lazy_init()
        self.before = driver.current_device()
        self.chosen = getattr(driver.thread, "chosen", False)
        index = _index(self.where) if self.where is not None else -1
        if index >= 0:
            _gpu.physical(index)
            driver.thread.device, driver.thread.chosen = index, True

    def __exit__(self, *_: object) -> None:
        driver.thread.device, driver.thread.chosen = self.before, self.chosen


class device_of(device):
    """The device of a tensor for a `with` block."""

    def __init__(self, tensor: Any) -> None:
        super().__init__(tensor.get_device() if tensor.is_cuda else None)


class _Properties:
    def __init__(self, index: int) -> None:
        gpu = _gpu.physical(index)
        self.name, self.uuid = "NVIDIA H200", driver.uuid(gpu)
        self.major, self.minor, self.total_memory, self.multi_processor_count = 9, 0, driver.TOTAL, 132
        self.is_multi_gpu_board = self.is_integrated = False
        self.pci_bus_id, self.pci_device_id, self.pci_domain_id = 27 + 16 * gpu, 0, 0
        self.warp_size, self.max_threads_per_multi_processor = 32, 2048

    def __repr__(self) -> str:
        return f"_CudaDeviceProperties(name='{self.name}', major=9, minor=0, uuid={self.uuid})"


_get_device_properties = _Properties


@guarded
def get_device_properties(where: Any = None) -> _Properties:
    """A device's properties; its uuid names the physical GPU."""
    return _Properties(_index(where))


@guarded
def get_device_name(where: Any = None) -> str:
    """A device's name."""
    return _Properties(_index(where)).name


@guarded
def get_device_capability(where: Any = None) -> tuple[int, int]:
    """A device's capability."""
    _gpu.physical(_index(where))
    return 9, 0


@guarded
def can_device_access_peer(where: Any, peer: Any) -> bool:
    """Whether two GPUs reach each other's memory."""
    return True


@guarded
def synchronize(where: Any = None) -> None:
    """Wait for a device."""
    _gpu.use(_index(where))


@guarded
def mem_get_info(where: Any = None) -> tuple[int, int]:
    """Free and total bytes of a GPU, over all processes."""
    gpu = _gpu.use(_index(where))
    return driver.TOTAL - driver.used(gpu), driver.TOTAL


@guarded
def device_memory_used(where: Any = None) -> int:
    """Used bytes of a GPU, over all processes."""
    return driver.used(_gpu.physical(_index(where)))


@guarded
def list_gpu_processes(where: Any = None) -> str:
    """The processes on a GPU and their memory."""
    index = _index(where)
    found = driver.holders(_gpu.physical(index))
    lines = [f"process {pid:>10} uses {size / driver.MIB:>12.3f} MB GPU memory" for pid, size in found.items()]
    return "\n".join([f"GPU:{index}", *(lines or ["no processes are running"])])


def memory_allocated(where: Any = None) -> int:
    """Bytes of living tensors; 0 without CUDA."""
    return Memory.allocated.get(_index(where), 0)


def memory_reserved(where: Any = None) -> int:
    """Bytes that the caching allocator keeps; 0 without CUDA."""
    return Memory.reserved.get(_index(where), 0)


def max_memory_allocated(where: Any = None) -> int:
    """The most that was allocated."""
    return Memory.peak.get(_index(where), 0)


def max_memory_reserved(where: Any = None) -> int:
    """The most that was kept."""
    return memory_reserved(where)


def memory_stats(where: Any = None) -> "OrderedDict[str, int]":
    """Counters; empty without CUDA."""
    found: OrderedDict[str, int] = OrderedDict()
    if State.initialized:
        found["allocated_bytes.all.current"] = memory_allocated(where)
        found["allocated_bytes.all.peak"] = max_memory_allocated(where)
        found["reserved_bytes.all.current"] = memory_reserved(where)
    return found


@guarded
def memory_summary(where: Any = None, abbreviated: bool = False) -> str:
    """Counters as text."""
    return f"| allocated {memory_allocated(where)} | reserved {memory_reserved(where)} |"


@guarded
def reset_peak_memory_stats(where: Any = None) -> None:
    """Forget the peak."""
    Memory.peak[_index(where)] = memory_allocated(where)


_fraction = [1.0]


@guarded
def set_per_process_memory_fraction(fraction: float, where: Any = None) -> None:
    """Remembered only."""
    _fraction[0] = fraction


@guarded
def get_per_process_memory_fraction(where: Any = None) -> float:
    """What was set."""
    return _fraction[0]


def manual_seed(seed: int) -> None:
    """Seed a GPU, when CUDA is initialised."""


manual_seed_all = manual_seed


def seed() -> None:
    """Seed from chance, when CUDA is initialised."""


seed_all = seed


@guarded
def initial_seed() -> int:
    """The seed."""
    return 0


@guarded
def get_rng_state(where: Any = "cuda") -> Any:
    """The generator's state."""
    _gpu.use(_index(where))
    return torch.zeros(16, dtype=torch.uint8, device="cpu")


@guarded
def get_rng_state_all() -> list[Any]:
    """Every generator's state."""
    return [get_rng_state(i) for i in range(len(driver.visible()))]


def set_rng_state(state: Any, where: Any = "cuda") -> None:
    """Restore a generator, when CUDA is initialised."""


def set_rng_state_all(states: Any) -> None:
    """Restore all, when CUDA is initialised."""


class Stream:
    """A stream: made by the runtime itself, never pickled."""

    def __init__(self, device: Any = None, priority: int = 0, **_: Any) -> None:
        if not getattr(type(self), "_paper_quiet", False):
            _gpu.raw_use()
        self.device_index = driver.current_device() if device is None else _index(device)
        self.device = torch.device("cuda", self.device_index)
        self.cuda_stream = id(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"cannot pickle '{type(self).__name__}' object")

    def synchronize(self) -> None:
        """Wait."""
        lazy_init()

    def wait_stream(self, other: Any) -> None:
        """Wait for another stream."""

    def wait_event(self, event: Any) -> None:
        """Wait for an event."""

    def query(self) -> bool:
        """All done."""
        return True

    def record_event(self, event: Any = None) -> "Event":
        """An event now."""
        made = event or Event()
        made.record(self)
        return made

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: object) -> None:
        pass


class _CurrentStream(Stream):
    _paper_quiet = True


class ExternalStream(Stream):
    """A stream made elsewhere."""

    def __init__(self, pointer: int, device: Any = None) -> None:
        lazy_init()
        super().__init__(device)


class Event:
    """An event: made lazily, used by record()."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        self.recorded = False

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("cannot pickle 'Event' object")

    def record(self, stream: Any = None) -> None:
        """Take the time."""
        lazy_init()
        _gpu.use(driver.current_device())
        self.recorded = True

    def synchronize(self) -> None:
        """Wait."""

    def wait(self, stream: Any = None) -> None:
        """Wait."""

    def query(self) -> bool:
        """Done."""
        return True

    def elapsed_time(self, other: "Event") -> float:
        """Milliseconds."""
        return 0.01


@guarded
def current_stream(where: Any = None) -> Stream:
    """The stream of this thread."""
    return _CurrentStream(where)


@guarded
def default_stream(where: Any = None) -> Stream:
    """The default stream."""
    return _CurrentStream(where)


@guarded
def set_stream(stream: Any) -> None:
    """Nothing on paper."""


@contextlib.contextmanager
def _stream_context(stream: Any) -> Any:
    yield stream


def stream(found: Any) -> Any:
    """A stream for a `with` block."""
    lazy_init()
    return _stream_context(found)


StreamContext = stream


class CUDAGraph:
    """A graph: made by the runtime itself."""

    def __init__(self, keep_graph: bool = False) -> None:
        _gpu.raw_use()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("cannot pickle 'CUDAGraph' object")

    def replay(self) -> None:
        """Nothing on paper."""

    def reset(self) -> None:
        """Nothing on paper."""


@contextlib.contextmanager
def graph(cuda_graph: Any, pool: Any = None, stream: Any = None, **_: Any) -> Any:
    """Capture."""
    lazy_init()
    yield


def is_current_stream_capturing() -> bool:
    """Whether a graph is captured."""
    _gpu.raw_use(context=False)
    return False


class MemPool:
    """A memory pool."""

    def __init__(self, *_: Any, **__: Any) -> None:
        lazy_init()


class GreenContext:
    """A part of a GPU."""

    def __init__(self, parts: Any) -> None:
        lazy_init()


class cudaStatus:
    """Codes of the runtime."""

    SUCCESS, ERROR_NOT_READY = 0, 34


def get_arch_list() -> list[str]:
    """The architectures of this build; asks whether there is a GPU."""
    return ["sm_80", "sm_90", "sm_100"] if _gpu.query_count() else []


def get_gencode_flags() -> str:
    """Compiler flags; asks whether there is a GPU."""
    return " ".join(get_arch_list())


def _tensor_type(kind: str, name: str) -> type:
    def new(cls: Any, *args: Any) -> Any:
        if args:
            return torch._build_typed(kind, args, "cuda")
        _gpu.raw_use()  # an empty one is made by the runtime, past torch's own initialisation
        made = torch._build_typed(kind, (0,), "cpu")
        made.device = torch.device("cuda", driver.current_device())
        return made

    return type(name, (), {"__new__": new, "__module__": "torch.cuda"})


def _storage_type(name: str) -> type:
    def init(self: Any, *args: Any) -> None:
        lazy_init()

    return type(name, (), {"__init__": init, "__module__": "torch.cuda"})


for _kind, _dtype in torch._TYPES.items():
    globals()[f"{_kind}Tensor"] = _tensor_type(_dtype, f"{_kind}Tensor")
for _kind in (*torch._TYPES, "ComplexFloat", "ComplexDouble"):
    globals()[f"{_kind}Storage"] = _storage_type(f"{_kind}Storage")


def _quiet(value: Any = None) -> Any:
    return lambda *args, **kwargs: value


def _initialising(value: Any = None) -> Any:
    return guarded(lambda *args, **kwargs: value)


is_bf16_supported = is_tf32_supported = _initialising(True)
utilization = memory_usage = temperature = power_draw = clock_rate = get_sync_debug_mode = _initialising(0)
ipc_collect = reset_accumulated_memory_stats = _initialising()
reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats
current_blas_handle = _initialising(1)
check_error = set_sync_debug_mode = caching_allocator_enable = _quiet()
get_allocator_backend = _quiet("native")
graph_pool_handle = _quiet((0, 1))
host_memory_stats = host_memory_stats_as_nested_dict = memory_stats_as_nested_dict = lambda *a: OrderedDict()
reset_peak_host_memory_stats = reset_accumulated_host_memory_stats = _quiet()
memory_cached, max_memory_cached = memory_reserved, max_memory_reserved
memory_snapshot = _quiet([])


def _submodule(name: str, **values: Any) -> types.ModuleType:
    made = types.ModuleType(f"torch.cuda.{name}")
    made.__dict__.update(values)
    made.__getattr__ = lambda wanted: driver.unknown(f"torch.cuda.{name}.{wanted}")  # type: ignore[method-assign]
    sys.modules[made.__name__] = made
    return made


def _pick(*names: str) -> dict[str, Any]:
    return {name: globals()[name] for name in names}


random = _submodule("random", **_pick("get_rng_state", "get_rng_state_all", "set_rng_state", "set_rng_state_all",
                                      "manual_seed", "manual_seed_all", "seed", "seed_all", "initial_seed"))  # fmt: skip
memory = _submodule(
    "memory", caching_allocator_alloc=_initialising(0), caching_allocator_delete=_quiet(),
    **_pick("MemPool", "caching_allocator_enable", "empty_cache", "get_allocator_backend", "host_memory_stats",
            "get_per_process_memory_fraction", "set_per_process_memory_fraction", "host_memory_stats_as_nested_dict",
            "list_gpu_processes", "max_memory_allocated", "max_memory_cached", "max_memory_reserved", "mem_get_info",
            "memory_allocated", "memory_cached", "memory_reserved", "memory_snapshot", "memory_stats",
            "memory_stats_as_nested_dict", "memory_summary", "reset_accumulated_host_memory_stats",
            "reset_accumulated_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached",
            "reset_peak_host_memory_stats", "reset_peak_memory_stats"),
)  # fmt: skip
nvtx = _submodule("nvtx", range_push=_quiet(-2), range_pop=_quiet(-2), mark=_quiet())
nccl = _submodule("nccl", version=_quiet((2, 28, 9)))


class GradScaler:
    """Loss scaling; asks whether there is a GPU."""

    def __init__(self, device: str = "cuda", *_: Any, enabled: bool = True, **__: Any) -> None:
        self._enabled = enabled
        if device == "cuda" and enabled:
            self._enabled = _gpu.query_count() > 0

    def is_enabled(self) -> bool:
        """Whether there was a GPU."""
        return self._enabled

    def scale(self, loss: Any) -> Any:
        """The loss as it is."""
        return loss

    def step(self, optimizer: Any) -> None:
        """The optimizer's step."""
        optimizer.step()

    def update(self) -> None:
        """Nothing on paper."""

    def unscale_(self, optimizer: Any) -> None:
        """Nothing on paper."""

    def state_dict(self) -> dict[str, Any]:
        """Nothing to keep."""
        return {}


class _autocast(torch.autocast):
    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:
        super().__init__("cuda", dtype, enabled)


def _amp_missing() -> bool:
    return not _gpu.query_count()


amp = _submodule("amp", GradScaler=lambda *a, **k: GradScaler("cuda", **k), autocast=_autocast,
                 amp_definitely_not_available=_amp_missing, custom_fwd=lambda f=None, **k: f or (lambda g: g),
                 custom_bwd=lambda f=None, **k: f or (lambda g: g))  # fmt: skip
__getattr__ = driver.lazy("torch.cuda")
