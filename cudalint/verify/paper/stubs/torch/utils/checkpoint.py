"""torch.utils.checkpoint: asks whether there is a GPU, also for CPU tensors."""

from typing import Any

from torch import _gpu


def checkpoint(function: Any, *args: Any, use_reentrant: Any = None, **kwargs: Any) -> Any:
    """The function as it is."""
    _gpu.query_count()
    return function(*args)
