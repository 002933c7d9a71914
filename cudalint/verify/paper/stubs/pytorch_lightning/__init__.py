"""pytorch_lightning: the same library under its older name."""

from typing import Any

import lightning


def __getattr__(name: str) -> Any:
    return getattr(lightning, name)
