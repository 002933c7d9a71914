"""Whether a file can matter at all, told from its bytes."""

from __future__ import annotations

import re

_MARKER = re.compile(
    rb"\b(?:cuda|cupy|numba|jax|tensorflow|torch|keras|pycuda|multiprocessing|concurrent|joblib|fork|"
    rb"multiprocess|pathos|billiard|num_proc|Process|DataLoader|notebook_launcher)\b"
)


def may_matter(data: bytes) -> bool:
    """Whether the file mentions CUDA or processes, so that it is worth a look."""
    return _MARKER.search(data) is not None
