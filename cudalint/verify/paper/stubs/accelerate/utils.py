"""accelerate.utils."""

from typing import Any

import paper_driver as driver


def set_seed(seed: int, *_: Any, **__: Any) -> None:
    """Seed; touches nothing."""
    import torch

    torch.manual_seed(seed)


__getattr__ = driver.lazy("accelerate.utils")
