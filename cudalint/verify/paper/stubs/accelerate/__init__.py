"""accelerate on paper: one state per process, which asks for the GPU when it is made."""

from __future__ import annotations

import contextlib
import os
from typing import Any

import paper_driver as driver

IN_FORK = (
    "CUDA has been initialized before the `notebook_launcher` could create a forked subprocess. This likely stems from "
    "an outside import causing issues once the `notebook_launcher()` is called. Please review your imports and test "
    "them when running the `notebook_launcher()` to identify which one is problematic and causing CUDA to be initialized."
)
_shared: dict[str, Any] = {}


@driver.after_fork
def _child() -> None:
    _shared.clear()


class PartialState:
    """What the process knows of its place."""

    def __init__(self, cpu: bool = False, **_: Any) -> None:
        self.__dict__ = _shared
        if _shared:
            return
        import torch
        import torch.distributed as dist

        launched = int(os.environ.get("LOCAL_RANK", "-1")) >= 0
        available = not cpu and torch.cuda.is_available()
        if launched:
            if not dist.is_initialized():
                index = int(os.environ["LOCAL_RANK"])
                if available:
                    torch.cuda.set_device(index)
                dist.init_process_group("nccl" if available else "gloo")
            _shared.update(process_index=dist.get_rank(), num_processes=dist.get_world_size())
            _shared.update(local_process_index=int(os.environ["LOCAL_RANK"]))
            _shared["device"] = torch.device("cuda", _shared["local_process_index"]) if available else torch.device("cpu")
            return
        _shared.update(process_index=0, num_processes=1, local_process_index=0)
        _shared["device"] = torch.device("cuda" if available else "cpu")

    is_main_process = property(lambda self: self.process_index == 0)
    is_local_main_process = property(lambda self: self.local_process_index == 0)
    is_last_process = property(lambda self: self.process_index == self.num_processes - 1)

    def wait_for_everyone(self) -> None:
        """A barrier."""
        import torch.distributed as dist

        if self.num_processes > 1:
            dist.barrier()

    def print(self, *args: Any) -> None:
        """On the main process."""
        if self.is_main_process:
            print(*args)


class Accelerator:
    """Prepares models and batches for the process's device."""

    def __init__(self, cpu: bool = False, mixed_precision: Any = None, **_: Any) -> None:
        self.state = PartialState(cpu=cpu)

    device = property(lambda self: self.state.device)
    process_index = property(lambda self: self.state.process_index)
    local_process_index = property(lambda self: self.state.local_process_index)
    num_processes = property(lambda self: self.state.num_processes)
    is_main_process = property(lambda self: self.state.is_main_process)
    is_local_main_process = property(lambda self: self.state.is_local_main_process)

    def prepare(self, *values: Any) -> Any:
        """Models to the device, loaders wrapped."""
        found = tuple(self._prepare(value) for value in values)
        return found if len(found) > 1 else found[0]

    def _prepare(self, value: Any) -> Any:
        import torch

        if isinstance(value, torch.nn.Module):
            value = value.to(self.device)
            return torch.nn.parallel.DistributedDataParallel(value) if self.num_processes > 1 else value
        if isinstance(value, torch.utils.data.DataLoader):
            return _Loader(value, self.device)
        return value

    def backward(self, loss: Any) -> None:
        """Backward."""
        loss.backward()

    def wait_for_everyone(self) -> None:
        """A barrier."""
        self.state.wait_for_everyone()

    def print(self, *args: Any) -> None:
        """On the main process."""
        self.state.print(*args)

    def unwrap_model(self, model: Any) -> Any:
        """Without its wrapper."""
        return getattr(model, "module", model)

    @contextlib.contextmanager
    def accumulate(self, *_: Any) -> Any:
        """Nothing on paper."""
        yield

    @contextlib.contextmanager
    def autocast(self) -> Any:
        """Nothing on paper."""
        yield

    def gather(self, tensor: Any) -> Any:
        """From all ranks."""
        import torch
        import torch.distributed as dist

        if self.num_processes == 1:
            return tensor
        tensor = tensor.reshape(-1)
        found = [torch.zeros_like(tensor) for _ in range(self.num_processes)]
        dist.all_gather(found, tensor)
        return torch.cat(found)

    def end_training(self) -> None:
        """Leave the group."""
        import torch.distributed as dist

        if dist.is_initialized():
            dist.destroy_process_group()


class _Loader:
    def __init__(self, loader: Any, device: Any) -> None:
        self.loader, self.device, self.dataset = loader, device, loader.dataset

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Any:
        for batch in self.loader:
            yield _moved(batch, self.device)


def _moved(batch: Any, device: Any) -> Any:
    if isinstance(batch, (list, tuple)):
        return type(batch)(_moved(b, device) for b in batch)
    if isinstance(batch, dict):
        return {k: _moved(v, device) for k, v in batch.items()}
    return batch.to(device) if hasattr(batch, "to") else batch


class _Launch:
    """What a launched rank sees in its environment."""

    def __init__(self, function: Any, count: int, port: str) -> None:
        self.function, self.count, self.port = function, count, port

    def __call__(self, index: int, *args: Any) -> None:
        os.environ.update(LOCAL_RANK=str(index), RANK=str(index), WORLD_SIZE=str(self.count),
                          MASTER_ADDR="127.0.0.1", MASTER_PORT=self.port)  # fmt: skip
        self.function(*args)


def notebook_launcher(function: Any, args: Any = (), num_processes: int | None = None, use_port: str = "29500", **_: Any) -> None:
    """Fork ranks that run a function."""
    import torch.multiprocessing as mp

    count = num_processes or driver.gpus()
    if count <= 1:
        function(*args)
        return
    if _shared:
        raise ValueError(
            "To launch a multi-GPU training from your notebook, the `Accelerator` should only be initialized inside your "
            "training function. Restart your notebook and make sure no cells initializes an `Accelerator`."
        )
    try:
        mp.start_processes(_Launch(function, count, str(use_port)), tuple(args), count, start_method="fork")
    except mp.ProcessRaisedException as error:
        if "Cannot re-initialize CUDA in forked subprocess" in str(error):
            raise RuntimeError(IN_FORK) from error
        raise RuntimeError(f"An issue was found when launching the training: {error}") from error


__getattr__ = driver.lazy("accelerate", "utils")
