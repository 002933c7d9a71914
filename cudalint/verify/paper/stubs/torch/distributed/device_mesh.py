"""torch.distributed.device_mesh."""

from __future__ import annotations

import math
import warnings
from typing import Any

import paper_driver as driver

import torch
import torch.distributed as dist


class DeviceMesh:
    """Ranks in a grid."""

    def __init__(self, device_type: str, shape: tuple[int, ...], names: Any) -> None:
        self.device_type, self.shape, self.mesh_dim_names = device_type, shape, names

    def get_group(self, dim: Any = None) -> Any:
        """The world, for one dimension."""
        if len(self.shape) > 1:
            driver.unknown("torch.distributed.device_mesh.DeviceMesh.get_group of several dimensions")
        return dist._group()

    def get_local_rank(self, dim: Any = None) -> int:
        """This rank."""
        return dist.get_rank()

    def size(self, dim: Any = None) -> int:
        """How many ranks."""
        return math.prod(self.shape)


def init_device_mesh(device_type: str, mesh_shape: Any, *, mesh_dim_names: Any = None) -> DeviceMesh:
    """Meet if nobody has, and select a device if nobody did."""
    if not dist.is_initialized():
        dist.init_process_group()
    if math.prod(mesh_shape) > dist.get_world_size():
        raise RuntimeError("Mesh should not be bigger than default world size")
    if device_type == "cuda" and not getattr(driver.thread, "chosen", False):
        warnings.warn("No LOCAL_RANK; guessing the device by the global rank", stacklevel=2)
        torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    return DeviceMesh(device_type, tuple(mesh_shape), mesh_dim_names)


__getattr__ = driver.lazy("torch.distributed.device_mesh")
