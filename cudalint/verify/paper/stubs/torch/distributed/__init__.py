"""torch.distributed: ranks meet in files of the run's shared directory; NCCL looks at which GPU each rank uses."""

from __future__ import annotations

import datetime
import os
import pickle
import time
import uuid
import warnings
from datetime import timedelta  # noqa: F401
from typing import Any

import paper_driver as driver

import torch
from torch import _gpu, _tensor

default_pg_timeout = datetime.timedelta(minutes=30)
DUPLICATE = "Duplicate GPU detected : rank {} and rank {} both on CUDA device {:x}000"
NOT_BOUND = "Attempt to perform collective on tensor not on device passed to init_process_group"


class DistError(RuntimeError):
    """Any error of this module."""


class DistBackendError(DistError):
    """An error of NCCL or gloo."""


class DistNetworkError(DistError):
    """No connection."""


for _class in (DistError, DistBackendError, DistNetworkError):
    _class.__module__ = "torch.distributed"


class _Group:
    """A process group as one rank sees it."""

    def __init__(self, place: str, rank: int, size: int, backend: str, bound: Any) -> None:
        self.place, self._rank, self._size, self.backend, self.bound_device_id = place, rank, size, backend, bound
        self.count = 0
        self.used: Any = None

    def rank(self) -> int:
        """This rank."""
        return self._rank

    def size(self) -> int:
        """How many ranks."""
        return self._size


class _State:
    group: Any = None
    meeting: str | None = None
    groups = 0


class Backend(str):
    """A backend's name."""

    NCCL, GLOO, MPI, UCC = "nccl", "gloo", "mpi", "ucc"


class _Op(str):
    pass


class _ReduceOpMeta(type):
    def __call__(cls, *args: Any) -> Any:
        if not args:
            raise TypeError("ReduceOp(): incompatible constructor arguments")
        return args[0]


class ReduceOp(metaclass=_ReduceOpMeta):
    """How values are combined."""

    SUM, AVG, PRODUCT, MIN, MAX = _Op("sum"), _Op("avg"), _Op("prod"), _Op("min"), _Op("max")


@driver.after_fork
def _child() -> None:
    _State.group = None


# ---------------------------------------------------------------- meeting


def _environment(name: str) -> str:
    value = os.environ.get(name)
    if value is None:
        raise ValueError(
            f"Error initializing torch.distributed using env:// rendezvous: environment variable {name} expected, but not set"
        )
    return value


def _wait(path: str, test: Any = None) -> Any:
    """Wait for a file; for ever if nobody writes it, as ranks do for a rank that never comes."""
    pause = 0.001
    while True:
        try:
            with open(path, "rb") as handle:
                value = pickle.load(handle)
            if test is None or test(value):
                return value
        except (OSError, EOFError):
            pass
        time.sleep(pause)
        pause = min(pause * 1.5, 0.02)


def _write(path: str, value: Any) -> None:
    with open(f"{path}.{os.getpid()}~", "wb") as handle:
        pickle.dump(value, handle)
    os.replace(f"{path}.{os.getpid()}~", path)


def _meet(key: str, rank: int, size: int) -> str:
    """Rank 0 opens a fresh place and the others find it; leftovers of dead ranks do not count."""
    path = os.path.join(driver.STATE, "meet-" + "".join(c if c.isalnum() else "_" for c in key))
    if rank == 0:
        place = os.path.join(driver.STATE, f"group-{uuid.uuid4().hex}")
        os.mkdir(place)
        _State.meeting = path
        _write(path, (os.getpid(), place))
    else:
        place = _wait(path, lambda v: driver.alive(v[0]) and not os.path.exists(os.path.join(v[1], f"join.{rank}")))[1]
    _write(os.path.join(place, f"join.{rank}"), rank)
    for other in range(size):
        _wait(os.path.join(place, f"join.{other}"))
    return place


def init_process_group(
    backend: str | None = None, init_method: str | None = None, timeout: Any = None, world_size: int = -1,
    rank: int = -1, store: Any = None, group_name: str = "", pg_options: Any = None, device_id: Any = None,
) -> None:  # fmt: skip
    """Meet the other ranks; with device_id the NCCL communicator is made at once on that device."""
    if _State.group is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if backend not in (None, "nccl", "gloo", "cpu:gloo,cuda:nccl", "cuda:nccl", "cpu:gloo"):
        driver.unknown(f"torch.distributed backend {backend}")
    if store is not None:
        key = f"store {store.key}"
        if rank < 0 or world_size < 0:
            raise ValueError("rank and world_size must be given with a store")
    elif init_method is None or init_method.startswith("env://"):
        rank = rank if rank >= 0 else int(_environment("RANK"))
        world_size = world_size if world_size >= 0 else int(_environment("WORLD_SIZE"))
        key = f"tcp {_environment('MASTER_ADDR')}:{_environment('MASTER_PORT')}"
    else:
        key = init_method.replace("tcp://", "tcp ")
    if backend == "nccl" and not torch.cuda.is_available():
        raise ValueError("ProcessGroupNCCL is only supported with GPUs, no GPUs found!")
    place = _meet(key, rank, world_size)
    bound = _tensor.device(device_id) if device_id is not None else None
    _State.group = _Group(place, rank, world_size, backend or "cpu:gloo,cuda:nccl", bound)
    if bound is not None and "nccl" in _State.group.backend:
        _exchange(_State.group, None, _tensor.resolve(bound))


def is_initialized() -> bool:
    """Whether the default group exists."""
    return _State.group is not None


def destroy_process_group(group: Any = None) -> None:
    """Leave."""
    if group is not None and group is not _State.group:
        return
    if _State.group is not None and _State.group._rank == 0 and _State.meeting:
        try:
            os.unlink(_State.meeting)
        except OSError:
            pass
    _State.group = None


def _group(group: Any = None) -> _Group:
    found = group if isinstance(group, _Group) else _State.group
    if found is None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    return found


def get_rank(group: Any = None) -> int:
    """This rank."""
    return _group(group)._rank


def get_world_size(group: Any = None) -> int:
    """How many ranks."""
    return _group(group)._size


def get_backend(group: Any = None) -> str:
    """The backend."""
    return _group(group).backend


def get_backend_config(group: Any = None) -> str:
    """The backend per device."""
    return _group(group).backend


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """LOCAL_RANK."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return fallback_rank
    raise RuntimeError("LOCAL_RANK is not in the environment. Consider passing fallback_rank")


# ---------------------------------------------------------------- exchanging


def _exchange(group: _Group, value: Any, where: Any) -> list[Any]:
    """Every rank's value; ranks that use one GPU twice fail as NCCL does."""
    number, group.count = group.count, group.count + 1
    gpu = None
    if where is not None and where.type == "cuda":
        gpu = _gpu.use(where.index)
    _write(os.path.join(group.place, f"{number}.{group._rank}"), (gpu, value))
    found = [_wait(os.path.join(group.place, f"{number}.{rank}")) for rank in range(group._size)]
    if gpu is not None and "nccl" in group.backend:
        group.used = where
        seen: dict[int, int] = {}
        for rank, (other, _) in enumerate(found):
            if other is not None and other in seen:
                detail = DUPLICATE.format(seen[other], rank, 27 + 16 * other)
                raise DistBackendError(
                    "NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp, invalid usage (run with "
                    f"NCCL_DEBUG=WARN for details), NCCL version 2.28.9\nncclInvalidUsage: ...\nLast error:\n{detail}"
                )
            seen[other] = rank
    return [data for _, data in found]


def _check(group: _Group, tensor: Any) -> Any:
    """The device of a collective on a tensor."""
    tensor._touch()
    if tensor.is_cuda:
        if group.bound_device_id is not None and "nccl" in group.backend:
            if tensor.device != _tensor.resolve(group.bound_device_id):
                raise RuntimeError(NOT_BOUND)
    elif group.backend == "nccl":
        raise RuntimeError("No backend type associated with device type cpu")
    return tensor.device


class _Work:
    """A collective that is done."""

    def wait(self, *_: Any) -> bool:
        """Done."""
        return True

    def is_completed(self) -> bool:
        """Done."""
        return True


def _share(group: _Group, tensor: Any) -> list[Any]:
    array = tensor._touch()
    small = array if array.size <= _tensor.BIG else _tensor._shrink(array)
    return _exchange(group, small, _check(group, tensor))


def _combine(values: list[Any], op: Any) -> Any:
    total = _tensor.np.stack(values)
    kind = str(op)
    if kind == "avg":
        return total.mean(0)
    return {"sum": total.sum, "prod": total.prod, "min": total.min, "max": total.max}[kind](0)


def all_reduce(tensor: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Any:
    """Combine over all ranks."""
    with torch.no_grad():
        _tensor._write(tensor, _combine(_share(_group(group), tensor), op))
    return _Work() if async_op else None


def reduce(tensor: Any, dst: int = 0, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Any:
    """Combine on one rank."""
    total = _combine(_share(_group(group), tensor), op)
    if get_rank() == dst:
        _tensor._write(tensor, total)
    return _Work() if async_op else None


def broadcast(tensor: Any, src: int = 0, group: Any = None, async_op: bool = False) -> Any:
    """One rank's values everywhere."""
    values = _share(_group(group), tensor)
    if get_rank() != src:
        _tensor._write(tensor, values[src])
    return _Work() if async_op else None


def all_gather(tensor_list: list[Any], tensor: Any, group: Any = None, async_op: bool = False) -> Any:
    """Every rank's values everywhere."""
    for target, value in zip(tensor_list, _share(_group(group), tensor)):
        _tensor._write(target, value)
    return _Work() if async_op else None


def all_gather_into_tensor(output: Any, tensor: Any, group: Any = None, async_op: bool = False) -> Any:
    """Every rank's values everywhere, in one tensor."""
    values = _tensor.np.stack(_share(_group(group), tensor))
    _tensor._write(output, values.reshape(output._a.shape))
    return _Work() if async_op else None


def gather(tensor: Any, gather_list: Any = None, dst: int = 0, group: Any = None, async_op: bool = False) -> Any:
    """Every rank's values on one."""
    values = _share(_group(group), tensor)
    for target, value in zip(gather_list or [], values):
        _tensor._write(target, value)
    return _Work() if async_op else None


def scatter(tensor: Any, scatter_list: Any = None, src: int = 0, group: Any = None, async_op: bool = False) -> Any:
    """One rank's parts, one to each."""
    found = _group(group)
    values = _exchange(found, [t._touch() for t in scatter_list] if scatter_list else None, _check(found, tensor))
    _tensor._write(tensor, values[src][found._rank])
    return _Work() if async_op else None


def send(tensor: Any, dst: int, group: Any = None, tag: int = 0) -> None:
    """To one rank."""
    found = _group(group)
    _check(found, tensor)
    number = found.__dict__.setdefault("sends", {}).setdefault(dst, 0)
    found.__dict__["sends"][dst] += 1
    _write(os.path.join(found.place, f"p2p.{found._rank}.{dst}.{number}"), tensor._touch())


def recv(tensor: Any, src: int, group: Any = None, tag: int = 0) -> int:
    """From one rank."""
    found = _group(group)
    _check(found, tensor)
    number = found.__dict__.setdefault("receives", {}).setdefault(src, 0)
    found.__dict__["receives"][src] += 1
    _tensor._write(tensor, _wait(os.path.join(found.place, f"p2p.{src}.{found._rank}.{number}")))
    return src


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Any:
    """Wait for all; NCCL needs a device for that and guesses one where nothing named it, set_device or not."""
    found = _group(group)
    where = None
    if "nccl" in found.backend and _gpu.device_count():
        if device_ids:
            index = device_ids[0]
        elif found.bound_device_id is not None:
            index = found.bound_device_id.index
        elif found.used is not None:
            index = found.used.index
        else:
            warnings.warn(
                "barrier(): Guessing device ID based on global rank. This can cause a hang if rank to GPU mapping is "
                "heterogeneous. You can specify device_id in init_process_group()",
                stacklevel=2,
            )
            index = found._rank % len(driver.visible())
        where = _tensor.resolve(_tensor.device("cuda", index))
        _gpu.Block(where.index, 4)  # what it reduces, and the allocator keeps
    _exchange(found, None, where)
    return _Work() if async_op else None


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """Wait for all (gloo)."""
    _exchange(_group(group), None, None)


def _objects(group: Any, value: Any) -> list[Any]:
    """Object collectives travel in tensors on the current device."""
    found = _group(group)
    where = None
    if "nccl" in found.backend and "gloo" not in found.backend:
        where = found.bound_device_id or _tensor.resolve("cuda")
        where = _tensor.resolve(where)
    return _exchange(found, pickle.dumps(value), where)


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Every rank's object everywhere."""
    object_list[:] = [pickle.loads(data) for data in _objects(group, obj)]


def gather_object(obj: Any, object_gather_list: Any = None, dst: int = 0, group: Any = None) -> None:
    """Every rank's object on one."""
    values = _objects(group, obj)
    if object_gather_list is not None:
        object_gather_list[:] = [pickle.loads(data) for data in values]


def broadcast_object_list(object_list: list[Any], src: int = 0, group: Any = None, device: Any = None) -> None:
    """One rank's objects everywhere."""
    if device is not None:
        found = _group(group)
        values = _exchange(found, pickle.dumps(object_list), _tensor.resolve(device))
    else:
        values = _objects(group, object_list)
    object_list[:] = pickle.loads(values[src])


def new_group(ranks: Any = None, timeout: Any = None, backend: Any = None, **_: Any) -> Any:
    """A group of some ranks."""
    whole = _group()
    members = list(range(whole._size)) if ranks is None else sorted(ranks)
    _State.groups += 1
    place = f"{whole.place}-{_State.groups}"
    os.makedirs(place, exist_ok=True)
    if whole._rank not in members:
        return None
    return _Group(place, members.index(whole._rank), len(members), backend or whole.backend, None)


def new_subgroups(*_: Any, **__: Any) -> Any:
    """Asks for the GPUs before anything else."""
    _gpu.query_count()
    _group()
    driver.unknown("torch.distributed.new_subgroups")


def split_group(*_: Any, **__: Any) -> Any:
    """Not modelled beyond its check."""
    _group()
    driver.unknown("torch.distributed.split_group")


# ---------------------------------------------------------------- stores and small things


class Store:
    """A store."""

    key = ""


class HashStore(Store):
    """A store in this process."""


class TCPStore(Store):
    """A store by address."""

    def __init__(self, host_name: str, port: int, world_size: Any = None, is_master: bool = False, timeout: Any = None, **_: Any) -> None:
        self.key = f"{host_name}:{port}"


class FileStore(Store):
    """A store by file."""

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        self.key = file_name


class PrefixStore(Store):
    """A part of a store."""

    def __init__(self, prefix: str, store: Store) -> None:
        self.key = f"{prefix} {store.key}"


def _options(name: str) -> type:
    return type(name, (), {"__module__": "torch.distributed"})


def _needs_arguments(name: str) -> type:
    def init(self: Any, required: Any) -> None:
        driver.unknown(f"torch.distributed.{name}")

    return type(name, (), {"__init__": init, "__module__": "torch.distributed"})


for _name in ("AllToAllOptions", "AllreduceCoalescedOptions", "AllreduceOptions", "BarrierOptions", "BroadcastOptions",
              "GatherOptions", "GroupMember", "ReduceOptions", "ReduceScatterOptions", "ScatterOptions", "Work"):  # fmt: skip
    globals()[_name] = _options(_name)
for _name in ("BuiltinCommHookType", "DebugLevel", "GradBucket", "Logger", "ProcessGroup", "ProcessGroupGloo",
              "ProcessGroupNCCL", "Reducer"):  # fmt: skip
    globals()[_name] = _needs_arguments(_name)


class group:
    """The world."""

    WORLD = None


def is_available() -> bool:
    """Built in."""
    return True


is_nccl_available = is_gloo_available = is_available


def is_mpi_available() -> bool:
    """Not built in."""
    return False


is_ucc_available = is_xccl_available = is_mpi_available


def is_torchelastic_launched() -> bool:
    """Whether torchrun started this."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def get_debug_level() -> str:
    """Off."""
    return "OFF"


def get_pg_count() -> int:
    """How many groups."""
    return int(_State.group is not None)


def set_debug_level(level: Any) -> None:
    """Nothing on paper."""


def set_debug_level_from_env() -> None:
    """Nothing on paper."""


def init_device_mesh(device_type: str, mesh_shape: Any, *, mesh_dim_names: Any = None) -> Any:
    """A mesh of ranks; for CUDA it selects rank % GPUs where nobody selected a device."""
    from torch.distributed.device_mesh import init_device_mesh as make

    return make(device_type, mesh_shape, mesh_dim_names=mesh_dim_names)


__getattr__ = driver.lazy("torch.distributed", "device_mesh fsdp elastic run")
