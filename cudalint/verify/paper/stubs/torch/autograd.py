"""torch.autograd."""

import contextlib
from typing import Any

import paper_driver as driver

from torch._tensor import Tensor, anomaly, enable_grad, no_grad  # noqa: F401


def Variable(value: Tensor, *_: Any, **__: Any) -> Tensor:
    """The tensor itself."""
    return value


class set_detect_anomaly(contextlib.ContextDecorator):
    """Look for what goes wrong in backward(), at once and until a `with` block ends."""

    def __init__(self, mode: bool = True, check_nan: bool = True) -> None:
        self.before = anomaly.enabled
        anomaly.enabled = mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        anomaly.enabled = self.before


class detect_anomaly(contextlib.ContextDecorator):
    """Look for it inside only."""

    def __init__(self, check_nan: bool = True) -> None:
        self.before = anomaly.enabled

    def __enter__(self) -> None:
        self.before, anomaly.enabled = anomaly.enabled, True

    def __exit__(self, *_: object) -> None:
        anomaly.enabled = self.before


__getattr__ = driver.lazy("torch.autograd")
