"""torch.amp."""

import sys
import types
from typing import Any

import paper_driver as driver

from torch import autocast  # noqa: F401
from torch.cuda import GradScaler  # noqa: F401


def is_autocast_available(device_type: str) -> bool:
    """Whether autocast knows a device type."""
    return device_type in ("cpu", "cuda")


def custom_fwd(function: Any = None, **_: Any) -> Any:
    """The function as it is."""
    return function or (lambda found: found)


custom_bwd = custom_fwd
autocast_mode = types.SimpleNamespace(is_autocast_available=is_autocast_available, autocast=autocast)
sys.modules["torch.amp.autocast_mode"] = autocast_mode  # type: ignore[assignment]
__getattr__ = driver.lazy("torch.amp")
