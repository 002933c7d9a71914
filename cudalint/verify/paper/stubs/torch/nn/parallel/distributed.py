"""DistributedDataParallel: parameters are compared when it is made, gradients averaged after backward."""

from __future__ import annotations

import contextlib
from typing import Any

import torch.distributed as dist
from torch import _tensor
from torch.nn import Module


class DistributedDataParallel(Module):
    """A replica per rank."""

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, find_unused_parameters: bool = False, process_group: Any = None, **_: Any) -> None:
        super().__init__()
        dist.get_rank()
        if not any(p.requires_grad for p in module.parameters()):
            raise RuntimeError("DistributedDataParallel is not needed when a module doesn't have any parameters that require a gradient.")
        self.module = module
        object.__setattr__(self, "_quiet", False)
        object.__setattr__(self, "device_ids", device_ids)
        places = {p.device for p in module.parameters()}
        if device_ids and len(places) == 1:
            wanted = _tensor.device("cuda", device_ids[0]) if isinstance(device_ids[0], int) else _tensor.device(device_ids[0])
            if next(iter(places)).type == "cpu":
                raise ValueError(
                    "DistributedDataParallel device_ids and output_device arguments only work with single-device/"
                    f"multiple-device GPU modules or CPU modules, but got device_ids {device_ids}, output_device "
                    f"{output_device}, and module parameters {places}."
                )
            if wanted.index is not None:
                _tensor.resolve(wanted)
        for parameter in module.parameters():
            dist.broadcast(parameter.detach(), 0)
            break
        for parameter in module.parameters():
            parameter._paper_hook = self._average

    def _average(self) -> None:
        if self._quiet:
            return
        for parameter in self.module.parameters():
            if parameter.grad is not None:
                dist.all_reduce(parameter.grad)
                break

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Through the module."""
        if self.device_ids:
            args = tuple(a.to(self.device_ids[0]) if isinstance(a, _tensor.Tensor) else a for a in args)
        return self.module(*args, **kwargs)

    @contextlib.contextmanager
    def no_sync(self) -> Any:
        """No averaging inside."""
        object.__setattr__(self, "_quiet", True)
        yield
        object.__setattr__(self, "_quiet", False)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__
