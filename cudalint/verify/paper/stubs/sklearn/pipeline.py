"""sklearn.pipeline."""

from __future__ import annotations

from typing import Any

import paper_driver as driver
from sklearn.base import BaseEstimator


class Pipeline(BaseEstimator):
    """Steps in turn."""

    def __init__(self, steps: Any) -> None:
        self.steps = steps

    def fit(self, X: Any, y: Any = None) -> "Pipeline":
        """Fit each step."""
        for _, step in self.steps[:-1]:
            X = step.fit(X, y).transform(X)
        self.steps[-1][1].fit(X, y)
        return self

    def score(self, X: Any, y: Any) -> float:
        """The last step's score."""
        for _, step in self.steps[:-1]:
            X = step.transform(X)
        return float(self.steps[-1][1].score(X, y))


def make_pipeline(*steps: Any) -> Pipeline:
    """Named after their classes."""
    return Pipeline([(type(step).__name__.lower(), step) for step in steps])


__getattr__ = driver.lazy("sklearn.pipeline")
