"""torch.utils.tensorboard: importing touches nothing."""

from typing import Any


class SummaryWriter:
    """Writes nothing."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def add_scalar(self, *_: Any, **__: Any) -> None:
        """Nothing on paper."""

    def close(self) -> None:
        """Nothing on paper."""
