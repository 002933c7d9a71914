"""jax.numpy on paper."""

from __future__ import annotations

from typing import Any

import paper_driver as driver

from jax import Array, _plain, _state
from jax._state import np, start

ndarray = Array
pi, inf, nan, newaxis = 3.141592653589793, float("inf"), float("nan"), None


def _made(name: str) -> Any:
    def make(*args: Any, **kwargs: Any) -> Any:
        if args and type(args[0]).__module__ == "numpy" and not _is_data(name):
            return getattr(np(), name)(*args, **kwargs)  # inside eval_shape
        start(ran=True)
        kwargs = {k: (getattr(v, "name", v)) if k == "dtype" else v for k, v in kwargs.items()}
        return Array(np().asarray(getattr(np(), name)(*(_args(a) for a in args), **kwargs)))

    make.__name__ = name
    return make


def _is_data(name: str) -> bool:
    return True


def _args(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_args(v) for v in value)
    return _plain(value)


for _name in ("ones zeros full arange linspace eye ones_like zeros_like sqrt exp log sin cos tanh square abs sum mean "
              "max min dot matmul stack concatenate where maximum minimum argmax argmin sort std var prod outer clip "
              "reshape transpose add multiply subtract power einsum").split():
    globals()[_name] = _made(_name)
driver.by_name("jax.numpy", {n: f for n, f in globals().items() if getattr(f, "__qualname__", "").startswith("_made.")})


def array(value: Any, dtype: Any = None, **_: Any) -> Array:
    """An array from Python data: put on the device without launching anything."""
    _state.inherited(False)
    start()
    return Array(np().asarray(_args(value), dtype))


asarray = array


class _Scalar:
    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, value: Any) -> Array:
        start(ran=True)
        return Array(np().asarray(_plain(value), self.name))

    def __repr__(self) -> str:
        return f"<class 'jax.numpy.{self.name}'>"


float32, float64, float16, int32, int64, uint8, bfloat16 = (
    _Scalar(n) for n in ("float32", "float64", "float16", "int32", "int64", "uint8", "float32")
)


def dtype(name: Any) -> Any:
    """A numpy dtype."""
    return np().dtype(getattr(name, "name", name))


class _Linalg:
    @staticmethod
    def norm(value: Any, *args: Any) -> Array:
        """The norm."""
        start(ran=True)
        return Array(np().asarray(np().linalg.norm(_plain(value), *args)))


linalg = _Linalg
__getattr__ = driver.lazy("jax.numpy")
