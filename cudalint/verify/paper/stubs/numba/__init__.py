"""numba on paper: compiled functions are the Python functions."""

from typing import Any

import paper_driver as driver


def jit(function: Any = None, *_: Any, **__: Any) -> Any:
    """The function as it is."""
    return function if callable(function) else lambda found: found


njit = vectorize = jit
prange = range
float32, float64, int32, int64 = "float32", "float64", "int32", "int64"
__version__ = "0.62.0"
__getattr__ = driver.lazy("numba", "cuda")
