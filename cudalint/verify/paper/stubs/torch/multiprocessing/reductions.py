"""How tensors travel through the pipes of multiprocessing: CUDA by IPC handle, shared host memory by file."""

from __future__ import annotations

import atexit
import os
import time
from multiprocessing.reduction import ForkingPickler
from typing import Any

import paper_driver as driver

from torch import _gpu, _tensor
from torch._tensor import Tensor

PRODUCER_GONE = (
    "Producer process has been terminated before all shared CUDA tensors released. "
    "See Note [Sharing CUDA tensors]"
)
_GRACE = 0.03  # a producer that is about to end is given the time to do so, as a real exit would race
_sent: list[int] = []


def reduce_tensor(tensor: Tensor) -> tuple[Any, ...]:
    """A CUDA tensor goes as a handle to its producer's memory; a host tensor by file or by value."""
    array = tensor._touch()
    common = (type(tensor), tensor.dtype.name, tensor._requires)
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support "
            "crossing process boundaries.  If you just want to transfer the data, call detach() on the tensor "
            "before serializing (e.g., putting it on the queue)."
        )
    if tensor.is_cuda:
        if getattr(tensor, "_paper_imported", False):
            raise RuntimeError(
                "Attempted to send CUDA tensor received from another process; this is not currently supported. "
                "Consider cloning before sending."
            )
        gpu = _gpu.physical(tensor.device.index)  # type: ignore[arg-type]
        data = (_tensor._shrink(array), array.shape) if array.size > _tensor.BIG else (array.copy(), None)
        _note()
        return rebuild_cuda, (common, data, gpu, os.getpid())
    _note_host()
    if tensor._shared is not None:
        return rebuild_shared, (common, tensor._shared, array.dtype.name, array.shape)
    data = (_tensor._shrink(array), array.shape) if array.size > _tensor.BIG else (array.copy(), None)
    return rebuild_host, (common, data)


def _note() -> None:
    """Every measured channel ended with the warning of a producer that left before its tensors were released."""
    if not _sent:
        atexit.register(_warn)
        import multiprocessing.util

        multiprocessing.util.Finalize(None, _warn, exitpriority=100)
    _sent.append(1)


def _note_host() -> None:
    """Memory of the host is shared: nothing comes of it."""


def _warn() -> None:
    if _sent:
        os.write(2, f"[W CudaIPCTypes.cpp:16] {PRODUCER_GONE}\n".encode())
    _sent.clear()


@driver.after_fork
def _child() -> None:
    _sent.clear()


def _array(data: tuple[Any, Any]) -> Any:
    value, shape = data
    return value if shape is None else _tensor.np.broadcast_to(value, shape)


def rebuild_cuda(common: Any, data: Any, gpu: int, producer: int) -> Tensor:
    """Open a handle: it takes a working CUDA here and a living producer there."""
    cls, kind, requires = common
    _gpu.lazy_init()
    seen = driver.visible()
    if producer == os.getpid():
        raise _gpu.initialization_error("invalid device context")
    else:
        until = time.monotonic() + _GRACE
        while driver.alive(producer) and time.monotonic() < until:
            time.sleep(0.004)
        if not driver.alive(producer):
            raise _gpu.initialization_error("invalid resource handle")
    if gpu not in seen:
        raise _gpu.initialization_error("invalid device ordinal")
    where = _tensor.device("cuda", seen.index(gpu))
    _gpu.use(where.index)  # type: ignore[arg-type]
    made = _tensor.make(_array(data), _tensor.CPU, _tensor._dtype(kind), requires, cls)
    made.device = where  # the memory is the producer's
    made._paper_imported = True
    return made


def rebuild_shared(common: Any, path: str, name: str, shape: Any) -> Tensor:
    """Map the same file."""
    cls, kind, requires = common
    array = _tensor.np.memmap(path, name, "r+", shape=tuple(shape) or (1,)).reshape(shape)
    made = _tensor.make(array, _tensor.CPU, _tensor._dtype(kind), requires, cls)
    made._shared = path
    return made


def rebuild_host(common: Any, data: Any) -> Tensor:
    """By value."""
    cls, kind, requires = common
    return _tensor.make(_array(data), _tensor.CPU, _tensor._dtype(kind), requires, cls)


def init_reductions() -> None:
    """Teach multiprocessing's pickler, as importing torch does."""
    ForkingPickler.register(Tensor, reduce_tensor)
