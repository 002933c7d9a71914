"""torch.nn.init."""

from typing import Any

import paper_driver as driver


def _initialiser(name: str) -> Any:
    def fill(tensor: Any, *_: Any, **__: Any) -> Any:
        tensor.detach().uniform_(-0.1, 0.1)
        return tensor

    return fill


xavier_uniform_ = xavier_normal_ = kaiming_uniform_ = kaiming_normal_ = normal_ = uniform_ = _initialiser("any")
orthogonal_ = trunc_normal_ = normal_


def zeros_(tensor: Any) -> Any:
    """Zeros."""
    tensor.detach().zero_()
    return tensor


def ones_(tensor: Any) -> Any:
    """Ones."""
    tensor.detach().fill_(1)
    return tensor


def constant_(tensor: Any, value: float) -> Any:
    """One value."""
    tensor.detach().fill_(value)
    return tensor


__getattr__ = driver.lazy("torch.nn.init")
