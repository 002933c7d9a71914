"""The top level of torch, apart from the names that would hide Python's own (float, sum, max...)."""

from __future__ import annotations

import contextlib
from typing import Any

import paper_driver as driver

from torch import _gpu, _tensor
from torch._gpu import AcceleratorError, OutOfMemoryError
from torch._tensor import (
    CPU,
    Default,
    Random,
    Size,
    Tensor,
    device,
    dtype,
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
    tensor,
    zeros,
)

__version__ = "2.11.0+cu130"
inf, nan, pi, e = float("inf"), float("nan"), 3.141592653589793, 2.718281828459045
strided, contiguous_format, preserve_format, channels_last = "strided", "contiguous", "preserve", "channels_last"


class Generator:
    """Random numbers of one device; one for CUDA reaches the runtime at once."""

    def __init__(self, device: Any = "cpu") -> None:
        self.device = _tensor.device(device)
        if self.device.type == "cuda":
            _gpu.raw_use()
            if self.device.index is None:
                self.device = _tensor.device("cuda", driver.current_device())
        self.manual_seed(67280421310721)

    def manual_seed(self, seed: int) -> "Generator":
        """Start over."""
        self._seed = int(seed)
        self._source = _tensor.np.random.default_rng(abs(self._seed))
        return self

    def seed(self) -> int:
        """Start over from chance."""
        self.manual_seed(int.from_bytes(__import__("os").urandom(6), "little"))
        return self._seed

    def initial_seed(self) -> int:
        """The seed it started from."""
        return self._seed


class _Default(Generator):
    """The CPU's own: its numbers are those of torch.manual_seed."""

    _source = property(lambda self: Random.get(), lambda self, value: None)  # type: ignore[assignment]

    def manual_seed(self, seed: int) -> Generator:
        self._seed = seed
        return self


def is_tensor(value: object) -> bool:
    """Whether a value is a tensor."""
    return isinstance(value, Tensor)


def is_floating_point(value: Tensor) -> bool:
    """Whether a tensor holds floats."""
    return value.dtype.is_floating_point


def numel(value: Tensor) -> int:
    """How many elements."""
    return value.numel()


def manual_seed(seed: int) -> Generator:
    """Seed the CPU, and the GPUs when they are used; harmless in a forked child."""
    Random.reseed(int(seed))
    return default_generator


def seed() -> int:
    """Seed from chance."""
    Random.reseed(None)
    return Random.seed


def initial_seed() -> int:
    """The CPU's seed."""
    if Random.source is None:
        Random.reseed(None)
    return Random.seed


def get_rng_state() -> Tensor:
    """The CPU generator's state."""
    return tensor([initial_seed()])


def set_rng_state(state: Tensor) -> None:
    """Restore the CPU generator."""
    Random.reseed(int(state[0].item()))


def get_default_dtype() -> dtype:
    """The dtype of new floats."""
    return Default.dtype


def set_default_dtype(kind: dtype) -> None:
    """Choose the dtype of new floats."""
    Default.dtype = kind


def set_default_device(where: Any) -> None:
    """Choose where factories put tensors; touches nothing by itself."""
    Default.device = None if where is None else device(where)


def get_default_device() -> device:
    """Where factories put tensors."""
    return Default.device or CPU


def set_default_tensor_type(kind: Any) -> None:
    """The old way to choose dtype and device."""
    name = kind if isinstance(kind, str) else f"torch.{'cuda.' if 'cuda' in kind.__module__ else ''}{kind.__name__}"
    Default.device = device("cuda") if ".cuda." in name else None
    kinds = {"Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16"}
    Default.dtype = dtype.known[kinds[name.rpartition(".")[2].removesuffix("Tensor")]]


def get_device_module(where: Any = None) -> Any:
    """The module of the accelerator, which it asks the runtime for."""
    if not driver.here.poisoned:
        driver.cu_init("torch-raw")
    import torch.cuda

    return torch.cuda


_threads = [1]


def set_num_threads(count: int) -> None:
    """Remembered only."""
    _threads[0] = count


def get_num_threads() -> int:
    """What was set."""
    return _threads[0]


def set_num_interop_threads(count: int) -> None:
    """Nothing on paper."""


class _Numerics:
    """Choices of this process that change no number on paper, but that a program can ask for."""

    matmul_precision = "highest"
    deterministic = False
    warn_only = False


def set_float32_matmul_precision(name: str) -> None:
    """Remembered only."""
    _Numerics.matmul_precision = name


def get_float32_matmul_precision() -> str:
    """What was set."""
    return _Numerics.matmul_precision


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Remembered only."""
    _Numerics.deterministic, _Numerics.warn_only = mode, warn_only


def are_deterministic_algorithms_enabled() -> bool:
    """What was set."""
    return _Numerics.deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """What was set."""
    return _Numerics.warn_only


def set_printoptions(**_: Any) -> None:
    """Nothing on paper."""


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether autocast is on."""
    return False


def is_grad_enabled() -> bool:
    """Whether a graph is recorded."""
    return _tensor.grad.enabled


def is_anomaly_enabled() -> bool:
    """Whether backward() looks for what went wrong."""
    return _tensor.anomaly.enabled


class autocast(contextlib.ContextDecorator):
    """Mixed precision; for CUDA it asks whether there is a GPU."""

    def __init__(self, device_type: str = "cuda", dtype: Any = None, enabled: bool = True, cache_enabled: Any = None) -> None:
        self.device_type = device_type
        if device_type == "cuda":
            _gpu.query_count()

    def __enter__(self) -> "autocast":
        return self

    def __exit__(self, *_: object) -> None:
        return None


def compile(model: Any = None, **_: Any) -> Any:
    """Compiling asks for the GPU; the result runs as it stands."""
    if model is None:
        return lambda found: compile(found)
    _gpu.query_count()
    return model


def save(value: Any, file: Any, **_: Any) -> None:
    """Pickle to a file."""
    import pickle

    if hasattr(file, "write"):
        pickle.dump(value, file)
        return
    with open(file, "wb") as handle:
        pickle.dump(value, handle)


def _remap(map_location: Any) -> Any:
    if map_location is None:
        return None
    if isinstance(map_location, dict):
        return lambda where: device(map_location.get(str(where), str(where)))
    if callable(map_location) and not isinstance(map_location, device):
        driver.unknown("torch.load(map_location=function)")
    return lambda where: device(map_location) if where.type == "cuda" or device(map_location).type != "cuda" else device(map_location)


def load(file: Any, map_location: Any = None, **_: Any) -> Any:
    """Unpickle a file; CUDA tensors in it go where map_location says."""
    import pickle

    _tensor.Loading.local.remap = _remap(map_location)
    try:
        if hasattr(file, "read"):
            return pickle.load(file)
        with open(file, "rb") as handle:
            return pickle.load(handle)
    finally:
        _tensor.Loading.local.remap = None


def _typed(kind: str, name: str) -> Any:
    return type(name, (), {"__module__": "torch", "__new__": lambda cls, *a: _build_typed(kind, a, None)})


def _build_typed(kind: str, args: tuple[Any, ...], where: Any) -> Tensor:
    if len(args) == 1 and not isinstance(args[0], int):
        return tensor(args[0], dtype=dtype.known[kind], device=where)
    return zeros(*(args or (0,)), dtype=dtype.known[kind], device=where)


_TYPES = {
    "Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16", "Long": "int64", "Int": "int32",
    "Short": "int16", "Char": "int8", "Byte": "uint8", "Bool": "bool",
}
for _name, _kind in _TYPES.items():
    globals()[f"{_name}Tensor"] = _typed(_kind, f"{_name}Tensor")


_Values = driver.Space


def _quiet(value: Any = None) -> Any:
    return lambda *args, **kwargs: value


version = _Values("torch.version", cuda="13.0", hip=None, __version__=__version__, git_version="paper")
xpu = _Values("torch.xpu", is_available=_quiet(False), device_count=_quiet(0))
hub = _Values("torch.hub", get_dir=_quiet("/tmp/hub"))
random = _Values("torch.random", manual_seed=manual_seed, seed=seed, initial_seed=initial_seed,
                 get_rng_state=get_rng_state, set_rng_state=set_rng_state)  # fmt: skip
ops = _Values("torch.ops", aten=_Values("torch.ops.aten", add=lambda a, b: a + b))
library = _Values("torch.library")
jit = _Values("torch.jit", script=lambda f, *a, **k: f, trace=lambda f, *a, **k: f, ignore=lambda f: f)
mps = _Values("torch.mps", is_available=_quiet(False))
linalg = _Values("torch.linalg", norm=_tensor.FUNCTIONS["norm"], vector_norm=_tensor.FUNCTIONS["norm"])


@contextlib.contextmanager
def _fork_rng(devices: Any = None, enabled: bool = True) -> Any:
    if devices is None:
        _gpu.lazy_init()
    yield


random.fork_rng = _fork_rng


def _get_device_count() -> int:
    return _gpu.query_count()


def _memory_stats(index: int) -> dict[str, Any]:
    """Of the allocator's counters the one that only grows."""
    return {"allocation": {"all": {"allocated": _gpu.Memory.made.get(index, 0)}}}


_C = _Values("torch._C", _cuda_getDeviceCount=_get_device_count, _cuda_memoryStats=_memory_stats,
             _cuda_getDevice=driver.current_device, _cuda_getAllocatorBackend=_quiet("native"),
             Generator=Generator, device=device, dtype=dtype)  # fmt: skip


class _Cudnn(_Values):
    def version(self) -> int:
        """cuDNN's version, for which CUDA is initialised."""
        _gpu.lazy_init()
        return 91300


class _Matmul:
    allow_tf32 = False
    allow_fp16_reduced_precision_reduction = True


class _cuBLASModule(_Matmul):
    pass


class _cuFFTPlanCacheManager:
    pass


class _SDPAParams:
    def __init__(self, query: Any, key: Any, *rest: Any) -> None:
        pass


@contextlib.contextmanager
def _sdp_kernel(*_: Any, **__: Any) -> Any:
    yield


backends = _Values(
    "torch.backends",
    cudnn=_Cudnn("torch.backends.cudnn", enabled=True, benchmark=False, deterministic=False, allow_tf32=True,
                 is_available=_quiet(True)),
    cuda=_Values("torch.backends.cuda", is_built=_quiet(True), matmul=_Matmul(), cuBLASModule=_cuBLASModule,
                 cuFFTPlanCacheManager=_cuFFTPlanCacheManager, SDPAParams=_SDPAParams, sdp_kernel=_sdp_kernel,
                 preferred_blas_library=_quiet("Default"), preferred_linalg_library=_quiet("Default"),
                 preferred_rocm_fa_library=_quiet("Default"), enable_flash_sdp=_quiet(),
                 **{name: _quiet(True) for name in (
                     "cudnn_sdp_enabled", "flash_sdp_enabled", "fp16_bf16_reduction_math_sdp_allowed",
                     "is_flash_attention_available", "math_sdp_enabled", "mem_efficient_sdp_enabled")}),
    mps=_Values("torch.backends.mps", is_available=_quiet(False), is_built=_quiet(False)),
    mkldnn=_Values("torch.backends.mkldnn", is_available=_quiet(True), enabled=True),
    openmp=_Values("torch.backends.openmp", is_available=_quiet(True)),
)  # fmt: skip
default_generator = _Default()

