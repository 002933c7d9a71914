"""torch.testing."""

from typing import Any

import paper_driver as driver


def assert_close(a: Any, b: Any, **_: Any) -> None:
    """Nearly equal."""
    if not a.cpu().allclose(b.cpu(), 1e-4, 1e-5):
        raise AssertionError("Tensor-likes are not close!")


__getattr__ = driver.lazy("torch.testing")
