"""pathos.multiprocessing."""

from pathos.pools import ProcessPool

ProcessingPool = ProcessPool

__all__ = ["ProcessPool", "ProcessingPool"]
