"""torch.utils.cpp_extension: importing it asks whether there is a GPU."""

import paper_driver as driver

from torch import _gpu

_gpu.query_count()
CUDA_HOME = "/usr/local/cuda"
__getattr__ = driver.lazy("torch.utils.cpp_extension")
