"""sklearn.base: parameters are those of __init__, and a clone has nothing else."""

from __future__ import annotations

import inspect
from typing import Any

import paper_driver as driver


class BaseEstimator:
    """Parameters by name."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """What __init__ was given."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> "BaseEstimator":
        """Other parameters."""
        for name, value in params.items():
            setattr(self, name, value)
        return self


class ClassifierMixin:
    """Scores by hits."""

    def score(self, X: Any, y: Any) -> float:
        """The share of right answers."""
        found = self.predict(X)  # type: ignore[attr-defined]
        return sum(a == b for a, b in zip(found, y)) / max(len(y), 1)


class RegressorMixin:
    """Scores by distance."""

    def score(self, X: Any, y: Any) -> float:
        """Less is worse."""
        found = self.predict(X)  # type: ignore[attr-defined]
        return -sum((a - b) ** 2 for a, b in zip(found, y)) / max(len(y), 1)


def clone(estimator: Any) -> Any:
    """The same parameters, nothing that fitting left behind."""
    return type(estimator)(**estimator.get_params())


__getattr__ = driver.lazy("sklearn.base")
