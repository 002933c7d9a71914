"""torch.export: asks whether there is a GPU."""

from typing import Any

from torch import _gpu


def export(module: Any, args: Any, **_: Any) -> Any:
    """The module as it is."""
    _gpu.query_count()
    return module
