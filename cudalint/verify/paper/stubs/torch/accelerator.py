"""torch.accelerator: the same facts as torch.cuda under other names."""

from typing import Any

import paper_driver as driver

import torch
from torch import _gpu, cuda
from torch._gpu import is_available

device_count = cuda.device_count
current_device_index = current_device_idx = cuda.current_device
set_device_index = set_device_idx = cuda.set_device
synchronize, current_stream, get_memory_info = cuda.synchronize, cuda.current_stream, cuda.mem_get_info
reset_accumulated_memory_stats, reset_peak_memory_stats = cuda.reset_accumulated_memory_stats, cuda.reset_peak_memory_stats
is_available = is_available


def current_accelerator(check_available: bool = False) -> Any:
    """The kind of accelerator."""
    return torch.device("cuda") if driver.gpus() else None


@_gpu.guarded
def get_device_capability(where: Any = None) -> Any:
    """Not offered by this build."""
    raise RuntimeError("Backend doesn't support getting device capability.")


def _sound(function: Any) -> Any:
    """These fail in a forked child although they initialise nothing."""

    def call(*args: Any) -> Any:
        if driver.here.poisoned:
            raise _gpu.initialization_error()
        return function(*args)

    return call


empty_cache, memory_stats = _sound(cuda.empty_cache), _sound(cuda.memory_stats)
memory_allocated, max_memory_allocated = _sound(cuda.memory_allocated), _sound(cuda.max_memory_allocated)
memory_reserved, max_memory_reserved = _sound(cuda.memory_reserved), _sound(cuda.max_memory_reserved)
__getattr__ = driver.lazy("torch.accelerator")
