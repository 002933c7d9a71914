"""PyCUDA on paper: contexts that are current in the thread that made or pushed them."""

import paper_driver as driver

__getattr__ = driver.lazy("pycuda", "driver autoinit")
