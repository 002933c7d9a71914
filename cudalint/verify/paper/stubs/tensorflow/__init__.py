"""tensorflow on paper: one runtime per process, which takes a GPU's memory unless it is told to grow."""

from __future__ import annotations

import os
from typing import Any

import paper_driver as driver

__version__ = "2.21.0"
_NOT_INIT = "CUDA error: Failed call to cuDeviceGet: CUDA_ERROR_NOT_INITIALIZED: initialization error"
FORK_LIMIT, FRESH_LIMIT = 4, 8  # so many processes without growth do not fit on one GPU


class _Error(Exception):
    """An error of the runtime."""


class InternalError(_Error):
    """INTERNAL."""


class ResourceExhaustedError(_Error):
    """RESOURCE_EXHAUSTED."""


class _State:
    """Of this process."""

    running = False  # the GPU runtime has started
    listed = False  # the GPUs were counted
    growth: set[int] = set()
    visible: list[int] | None = None
    after_fork = ""  # "", listed or ran
    parent_holds = False


@driver.after_fork
def _child() -> None:
    if _State.running and _gpus():
        _State.after_fork = "ran"
    elif _State.listed and not _State.after_fork:
        _State.after_fork = "listed"
    _State.running = _State.listed = False


def _gpus() -> list[int]:
    seen = list(range(len(driver.visible())))
    return seen if _State.visible is None else [i for i in seen if i in _State.visible]


def _count() -> int:
    """Count the GPUs: runs cuInit."""
    if not driver.here.poisoned:
        driver.cu_init("tensorflow")
        _State.listed = True
    return len(driver.visible())


def _forked(soft: str = "") -> None:
    """What a child of a TensorFlow parent meets."""
    if _State.after_fork == "ran" or (_State.after_fork and soft == "abort"):
        os.write(2, b"F tensorflow: Failed setting context: CUDA_ERROR_NOT_INITIALIZED: initialization error\n")
        os.abort()
    if _State.after_fork == "listed":
        raise RuntimeError(f"Bad StatusOr access: INTERNAL: {_NOT_INIT}")
    if driver.here.poisoned:
        raise InternalError(_NOT_INIT)


def _take(gpu: int) -> None:
    """Without growth a process takes what is free; how many fit together is a matter of how they started."""
    driver.open_context(gpu)
    if 0 in _State.growth or os.environ.get("TF_FORCE_GPU_ALLOW_GROWTH", "").lower() in ("true", "1"):
        return
    parent = os.getppid() in driver.marked(f"tf{gpu}")
    order = driver.settle(f"tf{gpu}", 0.2 if driver.here.forked else 0.6)
    place, count = order.index(driver.here.pid) + 1, len(order)
    if parent or count >= FRESH_LIMIT:
        if parent or place > 2:
            raise InternalError("CUDA error: Failed call to cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY: out of memory")
    elif driver.here.forked and count >= FORK_LIMIT and place > 2:
        os.write(2, b"F tensorflow: CUDA_ERROR_OUT_OF_MEMORY: out of memory\n")
        os.abort()


def _start() -> str:
    """The first operation starts the runtime; answers GPU or CPU."""
    if _State.running:
        return "GPU" if _gpus() else "CPU"
    if _State.visible == []:
        _State.running = True
        return "CPU"
    _forked()
    if not driver.gpus() or not _count():
        _State.running = True
        return "CPU"
    _State.running = True
    if _gpus():
        _take(driver.visible()[_gpus()[0]])
    return "GPU" if _gpus() else "CPU"


_Space = driver.Space


class PhysicalDevice:
    """A device as the machine has it."""

    def __init__(self, kind: str, index: int) -> None:
        self.name, self.device_type = f"/physical_device:{kind}:{index}", kind

    def __repr__(self) -> str:
        return f"PhysicalDevice(name='{self.name}', device_type='{self.device_type}')"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PhysicalDevice) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)


def _physical(kind: str | None = None) -> list[PhysicalDevice]:
    # All devices are listed before those of a kind are picked.
    found = [PhysicalDevice("CPU", 0), *(PhysicalDevice("GPU", i) for i in range(_count()))]
    return [device for device in found if kind in (None, device.device_type)]


def _logical(kind: str | None = None) -> list[Any]:
    if not _State.after_fork:
        _start()
    return [PhysicalDevice("GPU", i) for i in _gpus()] if kind != "CPU" else [PhysicalDevice("CPU", 0)]


def _visible_devices(kind: str | None = None) -> list[PhysicalDevice]:
    found = _physical(kind)
    return [d for d in found if d.device_type == "CPU" or int(d.name[-1]) in _gpus()]


def _started(what: str) -> None:
    if _State.running:
        raise RuntimeError(f"{what} cannot be modified after being initialized")


def _set_visible(devices: Any, kind: str = "GPU") -> None:
    devices = devices if isinstance(devices, (list, tuple)) else [devices]
    wanted = [int(d.name.rpartition(":")[2]) for d in devices if d.device_type == "GPU"]
    if kind == "GPU" and _State.after_fork != "ran" and wanted == _gpus():
        # What changes nothing is accepted at any time.
        return
    _started("Visible devices")
    if _State.after_fork == "ran":
        raise RuntimeError("Visible devices cannot be modified after being initialized")
    if kind in (None, "GPU"):
        _State.visible = wanted


def _set_growth(device: PhysicalDevice, enable: bool) -> None:
    if _State.running and (0 in _State.growth) != enable:
        raise RuntimeError("Physical devices cannot be modified after being initialized")
    if enable:
        _State.growth |= {0}


def _memory_limit(device: Any, configuration: Any) -> None:
    _started("Virtual devices")
    _State.growth |= {0}


def _memory_info(name: str) -> dict[str, int]:
    _start()
    return {"current": 0, "peak": 0}


experimental = _Space(
    paper_name="tensorflow.config.experimental", list_physical_devices=_physical, set_memory_growth=_set_growth,
    set_visible_devices=_set_visible, get_visible_devices=_visible_devices, list_logical_devices=_logical,
    get_memory_info=_memory_info,
)  # fmt: skip
config = _Space(
    paper_name="tensorflow.config", list_physical_devices=_physical, list_logical_devices=_logical,
    get_visible_devices=_visible_devices, set_visible_devices=_set_visible, experimental=experimental,
    set_logical_device_configuration=_memory_limit, LogicalDeviceConfiguration=lambda **k: k,
    set_soft_device_placement=lambda *_: None, run_functions_eagerly=lambda *_: None,
)  # fmt: skip


def _is_gpu_available(*_: Any, **__: Any) -> bool:
    if driver.here.poisoned:
        raise InternalError(_NOT_INIT)
    if not _State.running:
        _count()
        _State.listed = False
    return len(driver.visible()) > 0


def _gpu_device_name() -> str:
    return "/device:GPU:0" if _is_gpu_available() else ""


test = _Space(paper_name="tensorflow.test", is_gpu_available=_is_gpu_available, gpu_device_name=_gpu_device_name,
              is_built_with_cuda=lambda: True)  # fmt: skip
sysconfig = _Space(paper_name="tensorflow.sysconfig", get_build_info=lambda: {"cuda_version": "13.0"})


def _np() -> Any:
    import numpy

    return numpy


class Tensor:
    """A tensor of the runtime."""

    def __init__(self, array: Any) -> None:
        self.placed = _start()
        self._a, self._pid = _np().asarray(array), driver.here.pid
        if self._a.dtype.name == "float64" and not isinstance(array, _np().ndarray):
            self._a = self._a.astype("float32")
        elif self._a.dtype.name == "int64" and not isinstance(array, _np().ndarray):
            self._a = self._a.astype("int32")

    def _touch(self) -> Any:
        if self._pid != driver.here.pid:
            _forked()
        return self._a

    def numpy(self) -> Any:
        """Back to numpy."""
        return self._touch()

    @property
    def device(self) -> str:
        """Where it lives."""
        return f"/job:localhost/replica:0/task:0/device:{self.placed}:0"

    shape = property(lambda self: self._a.shape)
    dtype = property(lambda self: self._a.dtype)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self._touch() if dtype is None else self._touch().astype(dtype)

    def __repr__(self) -> str:
        return f"<tf.Tensor: shape={self.shape}, numpy={self._touch()}>"

    def __float__(self) -> float:
        return float(self._touch())

    def __int__(self) -> int:
        return int(self._touch())

    __index__ = __int__

    def __bool__(self) -> bool:
        return bool(self._touch())

    def __len__(self) -> int:
        return len(self._a)

    def __getitem__(self, key: Any) -> "Tensor":
        return Tensor(self._touch()[key])

    def __hash__(self) -> int:
        return id(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._touch(),)


class Variable(Tensor):
    """A tensor that changes."""

    def __init__(self, array: Any, *_: Any, **__: Any) -> None:
        super().__init__(_plain(array))

    def assign(self, value: Any) -> "Variable":
        """Another value."""
        self._touch()
        self._a = _np().asarray(_plain(value))
        return self

    def assign_add(self, value: Any) -> "Variable":
        """More."""
        return self.assign(self._touch() + _plain(value))


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)) and any(isinstance(v, Tensor) for v in value):
        return [_plain(v) for v in value]
    return value._touch() if isinstance(value, Tensor) else value


def _operator(name: str) -> Any:
    def operate(self: Tensor, *others: Any) -> Any:
        return Tensor(getattr(self._touch(), name)(*(_plain(o) for o in others)))

    return operate


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"):
    for _form in (f"__{_name}__", f"__r{_name}__"):
        setattr(Tensor, _form, _operator(_form))
for _name in ("neg", "abs", "lt", "le", "gt", "ge"):
    setattr(Tensor, f"__{_name}__", _operator(f"__{_name}__"))
float32, float64, float16, int32, int64, uint8, string, bool = (  # noqa: A001
    "float32", "float64", "float16", "int32", "int64", "uint8", "str", "bool"
)  # fmt: skip


def constant(value: Any, dtype: Any = None, shape: Any = None, name: Any = None) -> Tensor:
    """A tensor from Python data."""
    _start()
    array = _np().asarray(_plain(value))
    if dtype is not None:
        array = array.astype(dtype)
    elif not hasattr(value, "dtype"):
        array = array.astype({"float64": "float32", "int64": "int32"}.get(array.dtype.name, array.dtype.name))
    return Tensor(array)


convert_to_tensor = constant


def _function(name: str) -> Any:
    def call(*args: Any, axis: Any = None, dtype: Any = None, **_: Any) -> Tensor:
        _start()
        options = {"axis": axis} if axis is not None else {}
        return Tensor(_np().asarray(getattr(_np(), name)(*(_plain(a) for a in args), **options)))

    call.__name__ = name
    return call


_FUNCTIONS = {
    "square": "square", "sqrt": "sqrt", "exp": "exp", "abs": "abs", "sin": "sin", "cos": "cos", "tanh": "tanh",
    "add": "add", "subtract": "subtract", "multiply": "multiply", "divide": "divide", "matmul": "matmul",
    "reduce_sum": "sum", "reduce_mean": "mean", "reduce_max": "max", "reduce_min": "min", "stack": "stack",
    "concat": "concatenate", "transpose": "transpose", "reshape": "reshape", "zeros": "zeros", "ones": "ones",
    "zeros_like": "zeros_like", "ones_like": "ones_like", "range": "arange", "eye": "eye", "argmax": "argmax",
    "maximum": "maximum", "minimum": "minimum", "fill": "full", "linspace": "linspace", "where": "where",
}  # fmt: skip
_made = {name: _function(real) for name, real in _FUNCTIONS.items()}
math = _Space(paper_name="tensorflow.math", **_made)
linalg = _Space(paper_name="tensorflow.linalg", matmul=_made["matmul"])
driver.by_name("tensorflow", {n: f for n, f in _made.items() if n not in ("range", "abs")})
for _name, _value in _made.items():
    if _name not in ("range", "abs"):
        globals()[_name] = _value


def cast(value: Any, dtype: Any) -> Tensor:
    """Another dtype."""
    return Tensor(_np().asarray(_plain(value)).astype(dtype))


def identity(value: Any) -> Tensor:
    """The same."""
    return Tensor(_plain(value))


def _drawn(name: str) -> Any:
    def draw(shape: Any, *_: Any, **__: Any) -> Tensor:
        _start()
        return Tensor(getattr(_np().random.default_rng(), name)(size=tuple(shape)).astype("float32"))

    return draw


random = _Space(paper_name="tensorflow.random", set_seed=lambda *_: None, normal=_drawn("standard_normal"),
                uniform=_drawn("random"))  # fmt: skip


class device:
    """Where operations go; asking for one starts the runtime."""

    def __init__(self, name: str) -> None:
        if not _State.after_fork:
            _start()
        self.name = name

    def __enter__(self) -> "device":
        return self

    def __exit__(self, *_: object) -> None:
        pass


def function(found: Any = None, **_: Any) -> Any:
    """Compiled at its first call."""
    return found if callable(found) else lambda later: later


class TensorSpec:
    """A shape."""

    def __init__(self, shape: Any, dtype: Any = float32, name: Any = None) -> None:
        self.shape, self.dtype = shape, dtype


class GradientTape:
    """Gradients that mean nothing."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __enter__(self) -> "GradientTape":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def watch(self, *_: Any) -> None:
        """Nothing on paper."""

    def gradient(self, target: Any, sources: Any) -> Any:
        """Small ones."""
        many = sources if isinstance(sources, (list, tuple)) else [sources]
        found = [Tensor(_np().full(s.shape, 1e-3, "float32")) for s in many]
        return found if isinstance(sources, (list, tuple)) else found[0]


class _Strategy:
    def __init__(self, *_: Any, **__: Any) -> None:
        _start()

    def scope(self) -> "_Strategy":
        """A scope."""
        return self

    def __enter__(self) -> "_Strategy":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    num_replicas_in_sync = property(lambda self: max(1, len(_gpus())))


distribute = _Space(paper_name="tensorflow.distribute", MirroredStrategy=_Strategy)


class Dataset:
    """tf.data; its sources are tensors of the runtime."""

    def __init__(self, items: list[Any]) -> None:
        _start()
        self._items = items

    @staticmethod
    def range(*args: int) -> "Dataset":
        """Numbers."""
        _start()
        return Dataset([Tensor(i) for i in __builtins__["range"](*args)] if isinstance(__builtins__, dict) else [Tensor(i) for i in __builtins__.range(*args)])

    @staticmethod
    def from_tensor_slices(values: Any) -> "Dataset":
        """Rows."""
        _start()
        if isinstance(values, tuple):
            return Dataset([tuple(Tensor(c) for c in row) for row in zip(*values)])
        return Dataset([Tensor(row) for row in values])

    def map(self, call: Any, num_parallel_calls: Any = None) -> "Dataset":
        """Each through a function."""
        return Dataset([call(*i) if isinstance(i, tuple) else call(i) for i in self._items])

    def batch(self, size: int, **_: Any) -> "Dataset":
        """Together."""
        parts = [self._items[i : i + size] for i in __import__("builtins").range(0, len(self._items), size)]
        return Dataset([Tensor(_np().stack([_plain(x) for x in p])) if not isinstance(p[0], tuple) else tuple(Tensor(_np().stack([_plain(x) for x in c])) for c in zip(*p)) for p in parts])

    def _same(self, *_: Any, **__: Any) -> "Dataset":
        return self

    shuffle = prefetch = cache = _same

    def __iter__(self) -> Any:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)


data = _Space(paper_name="tensorflow.data", Dataset=Dataset, AUTOTUNE=-1)
errors = _Space(paper_name="tensorflow.errors", InternalError=InternalError, OpError=_Error,
                ResourceExhaustedError=ResourceExhaustedError)  # fmt: skip
__getattr__ = driver.lazy("tensorflow", "keras")
