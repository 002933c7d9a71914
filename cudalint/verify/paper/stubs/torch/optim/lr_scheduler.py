"""torch.optim.lr_scheduler: rates stay as they are."""

from typing import Any

import paper_driver as driver


class LRScheduler:
    """Any schedule."""

    def __init__(self, optimizer: Any, *_: Any, **__: Any) -> None:
        self.optimizer = optimizer

    def step(self, *_: Any) -> None:
        """Nothing on paper."""

    def get_last_lr(self) -> list[float]:
        """The rates."""
        return [group["lr"] for group in self.optimizer.param_groups]


StepLR = CosineAnnealingLR = ExponentialLR = LambdaLR = ReduceLROnPlateau = OneCycleLR = MultiStepLR = LRScheduler
__getattr__ = driver.lazy("torch.optim.lr_scheduler")
