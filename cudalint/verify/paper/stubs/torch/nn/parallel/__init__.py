"""torch.nn.parallel."""

import paper_driver as driver

from torch.nn import DataParallel  # noqa: F401
from torch.nn.parallel.distributed import DistributedDataParallel  # noqa: F401

__getattr__ = driver.lazy("torch.nn.parallel")
