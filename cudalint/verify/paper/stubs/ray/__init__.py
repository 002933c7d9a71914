"""Ray on paper: tasks and actors in fresh processes, which see as many GPUs as they asked for."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from typing import Any

import cloudpickle
import paper_driver as driver

_RUN = "import sys, cloudpickle; f, a = cloudpickle.load(open(sys.argv[1], 'rb')); cloudpickle.dump(f(*a), open(sys.argv[2], 'wb'))"


class _Reference:
    def __init__(self, function: Any, args: tuple[Any, ...], gpus: float) -> None:
        handle, self._given = tempfile.mkstemp()
        os.close(handle)
        self._made = self._given + ".out"
        with open(self._given, "wb") as file:
            cloudpickle.dump((function, args), file)
        seen = {"CUDA_VISIBLE_DEVICES": "0" if gpus else ""}
        self._process = subprocess.Popen([sys.executable, "-c", _RUN, self._given, self._made], env={**os.environ, **seen})

    def get(self) -> Any:
        """The result."""
        if self._process.wait():
            raise RuntimeError("ray.exceptions.RayTaskError")
        with open(self._made, "rb") as file:
            return cloudpickle.load(file)


class _Remote:
    def __init__(self, function: Any, gpus: float) -> None:
        self._function, self._gpus = function, gpus

    def options(self, num_gpus: float = 0, **_: Any) -> "_Remote":
        """Other resources."""
        return _Remote(self._function, num_gpus)

    def remote(self, *args: Any) -> _Reference:
        """Start a task."""
        return _Reference(self._function, args, self._gpus)


def init(**_: Any) -> None:
    """Nothing to start on paper."""


def shutdown() -> None:
    """Nothing to stop."""


def remote(*functions: Any, num_gpus: float = 0, **_: Any) -> Any:
    """A decorator, with or without resources."""
    return _Remote(functions[0], 0) if functions else lambda function: _Remote(function, num_gpus)


def get(found: Any) -> Any:
    """Results."""
    return [one.get() for one in found] if isinstance(found, list) else found.get()


__getattr__ = driver.lazy("ray")
