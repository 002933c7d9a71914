"""hydra on paper: a main function that is called with an empty configuration."""

from __future__ import annotations

import functools
import types
from typing import Any, Callable

import paper_driver as driver


def main(**_: Any) -> Callable[[Any], Any]:
    """The decorated function takes no argument any more."""

    def wrap(function: Any) -> Any:
        return functools.wraps(function)(lambda: function(types.SimpleNamespace()))

    return wrap


__getattr__ = driver.lazy("hydra")
