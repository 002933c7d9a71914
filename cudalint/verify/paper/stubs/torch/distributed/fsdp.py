"""torch.distributed.fsdp: importing touches nothing; wrapping is modelled as moving to device_id."""

from typing import Any

import paper_driver as driver

import torch
from torch.nn.parallel import DistributedDataParallel


class FullyShardedDataParallel(DistributedDataParallel):
    """A replica per rank; with device_id the module is moved there and the device is selected."""

    def __init__(self, module: Any, process_group: Any = None, *_: Any, device_id: Any = None, **__: Any) -> None:
        if device_id is not None:
            where = torch.device("cuda", device_id) if isinstance(device_id, int) else torch.device(device_id)
            module.to(where)
        super().__init__(module)


__getattr__ = driver.lazy("torch.distributed.fsdp")
