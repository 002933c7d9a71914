"""torch.autograd."""

import contextlib
from typing import Any

import paper_driver as driver

from torch._tensor import Tensor, enable_grad, no_grad  # noqa: F401


def Variable(value: Tensor, *_: Any, **__: Any) -> Tensor:
    """The tensor itself."""
    return value


@contextlib.contextmanager
def set_detect_anomaly(mode: bool = True) -> Any:
    """Nothing on paper."""
    yield


detect_anomaly = set_detect_anomaly
__getattr__ = driver.lazy("torch.autograd")
