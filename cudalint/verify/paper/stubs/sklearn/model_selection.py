"""sklearn.model_selection: every fit is a task of joblib, by its default backend."""

from __future__ import annotations

import itertools
import time
from typing import Any

import paper_driver as driver
from sklearn.base import BaseEstimator, clone


def _fit(estimator: Any, params: dict[str, Any], X: Any, y: Any) -> float:
    # Real fits take long enough for every worker to get some.
    time.sleep(0.4)
    return float(estimator.set_params(**params).fit(X, y).score(X, y))


def _jobs(n_jobs: Any, tasks: list[Any]) -> list[float]:
    import joblib

    return list(joblib.Parallel(n_jobs=n_jobs)(tasks))


class GridSearchCV(BaseEstimator):
    """Every combination, on every fold."""

    def __init__(self, estimator: Any, param_grid: Any, n_jobs: Any = None, cv: int = 2, refit: bool = True, **_: Any) -> None:
        self.estimator, self.param_grid, self.n_jobs, self.cv, self.refit = estimator, param_grid, n_jobs, cv, refit

    def fit(self, X: Any, y: Any = None) -> "GridSearchCV":
        """Clones in workers, the best one here."""
        import joblib

        names = list(self.param_grid)
        rows = [dict(zip(names, values)) for values in itertools.product(*self.param_grid.values())]
        tasks = [joblib.delayed(_fit)(clone(self.estimator), row, X, y) for row in rows for _ in range(self.cv)]
        scores = _jobs(self.n_jobs, tasks)
        self.best_score_ = max(scores)
        self.best_params_ = rows[scores.index(self.best_score_) // self.cv]
        if self.refit:
            self.best_estimator_ = clone(self.estimator).set_params(**self.best_params_).fit(X, y)
        return self


RandomizedSearchCV = GridSearchCV


def cross_val_score(estimator: Any, X: Any, y: Any = None, *, cv: int = 5, n_jobs: Any = None, **_: Any) -> list[float]:
    """One clone for each fold."""
    import joblib

    return _jobs(n_jobs, [joblib.delayed(_fit)(clone(estimator), {}, X, y) for _ in range(cv)])


__getattr__ = driver.lazy("sklearn.model_selection")
