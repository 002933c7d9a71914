"""lightning.pytorch."""

from typing import Any

import lightning


def __getattr__(name: str) -> Any:
    return getattr(lightning, name)
