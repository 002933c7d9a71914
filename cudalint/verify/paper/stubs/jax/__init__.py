"""jax on paper: arrays on the first device of the process, or silently on the CPU."""

from __future__ import annotations

from typing import Any

import paper_driver as driver

from jax import _state
from jax._state import JaxRuntimeError, State, np, start

__version__ = "0.11.2"


class Device:
    """A device of the backend."""

    def __init__(self, platform: str, index: int) -> None:
        self.platform, self.id = platform, index
        self.device_kind = "NVIDIA H200" if platform == "gpu" else "cpu"

    def __repr__(self) -> str:
        return f"CudaDevice(id={self.id})" if self.platform == "gpu" else f"TFRT_CPU_{self.id}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and repr(other) == repr(self)

    def __hash__(self) -> int:
        return hash(repr(self))

    def memory_stats(self) -> dict[str, int]:
        """Bytes."""
        return {"bytes_in_use": 0, "bytes_limit": int(driver.TOTAL * 0.75)}


def devices(backend: str | None = None) -> list[Device]:
    """All devices; makes the backend."""
    if backend == "cpu":
        return [Device("cpu", 0)]
    found = "gpu" if _state.inherited() else start()
    if found == "gpu":
        return [Device("gpu", i) for i in range(len(driver.visible()))]
    if backend in ("gpu", "cuda"):
        raise RuntimeError(f"Unknown backend: '{backend}' requested, but no platforms that are instances of {backend} are present.")
    return [Device("cpu", 0)]


def local_devices(*_: Any, **__: Any) -> list[Device]:
    """All devices of this process."""
    return devices()


def device_count(*_: Any) -> int:
    """How many devices."""
    return len(devices())


local_device_count = device_count


def default_backend() -> str:
    """gpu or cpu."""
    return devices()[0].platform


def live_arrays(*_: Any) -> list[Any]:
    """None are counted."""
    devices()
    return []


def clear_caches() -> None:
    """Forget what was compiled."""
    if State.after_fork:
        _state.inherited(False)


class Array:
    """An array; its pid tells whether a fork brought it here."""

    __module__ = "jax"
    __array_priority__ = 100

    def __init__(self, array: Any) -> None:
        self._a = array
        if array.dtype.name == "float64" and not _config["jax_enable_x64"]:
            self._a = array.astype("float32")
        elif array.dtype.name == "int64" and not _config["jax_enable_x64"]:
            self._a = array.astype("int32")
        self._pid = driver.here.pid
        self._platform = State.backend or "abstract"

    def _touch(self) -> Any:
        if self._pid != driver.here.pid and self._platform == "gpu":
            driver.sleep_for_ever()
        return self._a

    shape = property(lambda self: self._a.shape)
    dtype = property(lambda self: self._a.dtype)
    size = property(lambda self: self._a.size)
    ndim = property(lambda self: self._a.ndim)
    nbytes = property(lambda self: self._a.nbytes)
    T = property(lambda self: _wrap(self._touch().T))

    @property
    def device(self) -> Device:
        """Where it lives."""
        return Device(self._platform, 0)

    def devices(self) -> set[Device]:
        """Where it lives."""
        return {self.device}

    def block_until_ready(self) -> "Array":
        """Wait."""
        self._touch()
        return self

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self._touch() if dtype is None else self._touch().astype(dtype)

    def __len__(self) -> int:
        return len(self._a)

    def __getitem__(self, key: Any) -> "Array":
        return _wrap(self._touch()[_plain(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        raise TypeError("JAX arrays are immutable")

    def __repr__(self) -> str:
        return f"Array({self._touch()!s}, dtype={self.dtype})"

    def __str__(self) -> str:
        return str(self._touch())

    def __format__(self, spec: str) -> str:
        return format(self._touch().item() if spec else str(self), spec)

    def __float__(self) -> float:
        return float(self._touch())

    def __int__(self) -> int:
        return int(self._touch())

    __index__ = __int__

    def __bool__(self) -> bool:
        return bool(self._touch())

    def item(self) -> Any:
        """The only element."""
        return self._touch().item()

    def tolist(self) -> Any:
        """Nested lists."""
        return self._touch().tolist()

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (self._touch(),)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in ("sum", "mean", "max", "min", "dot", "reshape", "astype", "copy", "std", "prod", "ravel", "flatten", "argmax", "argmin", "any", "all", "transpose"):
            found = getattr(self._touch(), name)
            return lambda *args, **kwargs: _wrap(found(*(_plain(a) for a in args), **kwargs))
        driver.unknown(f"jax.Array.{name}")


def _unpickle(array: Any) -> Array:
    start(ran=True)
    return Array(array)


def _wrap(value: Any) -> Any:
    if not State.after_fork:
        start(ran=True)
    return Array(np().asarray(value))


def _plain(value: Any) -> Any:
    return value._touch() if isinstance(value, Array) else value


def _operator(name: str) -> Any:
    def operate(self: Array, *others: Any) -> Any:
        start(ran=True)
        return _wrap(getattr(self._touch(), name)(*(_plain(o) for o in others)))

    return operate


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"):
    for _form in (f"__{_name}__", f"__r{_name}__"):
        setattr(Array, _form, _operator(_form))
for _name in ("neg", "abs", "eq", "ne", "lt", "le", "gt", "ge", "invert"):
    setattr(Array, f"__{_name}__", _operator(f"__{_name}__"))


def _tree(function: Any, tree: Any, *rest: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _tree(function, value, *(r[key] for r in rest)) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(_tree(function, value, *others) for value, *others in zip(tree, *rest))
    return function(tree, *rest)


def _onto(value: Any, abort: bool) -> Any:
    found = start(ran=not abort)
    del found
    return _tree(lambda leaf: Array(np().asarray(_plain(leaf))) if not isinstance(leaf, str) else leaf, value)


def device_put(value: Any, device: Any = None, **_: Any) -> Any:
    """Onto a device."""
    return _onto(value, abort=True)


def device_get(value: Any) -> Any:
    """Back to numpy."""
    return _tree(_plain, value)


def jit(function: Any = None, **_: Any) -> Any:
    """Compiled at its first call."""
    if function is None:
        return lambda found: jit(found)

    def call(*args: Any, **kwargs: Any) -> Any:
        start(ran=State.ran)
        moved = [_tree(lambda a: Array(np().asarray(a)) if isinstance(a, (int, float)) else a, a) for a in args]
        before = State.ran
        result = function(*moved, **kwargs)
        State.ran = before
        return result

    call.__name__ = getattr(function, "__name__", "jitted")
    call.__wrapped__ = function  # type: ignore[attr-defined]
    return call


def grad(function: Any, argnums: Any = 0, **_: Any) -> Any:
    """A derivative by differences."""

    def call(x: Any, *rest: Any) -> Any:
        start(ran=True)
        step = 1e-3
        return _tree(lambda leaf: (function(leaf + step, *rest) - function(leaf - step, *rest)) / (2 * step), x)

    return call


def value_and_grad(function: Any, *_: Any, **__: Any) -> Any:
    """Both."""
    return lambda *args: (function(*args), grad(function)(*args))


def vmap(function: Any, in_axes: Any = 0, **_: Any) -> Any:
    """Over the first axis."""

    def call(*args: Any) -> Any:
        rows = [function(*row) for row in zip(*args)]
        return _wrap(np().stack([np().asarray(_plain(row)) for row in rows]))

    return call


class ShapeDtypeStruct:
    """A shape without data."""

    def __init__(self, shape: Any, dtype: Any, **_: Any) -> None:
        self.shape, self.dtype = shape, dtype


def eval_shape(function: Any, *args: Any) -> ShapeDtypeStruct:
    """A result's shape, without running anything."""
    arrays = [np().asarray(a) for a in args]
    found = np().asarray(function(*arrays))
    return ShapeDtypeStruct(found.shape, found.dtype)


def block_until_ready(value: Any) -> Any:
    """Wait."""
    return value


_Space = driver.Space


_config: dict[str, Any] = {"jax_enable_x64": False}


def _update(name: str, value: Any) -> None:
    import os

    _config[name] = value
    if name == "jax_platforms" or name == "jax_platform_name":
        os.environ["JAX_PLATFORMS"] = value


config = _Space(paper_name="jax.config", update=_update)
tree_util = _Space(paper_name="jax.tree_util", tree_map=_tree)
tree = _Space(paper_name="jax.tree", map=_tree)
errors = _Space(paper_name="jax.errors", JaxRuntimeError=JaxRuntimeError)


def _key(seed: int) -> Array:
    _state.inherited(False)
    start()
    return Array(np().array([0, seed], "uint32"))


def _split(key: Any, num: int = 2) -> list[Array]:
    start(ran=True)
    return [Array(np().array([i + 1, int(_plain(key)[1]) + i], "uint32")) for i in range(num)]


def _drawn(name: str) -> Any:
    def draw(key: Any, shape: Any = (), *args: Any, **kwargs: Any) -> Array:
        start(ran=True)
        source = np().random.default_rng([int(v) for v in _plain(key)])
        return Array(np().asarray(getattr(source, name)(size=shape)))

    return draw


random = _Space(paper_name="jax.random", PRNGKey=_key, key=_key, split=_split, normal=_drawn("standard_normal"),
                uniform=_drawn("random"))  # fmt: skip
nn = _Space(paper_name="jax.nn", relu=lambda x: _wrap(np().maximum(_plain(x), 0)))
lax = _Space(paper_name="jax.lax")
__getattr__ = driver.lazy("jax", "numpy")
