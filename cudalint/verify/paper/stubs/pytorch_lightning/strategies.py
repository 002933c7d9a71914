"""pytorch_lightning.strategies."""

from lightning.strategies import DDPStrategy

__all__ = ["DDPStrategy"]
