"""torch.nn.utils."""

from typing import Any

import paper_driver as driver


def clip_grad_norm_(parameters: Any, max_norm: float, *_: Any, **__: Any) -> Any:
    """Gradients are small on paper."""
    import torch

    return torch.tensor(0.0)


clip_grad_value_ = clip_grad_norm_
__getattr__ = driver.lazy("torch.nn.utils", "rnn")
