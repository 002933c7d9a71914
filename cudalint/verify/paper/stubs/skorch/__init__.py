"""skorch on paper: a module as an estimator; it is made, on its device, when it is fitted."""

from __future__ import annotations

from typing import Any

import paper_driver as driver
from sklearn.base import BaseEstimator


class NeuralNetClassifier(BaseEstimator):
    """A classifier around a module."""

    def __init__(self, module: Any, lr: float = 0.01, max_epochs: int = 10, device: str = "cpu") -> None:
        self.module, self.lr, self.max_epochs, self.device = module, lr, max_epochs, device

    def fit(self, X: Any, y: Any = None) -> "NeuralNetClassifier":
        """Make the module and run the data through it."""
        import torch

        self.module_ = self.module().to(self.device)
        self.module_(torch.tensor(X, device=self.device).float()).sum().item()
        return self

    def score(self, X: Any, y: Any) -> float:
        """Always one."""
        return 1.0


__getattr__ = driver.lazy("skorch")
