"""torch_geometric on paper: importing it reaches the CUDA runtime."""

import paper_driver as driver

driver.cu_init("torch-raw")
__getattr__ = driver.lazy("torch_geometric")
