"""Tensors: a small numpy array, a device and enough of autograd for a training loop."""

from __future__ import annotations

import builtins
import contextlib
import math
import threading
from typing import Any, Callable, Iterable

import paper_driver as driver

from torch import _gpu

BIG = 1 << 20  # from here on all elements share one value, so that a tensor of gigabytes costs nothing
_SLOW = 2_000_000_000  # a matrix product with more steps than this is not computed either


class _Numpy:
    """numpy, imported by the first tensor."""

    def __getattr__(self, name: str) -> Any:
        global np
        import numpy

        np = numpy
        return getattr(numpy, name)


np: Any = _Numpy()


class dtype:
    """A torch dtype: its name, the numpy type that stands for it, the bytes of one element."""

    __module__ = "torch"
    known: dict[str, "dtype"] = {}

    def __init__(self, name: str, numpy_name: str, itemsize: int) -> None:
        self.name, self.numpy_name, self.itemsize = name, numpy_name, itemsize
        dtype.known[name] = self

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _dtype, (self.name,)

    @property
    def is_floating_point(self) -> bool:
        """True for the float types."""
        return "float" in self.name

    @property
    def is_complex(self) -> bool:
        """True for the complex types."""
        return "complex" in self.name


def _dtype(name: str) -> dtype:
    return dtype.known[name]


for _name, _np, _size in (
    ("float32", "float32", 4), ("float64", "float64", 8), ("float16", "float16", 2), ("bfloat16", "float32", 2),
    ("int64", "int64", 8), ("int32", "int32", 4), ("int16", "int16", 2), ("int8", "int8", 1), ("uint8", "uint8", 1),
    ("bool", "bool", 1), ("complex64", "complex64", 8), ("complex128", "complex128", 16),
):
    dtype(_name, _np, _size)

ALIASES = {
    "float": "float32", "double": "float64", "half": "float16", "long": "int64", "int": "int32", "short": "int16",
    "cfloat": "complex64", "cdouble": "complex128",
}
float32 = dtype.known["float32"]


class device:
    """torch.device: a value; making one touches nothing."""

    __module__ = "torch"
    __slots__ = ("type", "index")

    def __init__(self, type: Any = None, index: int | None = None) -> None:
        if isinstance(type, device):
            type, index = type.type, type.index
        elif isinstance(type, int):
            type, index = "cuda", type
        elif isinstance(type, str) and ":" in type:
            type, _, text = type.partition(":")
            index = int(text)
        if type not in ("cpu", "cuda", "meta", "mps", "xpu"):
            raise RuntimeError(f"Expected one of cpu, cuda, xpu, mps, meta device type at start of device string: {type}")
        self.type: str = type
        self.index = index

    def __repr__(self) -> str:
        if self.index is None:
            return f"device(type='{self.type}')"
        return f"device(type='{self.type}', index={self.index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __reduce__(self) -> tuple[Any, ...]:
        return device, (self.type, self.index)

    def __enter__(self) -> "device":
        Default.stack.append(Default.device)
        Default.device = self
        return self

    def __exit__(self, *_: object) -> None:
        Default.device = Default.stack.pop()


CPU = device("cpu")


class Default:
    """Process-wide defaults, inherited by fork and lost by spawn."""

    device: Any = None
    stack: list[Any] = []
    dtype = float32
    tensor_type_cuda = False


class _Grad(threading.local):
    enabled = True


grad = _Grad()


class anomaly:
    """Whether backward() looks for what went wrong; changes nothing on paper."""

    enabled = False


class Random:
    """The CPU's random numbers of this process."""

    seed = 0
    source: Any = None

    @classmethod
    def get(cls) -> Any:
        """The numpy generator, made on first use."""
        if cls.source is None:
            cls.reseed(None)
        return cls.source

    @classmethod
    def reseed(cls, seed: int | None) -> None:
        """Start over from a seed."""
        cls.seed = seed if seed is not None else int.from_bytes(__import__("os").urandom(6), "little")
        cls.source = np.random.default_rng(builtins.abs(cls.seed))


def resolve(where: Any) -> device:
    """A device argument with its index: plain 'cuda' is the thread's current device. Initialises CUDA."""
    if where is None:
        where = Default.device or CPU
    found = where if isinstance(where, device) else device(where)
    if found.type == "cuda":
        _gpu.lazy_init()
        if found.index is None:
            return device("cuda", driver.current_device())
        _gpu.physical(found.index)
    elif found.type in ("mps", "xpu"):
        raise RuntimeError(f"torch was not compiled with {found.type} support")
    return found


def numpy_dtype(kind: dtype) -> Any:
    """The numpy type that stands for a torch dtype."""
    return np.dtype(kind.numpy_name)


def kind_of(array: Any) -> dtype:
    """The torch dtype of a numpy array."""
    found = dtype.known.get(array.dtype.name)
    if found is None:
        raise TypeError(f"can't convert np.ndarray of type {array.dtype}.")
    return found


def constant(shape: tuple[int, ...], value: Any, kind: dtype) -> Any:
    """An array of one value; a big one shares it."""
    if math.prod(shape) > BIG:
        return np.broadcast_to(np.asarray(value, numpy_dtype(kind)), shape)
    return np.full(shape, value, numpy_dtype(kind))


def _shrink(array: Any) -> Any:
    """One element for all, where an array is big."""
    return array[(0,) * array.ndim] if isinstance(array, np.ndarray) and array.size > BIG else array


def elementwise(function: Callable[..., Any], *arrays: Any) -> Any:
    """Apply a numpy function; on big arrays to one element only."""
    if not any(isinstance(a, np.ndarray) and a.size > BIG for a in arrays):
        shape = np.broadcast_shapes(*(a.shape for a in arrays if isinstance(a, np.ndarray)))
        if math.prod(shape) <= BIG:
            return np.asarray(function(*arrays))
    else:
        shape = np.broadcast_shapes(*(a.shape for a in arrays if isinstance(a, np.ndarray)))
    value = np.asarray(function(*(a.flat[0] if isinstance(a, np.ndarray) and a.size else a for a in arrays)))
    return np.broadcast_to(value, shape)


def _product(left: Any, right: Any) -> Any:
    """A matrix product, not computed where it would take long."""
    if left.size > BIG or right.size > BIG or left.size * right.shape[-1] > _SLOW:
        rows = left.shape[:-1]
        shape = rows + (right.shape[-1:] if right.ndim > 1 else ())
        if left.shape[-1] != right.shape[-2 if right.ndim > 1 else 0]:
            raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({left.shape} and {right.shape})")
        return np.broadcast_to(np.asarray(left.flat[0] * right.flat[0] * left.shape[-1], left.dtype), shape)
    try:
        return np.matmul(left, right)
    except ValueError:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({left.shape} and {right.shape})") from None


class Size(tuple):  # type: ignore[type-arg]
    """A shape."""

    __module__ = "torch"

    def numel(self) -> int:
        """The product of all sizes."""
        return math.prod(self)

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"


def _shape(sizes: tuple[Any, ...]) -> tuple[int, ...]:
    if len(sizes) == 1 and not isinstance(sizes[0], int) and not hasattr(sizes[0], "__index__"):
        sizes = tuple(sizes[0])
    return tuple(int(s) for s in sizes)


def make(array: Any, where: device, kind: dtype, requires_grad: bool = False, cls: Any = None) -> "Tensor":
    """A new tensor with memory of its own on its device."""
    made = object.__new__(cls or Tensor)
    made._a, made.device, made.dtype = array, where, kind
    made._requires, made.grad, made._parents = requires_grad, None, ()
    made._token, made._pinned, made._shared, made._block = _gpu.State.lock_token, False, None, None
    if where.type == "cuda":
        made._block = _gpu.Block(where.index, array.size * kind.itemsize)
    return made


def derived(source: Iterable["Tensor"], array: Any, kind: dtype | None = None, view: bool = False) -> "Tensor":
    """The result of an operation: on the device of its inputs and part of their graph."""
    inputs = list(source)
    array = np.asarray(array)
    if kind is None:
        kind = kind_of(array)
        if kind.name == "float32" and any(t.dtype.name == "bfloat16" for t in inputs):
            kind = dtype.known["bfloat16"]
        elif kind.name == "float64" and not any(t.dtype.name == "float64" for t in inputs):
            kind = Default.dtype
            array = array.astype(kind.numpy_name) if array.size <= BIG else elementwise(lambda v: v.astype(kind.numpy_name), array)
    where = inputs[0].device if view else common_device(inputs)
    made = make(array, CPU if view else where, kind)
    if view:
        made.device, made._block, made._pinned = where, inputs[0]._block, inputs[0]._pinned
        made._token = inputs[0]._token
    if grad.enabled and any(t.requires_grad for t in inputs) and kind.is_floating_point:
        made._parents = tuple(t for t in inputs if t.requires_grad)
    return made


def common_device(inputs: list["Tensor"]) -> device:
    """The device of an operation; two devices are an error, but a CPU scalar goes anywhere."""
    found = inputs[0].device
    for other in inputs:
        other._touch()
        if other.device != found:
            if other.device.type == "cpu" and other._a.ndim == 0:
                continue
            if found.type == "cpu" and all(t._a.ndim == 0 for t in inputs if t.device == found):
                found = other.device
                continue
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"{found} and {other.device}!"
            )
    return found


class Tensor:
    """A tensor."""

    __module__ = "torch"
    _a: Any
    device: device
    dtype: dtype

    def __new__(cls, *args: Any, **kwargs: Any) -> "Tensor":
        if len(args) == 1 and isinstance(args[0], Tensor):
            return as_subclass(args[0], cls)
        if len(args) == 1 and not isinstance(args[0], int):
            return as_subclass(tensor(args[0], dtype=float32), cls)
        return as_subclass(zeros(*args), cls)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_paper") or name.startswith("__"):
            raise AttributeError(name)
        if name not in _TENSOR_NAMES and not name.endswith("_") and name.startswith("_"):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        driver.unknown(f"torch.Tensor.{name}")

    # ---- where it lives

    def _touch(self) -> Any:
        """Read the data: impossible for CUDA memory that was inherited through a fork."""
        if self.device.type == "cuda" and self._token != _gpu.State.lock_token:
            raise _gpu.initialization_error()
        return self._a

    @property
    def is_cuda(self) -> bool:
        """Whether it lives on a GPU."""
        return self.device.type == "cuda"

    @property
    def is_cpu(self) -> bool:
        """Whether it lives in host memory."""
        return self.device.type == "cpu"

    @property
    def is_meta(self) -> bool:
        """Whether it has no data."""
        return self.device.type == "meta"

    def get_device(self) -> int:
        """The index of its GPU, -1 on the CPU."""
        return self.device.index if self.is_cuda else -1  # type: ignore[return-value]

    def _move(self, where: device, kind: dtype) -> "Tensor":
        if where == self.device and kind is self.dtype:
            return self
        array = self._touch()
        if kind is not self.dtype:
            array = elementwise(lambda v: np.asarray(v).astype(kind.numpy_name), array)
        elif where.type == "cuda" or self.is_cuda:
            array = array if array.size > BIG else array.copy()
        made = make(array, where, kind)
        if grad.enabled and self.requires_grad:
            made._parents = (self,)
        return made

    def to(self, *args: Any, **kwargs: Any) -> "Tensor":
        """Another device, another dtype, or those of another tensor."""
        where: Any = kwargs.get("device")
        kind: Any = kwargs.get("dtype")
        for arg in args:
            if isinstance(arg, Tensor):
                where, kind = arg.device, arg.dtype
            elif isinstance(arg, dtype):
                kind = arg
            elif isinstance(arg, (str, device)) or (isinstance(arg, int) and not isinstance(arg, bool)):
                where = arg
        target = self.device if where is None else resolve(where)
        if kwargs.get("copy") and target == self.device:
            return self.clone()
        return self._move(target, kind or self.dtype)

    def cuda(self, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> "Tensor":
        """A copy on a GPU, by default the thread's current one."""
        if device is None:
            _gpu.lazy_init()
            device = driver.current_device()
        return self._move(resolve(device), self.dtype)

    def cpu(self, memory_format: Any = None) -> "Tensor":
        """A copy in host memory."""
        self._touch()
        return self._move(CPU, self.dtype)

    def pin_memory(self, device: Any = None) -> "Tensor":
        """A copy in page-locked memory, which takes a CUDA context."""
        if self.is_cuda:
            kind = {"float32": "Float", "int64": "Long", "float64": "Double"}.get(self.dtype.name, "Float")
            raise RuntimeError(f"cannot pin 'torch.cuda.{kind}Tensor' only dense CPU tensors can be pinned")
        _gpu.raw_use()
        if self._pinned:
            return self
        made = make(self._a if self._a.size > BIG else self._a.copy(), CPU, self.dtype, self._requires)
        made._pinned = True
        return made

    def is_pinned(self, device: Any = None) -> bool:
        """Whether its memory is page-locked; asks the runtime where that has been started."""
        if driver.here.poisoned:
            raise _gpu.initialization_error()
        return self._pinned

    def share_memory_(self) -> "Tensor":
        """Move host memory to a file that all processes map; CUDA memory is shared as it is."""
        if self.is_cpu and self._shared is None:
            import os
            import uuid

            self._shared = os.path.join(driver.STATE, f"shm-{uuid.uuid4().hex}")
            shared = np.memmap(self._shared, self._a.dtype, "w+", shape=self._a.shape or (1,)).reshape(self._a.shape)
            shared[...] = self._a
            self._a = shared
        return self

    def is_shared(self) -> bool:
        """Whether other processes see changes."""
        return self.is_cuda or self._shared is not None

    # ---- shape and values

    @property
    def shape(self) -> Size:
        """Its sizes."""
        return Size(self._a.shape)

    def size(self, dim: int | None = None) -> Any:
        """Its sizes, or one of them."""
        return self.shape if dim is None else self._a.shape[dim]

    @property
    def ndim(self) -> int:
        """How many dimensions it has."""
        return int(self._a.ndim)

    dim = ndimension = lambda self: self._a.ndim

    def numel(self) -> int:
        """How many elements it has."""
        return int(self._a.size)

    nelement = numel
    element_size = lambda self: self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Its bytes."""
        return self.numel() * self.dtype.itemsize

    def data_ptr(self) -> int:
        """An address."""
        return id(self._block) if self.is_cuda else int(self._a.__array_interface__["data"][0])

    def item(self) -> Any:
        """The only element as a number."""
        array = self._touch()
        if array.size != 1:
            raise RuntimeError(f"a Tensor with {array.size} elements cannot be converted to Scalar")
        return array.reshape(-1)[0].item()

    def tolist(self) -> Any:
        """Nested lists."""
        return self._touch().tolist()

    def numpy(self, *, force: bool = False) -> Any:
        """The array behind a CPU tensor."""
        if self.is_cuda and not force:
            raise TypeError(
                f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to "
                "host memory first."
            )
        if self.requires_grad and not force:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        return self._touch()

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if not self.is_cuda:
            raise AttributeError("Can't get __cuda_array_interface__ on non-CUDA tensor type")
        return {"shape": tuple(self.shape), "data": (self.data_ptr(), False), "paper": self._touch(), "version": 3}

    def __len__(self) -> int:
        if self._a.ndim == 0:
            raise TypeError("len() of a 0-d tensor")
        return len(self._a)

    def __iter__(self) -> Any:
        if self._a.ndim == 0:
            raise TypeError("iteration over a 0-d tensor")
        return iter([self[i] for i in range(len(self._a))])

    def __bool__(self) -> bool:
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        if self.dtype.is_floating_point:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __contains__(self, value: Any) -> bool:
        return bool((self._touch() == _plain(value)).any())

    def __hash__(self) -> int:
        return id(self)

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if self._a.ndim == 0 and spec else str(self)

    def __repr__(self) -> str:
        array = self._touch()
        text = np.array2string(array if array.size < 1000 else array.reshape(-1)[:3], separator=", ", precision=4)
        text += f", device='{self.device}'" if self.is_cuda else ""
        text += f", size={tuple(self.shape)}" if array.size >= 1000 else ""
        text += f", dtype={self.dtype}" if self.dtype.name not in ("float32", "int64", "bool") else ""
        text += ", requires_grad=True" if self._requires and not self._parents else ""
        return f"tensor({text})"

    def __getitem__(self, key: Any) -> "Tensor":
        try:
            found = self._touch()[_plain(key)]
        except IndexError as error:
            raise IndexError(str(error)) from None
        return derived([self], found, self.dtype, view=True)

    def __setitem__(self, key: Any, value: Any) -> None:
        array = self._touch()
        if isinstance(value, Tensor):
            value = value._touch()
        if array.size > BIG:
            self._a = np.broadcast_to(np.asarray(_shrink(np.asarray(value)), array.dtype).reshape(-1)[:1].reshape(()), array.shape)
        else:
            array[_plain(key)] = value

    # ---- autograd

    @property
    def requires_grad(self) -> bool:
        """Whether a gradient is wanted, for itself or for what it was computed from."""
        return self._requires or bool(self._parents)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._requires = value

    def requires_grad_(self, value: bool = True) -> "Tensor":
        """Ask for a gradient."""
        self._requires = value
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether it was not computed."""
        return not self._parents

    @property
    def grad_fn(self) -> Any:
        """Something where it was computed with gradients."""
        return object() if self._parents else None

    def backward(self, gradient: Any = None, retain_graph: Any = None, create_graph: bool = False) -> None:
        """Give every leaf below a small gradient; the values mean nothing."""
        self._touch()
        if not self.requires_grad:
            raise RuntimeError("element 0 of tensors does not require grad and does not have a grad_fn")
        seen: set[int] = set()
        queue: list[Tensor] = [self]
        hooks = []
        while queue:
            node = queue.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            queue.extend(node._parents)
            if not node._parents and node._requires:
                with no_grad():
                    step = make(constant(node._a.shape, 1e-3, node.dtype), node.device, node.dtype)
                    node.grad = step if node.grad is None else node.grad + step
                hook = getattr(node, "_paper_hook", None)
                if hook is not None and hook not in hooks:
                    hooks.append(hook)
        for hook in hooks:
            hook()

    def detach(self) -> "Tensor":
        """The same data outside the graph."""
        made = make(self._a, CPU, self.dtype)
        made.device, made._block, made._token, made._pinned = self.device, self._block, self._token, self._pinned
        made._shared = self._shared
        return made

    @property
    def data(self) -> "Tensor":
        """The same data outside the graph."""
        return self.detach()

    @data.setter
    def data(self, value: "Tensor") -> None:
        self._become(value)

    def _become(self, other: "Tensor") -> None:
        """Take over another tensor's data and place."""
        self._a, self.device, self.dtype = other._a, other.device, other.dtype
        self._block, self._token, self._pinned, self._shared = other._block, other._token, other._pinned, other._shared

    def detach_(self) -> "Tensor":
        """Leave the graph."""
        self._parents = ()
        return self

    def retain_grad(self) -> None:
        """Nothing to keep."""

    def register_hook(self, hook: Any) -> Any:
        """Hooks are not run."""
        driver.unknown("torch.Tensor.register_hook")

    def record_stream(self, stream: Any) -> None:
        """Nothing to record."""
        self._touch()

    def storage(self) -> "Tensor":
        """Stands for itself."""
        return self

    untyped_storage = storage

    def __reduce_ex__(self, protocol: int) -> tuple[Any, ...]:
        """Ordinary pickling goes through the host."""
        array = self._touch()
        data = (_shrink(array), array.shape) if array.size > BIG else (np.ascontiguousarray(array), None)
        if self.is_cuda:
            import time

            time.sleep(min(self.nbytes / 1024**3, 2.0))  # a copy through the host is slow
        return _rebuild, (type(self), *data, str(self.device), self.dtype.name, self.requires_grad)

    def __deepcopy__(self, memo: Any) -> "Tensor":
        array = self._touch()
        made = make(array if array.size > BIG else array.copy(), self.device, self.dtype, self.requires_grad, type(self))
        memo[id(self)] = made
        return made

    def clone(self, *, memory_format: Any = None) -> "Tensor":
        """A copy."""
        array = self._touch()
        return derived([self], array if array.size > BIG else array.copy(), self.dtype)

    def type(self, kind: Any = None) -> Any:
        """Its type as text, or a copy of another dtype."""
        if kind is None:
            names = {"float32": "Float", "float64": "Double", "float16": "Half", "int64": "Long", "int32": "Int"}
            name = names.get(self.dtype.name, self.dtype.name.capitalize())
            return f"torch.{'cuda.' if self.is_cuda else ''}{name}Tensor"
        if isinstance(kind, dtype):
            return self.to(kind)
        text = kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__name__}"
        if not text.endswith("Tensor"):
            return driver.unknown("torch.Tensor.type of that kind")
        return self.to("cuda" if text.startswith("torch.cuda.") else "cpu")

    def new_zeros(self, *sizes: Any, **kwargs: Any) -> "Tensor":
        """Zeros of the same kind."""
        return zeros(*sizes, **{"dtype": self.dtype, "device": self.device, **kwargs})

    def new_ones(self, *sizes: Any, **kwargs: Any) -> "Tensor":
        """Ones of the same kind."""
        return ones(*sizes, **{"dtype": self.dtype, "device": self.device, **kwargs})

    def new_empty(self, *sizes: Any, **kwargs: Any) -> "Tensor":
        """Zeros of the same kind."""
        return empty(*sizes, **{"dtype": self.dtype, "device": self.device, **kwargs})

    def new_full(self, size: Any, value: Any, **kwargs: Any) -> "Tensor":
        """One value of the same kind."""
        return full(size, value, **{"dtype": self.dtype, "device": self.device, **kwargs})

    def new_tensor(self, data: Any, **kwargs: Any) -> "Tensor":
        """A tensor of the same kind."""
        return tensor(data, **{"dtype": self.dtype, "device": self.device, **kwargs})


def as_subclass(source: Tensor, cls: Any) -> Tensor:
    """The same data under another class."""
    made = source.detach()
    made.__class__ = cls
    return made


def _rebuild(cls: Any, array: Any, shape: Any, where: str, kind: str, requires: bool) -> Tensor:
    """Ordinary unpickling: a CUDA tensor goes back to its device, which initialises CUDA here."""
    target = device(where)
    remap = getattr(Loading.local, "remap", None)
    if remap is not None:
        target = remap(target)
    target = resolve(target)
    if shape is not None:
        array = np.broadcast_to(array, shape)
    return make(array, target, _dtype(kind), requires, cls)


class Loading:
    """What torch.load asked for while it unpickles."""

    local = threading.local()


def _plain(value: Any) -> Any:
    """Tensors inside an index or an argument as arrays."""
    if isinstance(value, Tensor):
        return value._touch()
    if isinstance(value, tuple):
        return tuple(_plain(v) for v in value)
    if isinstance(value, list) and any(isinstance(v, Tensor) for v in value):
        return [_plain(v) for v in value]
    return value


# ---------------------------------------------------------------- no_grad and friends


class _GradMode(contextlib.ContextDecorator):
    wanted = False

    def __init__(self, function: Any = None) -> None:
        self.before: list[bool] = []
        self.function = function

    def __new__(cls, function: Any = None) -> Any:
        if callable(function):
            return cls()(function)
        return super().__new__(cls)

    def __enter__(self) -> None:
        self.before.append(grad.enabled)
        grad.enabled = self.wanted

    def __exit__(self, *_: object) -> None:
        grad.enabled = self.before.pop()


class no_grad(_GradMode):
    """No graph inside."""


class enable_grad(_GradMode):
    """A graph inside."""

    wanted = True


class inference_mode(_GradMode):
    """No graph inside."""

    def __init__(self, mode: Any = True) -> None:
        super().__init__()
        self.wanted = mode is False

    def __new__(cls, mode: Any = True) -> Any:
        if callable(mode):
            return cls()(mode)
        return object.__new__(cls)


class set_grad_enabled(_GradMode):
    """A graph or not, at once."""

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self.before = [grad.enabled]
        grad.enabled = self.wanted = mode

    def __new__(cls, mode: bool) -> Any:
        return object.__new__(cls)

    def __enter__(self) -> None:
        pass


# ---------------------------------------------------------------- operators


def _operand(value: Any, like: Tensor) -> Any:
    if isinstance(value, Tensor):
        return value._touch()
    if isinstance(value, (int, float, complex, bool)):
        return value
    if type(value).__module__ == "numpy":
        return value
    return None


def _binary(function: str, swap: bool = False, compare: bool = False) -> Callable[..., Any]:
    def operate(self: Tensor, other: Any, *, alpha: Any = 1, rounding_mode: Any = None, out: Any = None) -> Any:
        inputs = [self] + ([other] if isinstance(other, Tensor) else [])
        common_device(inputs)
        right = _operand(other, self)
        if right is None:
            return NotImplemented
        right = right * alpha if alpha != 1 else right
        left = self._touch()
        call = getattr(np, function)
        array = elementwise(call, right, left) if swap else elementwise(call, left, right)
        floats = [t for t in inputs if t.dtype.is_floating_point and (t._a.ndim or len(inputs) == 1)]
        if not compare and floats and array.dtype.kind == "f":
            widest = max((t.dtype for t in floats), key=lambda d: d.itemsize)
            return derived(inputs, array.astype(widest.numpy_name, copy=False) if array.size <= BIG else array, widest)
        return derived(inputs, array)

    return operate


def _inplace(operate: Callable[..., Any]) -> Callable[..., Any]:
    def change(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if grad.enabled and self._requires and not self._parents:
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
        with no_grad():
            result = operate(self, *args, **kwargs)
        _write(self, result._a)
        return self

    return change


def _write(target: Tensor, array: Any) -> None:
    """Change data in place, so that views and shared memory see it."""
    old = target._touch()
    if old.size > BIG or not old.flags.writeable:
        target._a = elementwise(lambda v: np.asarray(v).astype(old.dtype), np.broadcast_to(array, old.shape))
    else:
        old[...] = array


_OPERATORS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "power", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
}
for _short, _function in _OPERATORS.items():
    setattr(Tensor, f"__{_short}__", _binary(_function))
    setattr(Tensor, f"__r{_short}__", _binary(_function, swap=True))
    setattr(Tensor, f"__i{_short}__", _inplace(_binary(_function)))
for _short, _function in {
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
}.items():
    setattr(Tensor, f"__{_short}__", _binary(_function, compare=True))
    setattr(Tensor, _short, _binary(_function, compare=True))

_BINARY = {
    "add": "add", "sub": "subtract", "subtract": "subtract", "mul": "multiply", "multiply": "multiply",
    "div": "true_divide", "divide": "true_divide", "true_divide": "true_divide", "pow": "power",
    "floor_divide": "floor_divide", "remainder": "remainder", "maximum": "maximum", "minimum": "minimum",
    "atan2": "arctan2", "fmod": "fmod", "logical_and": "logical_and", "logical_or": "logical_or",
}
_UNARY = {
    "abs": "abs", "exp": "exp", "log": "log", "sqrt": "sqrt", "sin": "sin", "cos": "cos", "tan": "tan",
    "tanh": "tanh", "floor": "floor", "ceil": "ceil", "round": "round", "sign": "sign", "square": "square",
    "neg": "negative", "negative": "negative", "isnan": "isnan", "isinf": "isinf", "isfinite": "isfinite",
    "log2": "log2", "log10": "log10", "log1p": "log1p", "expm1": "expm1", "logical_not": "logical_not",
    "reciprocal": "reciprocal", "trunc": "trunc", "absolute": "abs", "erf": "tanh",
}


def _unary(call: Callable[[Any], Any]) -> Callable[[Tensor], Tensor]:
    def operate(self: Tensor, **_: Any) -> Tensor:
        return derived([self], elementwise(call, self._touch()))

    return operate


def _numpy_call(name: str) -> Callable[..., Any]:
    return lambda *arrays: getattr(np, name)(*arrays)


def _sigmoid(v: Any) -> Any:
    return 1 / (1 + np.exp(-np.asarray(v, dtype=np.result_type(v, np.float32))))


FUNCTIONS: dict[str, Callable[..., Any]] = {}
for _n, _function in _BINARY.items():
    FUNCTIONS[_n] = _binary(_function)
for _n, _function in _UNARY.items():
    FUNCTIONS[_n] = _unary(_numpy_call(_function))
FUNCTIONS["sigmoid"] = _unary(_sigmoid)
FUNCTIONS["relu"] = _unary(lambda v: np.maximum(v, 0))
FUNCTIONS["rsqrt"] = _unary(lambda v: 1 / np.sqrt(v))
FUNCTIONS["nan_to_num"] = _unary(lambda v: np.nan_to_num(v))
FUNCTIONS["abs"].__name__ = "abs"
Tensor.__neg__ = _unary(_numpy_call("negative"))  # type: ignore[attr-defined]
Tensor.__abs__ = _unary(_numpy_call("abs"))  # type: ignore[attr-defined]
Tensor.__invert__ = _unary(_numpy_call("invert"))  # type: ignore[attr-defined]


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    """Register a function as torch.f and Tensor.f."""
    FUNCTIONS[function.__name__.rstrip("_") if function.__name__.endswith("__") else function.__name__] = function
    return function


def _reduction(name: str, numpy_name: str, floating: bool = False) -> None:
    def reduce(self: Tensor, dim: Any = None, keepdim: bool = False, dtype: Any = None, **kw: Any) -> Tensor:
        array = self._touch()
        if floating and not self.dtype.is_floating_point and not self.dtype.is_complex:
            raise RuntimeError(f"{name}(): could not infer output dtype. Input dtype must be either a floating point")
        axis = kw.get("axis", tuple(dim) if isinstance(dim, (list, tuple)) else dim)
        found = np.asarray(getattr(np, numpy_name)(array, axis=axis, keepdims=keepdim))
        if self.dtype.is_floating_point and found.dtype.kind == "f":
            return derived([self], found.astype(self.dtype.numpy_name), dtype or self.dtype)
        return derived([self], found)

    reduce.__name__ = name
    FUNCTIONS[name] = reduce


for _n, _function in {"sum": "sum", "prod": "prod", "all": "all", "any": "any", "amax": "max", "amin": "min"}.items():
    _reduction(_n, _function)
for _n, _function in {"mean": "mean", "std": "std", "var": "var"}.items():
    _reduction(_n, _function, floating=True)


class _Pair(tuple):  # type: ignore[type-arg]
    values = property(lambda self: self[0])
    indices = property(lambda self: self[1])


def _extreme(name: str) -> None:
    def find(self: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
        array = self._touch()
        if isinstance(dim, Tensor):
            return FUNCTIONS["maximum" if name == "max" else "minimum"](self, dim)
        if dim is None:
            return derived([self], getattr(np, name)(array), self.dtype)
        values = derived([self], getattr(np, name)(array, axis=dim, keepdims=keepdim), self.dtype)
        where = getattr(np, "arg" + name)(array, axis=dim, keepdims=keepdim)
        return _Pair((values, derived([self], where, dtype.known["int64"])))

    def place(self: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
        return derived([self], getattr(np, "arg" + name)(self._touch(), axis=dim), dtype.known["int64"])

    FUNCTIONS[name], FUNCTIONS["arg" + name] = find, place


_extreme("max")
_extreme("min")


@_method
def matmul(self: Tensor, other: Tensor, out: Any = None) -> Tensor:
    """A matrix product; on a GPU it makes cuBLAS handles."""
    where = common_device([self, other])
    array = _product(self._touch(), other._touch())
    if where.type == "cuda":
        _gpu.use(where.index)  # type: ignore[arg-type]
        _gpu.blas(where.index)  # type: ignore[arg-type]
    return derived([self, other], array, max(self.dtype, other.dtype, key=lambda d: d.itemsize))


FUNCTIONS["mm"] = FUNCTIONS["bmm"] = FUNCTIONS["mv"] = FUNCTIONS["dot"] = matmul
Tensor.__matmul__ = matmul  # type: ignore[attr-defined]


@_method
def reshape(self: Tensor, *sizes: Any) -> Tensor:
    """Another shape."""
    try:
        return derived([self], self._a.reshape(_shape(sizes)), self.dtype, view=True)
    except ValueError as error:
        raise RuntimeError(f"shape is invalid: {error}") from None


@_method
def view(self: Tensor, *sizes: Any) -> Tensor:
    """Another shape of the same memory."""
    return self.to(sizes[0]) if sizes and isinstance(sizes[0], dtype) else reshape(self, *sizes)


@_method
def flatten(self: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Fewer dimensions."""
    shape = list(self.shape) or [1]
    end = end_dim % len(shape)
    return reshape(self, *shape[:start_dim], math.prod(shape[start_dim : end + 1]), *shape[end + 1 :])


# Views that are made without asking CUDA, also of what a forked child inherited; indexing asks.
_UNASKED = {"squeeze", "unsqueeze", "transpose", "t", "permute", "expand", "expand_as", "view_as", "contiguous"}


def _viewing(name: str, call: Callable[..., Any]) -> None:
    def operate(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        array = self._a if name in _UNASKED else self._touch()
        return derived([self], call(array, *args, **kwargs), self.dtype, view=True)

    operate.__name__ = name
    FUNCTIONS[name] = operate


_viewing("squeeze", lambda a, dim=None: a.squeeze(dim) if dim is None or a.shape[dim] == 1 else a)
_viewing("unsqueeze", lambda a, dim: np.expand_dims(a, dim))
_viewing("transpose", lambda a, dim0, dim1: a.swapaxes(dim0, dim1))
_viewing("t", lambda a: a.T)
_viewing("permute", lambda a, *dims: a.transpose(_shape(dims)))
_viewing("expand", lambda a, *s: np.broadcast_to(a, tuple(a.shape[i - len(_shape(s)) + a.ndim] if n == -1 else n for i, n in enumerate(_shape(s)))))
_viewing("expand_as", lambda a, other: np.broadcast_to(a, other._a.shape))
_viewing("view_as", lambda a, other: a.reshape(other._a.shape))
_viewing("contiguous", lambda a, memory_format=None: a)
_viewing("narrow", lambda a, dim, start, length: a.take(range(start, start + length), axis=dim))
_viewing("repeat", lambda a, *s: np.tile(a, _shape(s)))
_viewing("flip", lambda a, *dims: np.flip(a, _shape(dims)))
_viewing("cumsum", lambda a, dim: np.cumsum(a, axis=dim))
_viewing("roll", lambda a, shifts, dims=None: np.roll(a, shifts, dims))
_viewing("clamp", lambda a, min=None, max=None: elementwise(lambda v: np.clip(v, _plain(min), _plain(max)), a))
_viewing("clip", lambda a, min=None, max=None: elementwise(lambda v: np.clip(v, _plain(min), _plain(max)), a))
_viewing("softmax", lambda a, dim=-1, dtype=None: _softmax(a, dim))
_viewing("log_softmax", lambda a, dim=-1, dtype=None: np.log(_softmax(a, dim)))
_viewing("index_select", lambda a, dim, index: a.take(index._a, axis=dim))
_viewing("gather", lambda a, dim, index: np.take_along_axis(a, index._a, dim))
_viewing("unfold", lambda a, *s: driver.unknown("torch.Tensor.unfold"))
_viewing("diag", lambda a: np.diag(a))
_viewing("tril", lambda a, diagonal=0: np.tril(a, diagonal))
_viewing("triu", lambda a, diagonal=0: np.triu(a, diagonal))
_viewing("masked_select", lambda a, mask: a[mask._a])
_viewing("masked_fill", lambda a, mask, value: np.where(mask._a, _plain(value), a).astype(a.dtype))
Tensor.T = Tensor.mT = property(lambda self: FUNCTIONS["t"](self))  # type: ignore[attr-defined]
Tensor.real = property(lambda self: derived([self], self._touch().real))  # type: ignore[attr-defined]


def _softmax(a: Any, dim: int) -> Any:
    if a.size > BIG:
        return np.broadcast_to(np.asarray(1 / a.shape[dim], a.dtype), a.shape)
    e = np.exp(a - a.max(axis=dim, keepdims=True))
    return e / e.sum(axis=dim, keepdims=True)


@_method
def norm(self: Tensor, p: Any = 2, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The Euclidean norm."""
    return derived([self], np.linalg.norm(np.atleast_1d(self._touch()) if dim is not None else self._touch().reshape(-1), axis=dim, keepdims=keepdim).astype(self.dtype.numpy_name), self.dtype)


@_method
def topk(self: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The k largest."""
    a = self._touch()
    order = np.argsort(-a if largest else a, axis=dim).take(range(k), axis=dim)
    return _Pair((derived([self], np.take_along_axis(a, order, dim), self.dtype), derived([self], order)))


@_method
def sort(self: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """Sorted values and their places."""
    a = self._touch()
    order = np.argsort(-a if descending else a, axis=dim)
    return _Pair((derived([self], np.take_along_axis(a, order, dim), self.dtype), derived([self], order)))


@_method
def argsort(self: Tensor, dim: int = -1, descending: bool = False) -> Tensor:
    """The places of sorted values."""
    return sort(self, dim, descending)[1]


@_method
def unique(self: Tensor, **_: Any) -> Tensor:
    """Distinct values."""
    return derived([self], np.unique(self._touch()), self.dtype)


@_method
def bincount(self: Tensor, weights: Any = None, minlength: int = 0) -> Tensor:
    """Counts."""
    return derived([self], np.bincount(self._touch(), minlength=minlength), dtype.known["int64"])


@_method
def nonzero(self: Tensor) -> Tensor:
    """Places of what is not zero."""
    return derived([self], np.argwhere(self._touch()), dtype.known["int64"])


@_method
def chunk(self: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Equal parts."""
    step = -(-self.shape[dim] // chunks)
    return split(self, step, dim)


@_method
def split(self: Tensor, size: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of a size."""
    a = self._touch()
    cuts = np.cumsum(size)[:-1] if isinstance(size, (list, tuple)) else range(size, a.shape[dim], size)
    return tuple(derived([self], part, self.dtype, view=True) for part in np.split(a, list(cuts), axis=dim))


@_method
def unbind(self: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """All slices."""
    a = np.moveaxis(self._touch(), dim, 0)
    return tuple(derived([self], a[i], self.dtype, view=True) for i in range(len(a)))


@_method
def allclose(self: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Nearly equal."""
    common_device([self, other])
    return bool(np.allclose(_shrink(self._touch()), _shrink(other._touch()), rtol, atol))


@_method
def equal(self: Tensor, other: Tensor) -> bool:
    """Equal in shape and values."""
    common_device([self, other])
    return self.shape == other.shape and bool(np.all(self._touch() == other._touch()))


@_method
def lerp(self: Tensor, end: Tensor, weight: Any) -> Tensor:
    """Between two tensors."""
    return self + (end - self) * weight


@_method
def addmm(self: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """A matrix product and a sum."""
    return self * beta + matmul(a, b) * alpha


def _cast(name: str) -> Callable[..., Any]:
    return lambda self, memory_format=None: self.to(dtype.known[name])


for _n in ("float", "double", "half", "long", "int", "short", "bool", "bfloat16"):
    setattr(Tensor, _n, _cast(ALIASES.get(_n, _n)))
Tensor.byte = _cast("uint8")  # type: ignore[attr-defined]
Tensor.type_as = lambda self, other: self.to(other.device, other.dtype)  # type: ignore[attr-defined]
Tensor.is_floating_point = lambda self: self.dtype.is_floating_point  # type: ignore[attr-defined]
Tensor.is_contiguous = lambda self, memory_format=None: True  # type: ignore[attr-defined]
Tensor.stride = lambda self, dim=None: tuple(s // self._a.itemsize for s in self._a.strides)  # type: ignore[attr-defined]
Tensor.data_pointer = Tensor.data_ptr  # type: ignore[attr-defined]
Tensor.to_dense = lambda self: self  # type: ignore[attr-defined]


def _fill(name: str, value: Callable[..., Any]) -> None:
    def change(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        _write(self, value(self, *args, **kwargs))
        return self

    change.__name__ = name
    setattr(Tensor, name, change)


def _draw(self: Tensor, call: Callable[[Any, Any], Any], generator: Any = None) -> Any:
    check_generator(generator, self.device)
    source = generator._source if generator is not None else Random.get()
    return constant(tuple(self.shape), call(source, ()), self.dtype) if self.numel() > BIG else call(source, tuple(self.shape))


_fill("zero_", lambda self: np.zeros((), self._a.dtype))
_fill("fill_", lambda self, value: np.asarray(_plain(value)))
_fill("copy_", lambda self, source, non_blocking=False: np.broadcast_to(source._touch(), self._a.shape) if source.numel() <= BIG else np.asarray(_shrink(source._touch())))
_fill("normal_", lambda self, mean=0.0, std=1.0, generator=None: _draw(self, lambda r, s: r.normal(mean, std, s), generator))
_fill("uniform_", lambda self, a=0.0, b=1.0, generator=None: _draw(self, lambda r, s: r.uniform(a, b, s), generator))
_fill("random_", lambda self, low=0, high=None, generator=None: _draw(self, lambda r, s: r.integers(low, high or (1 << 24), s), generator))
_fill("clamp_", lambda self, min=None, max=None: np.clip(self._a, min, max))
_fill("index_copy_", lambda self, dim, index, source: driver.unknown("torch.Tensor.index_copy_"))
_fill("masked_fill_", lambda self, mask, value: np.where(mask._a, value, self._a))
_fill("exponential_", lambda self, lambd=1.0: _draw(self, lambda r, s: r.exponential(1 / lambd, s)))
_fill("bernoulli_", lambda self, p=0.5: _draw(self, lambda r, s: r.random(s) < p))
_fill("relu_", lambda self: np.maximum(self._a, 0))
Tensor.squeeze_ = lambda self, *a: self._become(FUNCTIONS["squeeze"](self, *a)) or self  # type: ignore[attr-defined]
Tensor.unsqueeze_ = lambda self, d: self._become(FUNCTIONS["unsqueeze"](self, d)) or self  # type: ignore[attr-defined]

for _n, _f in FUNCTIONS.items():
    setattr(Tensor, _n, _f)
driver.by_name("torch", FUNCTIONS)
for _n in ("add", "sub", "mul", "div", "pow", "exp", "sqrt", "abs", "neg", "sigmoid", "tanh", "lerp", "square"):
    setattr(Tensor, _n + "_", _inplace(FUNCTIONS[_n]))
Tensor.addcmul_ = lambda self, a, b, value=1: self.add_(a * b * value)  # type: ignore[attr-defined]
_TENSOR_NAMES: frozenset[str] = frozenset()


def check_generator(generator: Any, where: device) -> None:
    """A generator draws on its own device only."""
    if generator is not None and generator.device.type != where.type:
        raise RuntimeError(
            f"Expected a '{where.type}' device type for generator but found '{generator.device.type}'"
        )


# ---------------------------------------------------------------- factories


def _place(kwargs: dict[str, Any], kind: Any = None) -> tuple[device, dtype]:
    kwargs.pop("out", None)
    where = kwargs.get("device")
    found = kwargs.get("dtype") or kind or Default.dtype
    return resolve(where), found


_ALLOWED = frozenset("device dtype requires_grad generator pin_memory layout out memory_format names".split())


def _factory(name: str, value: Callable[[tuple[int, ...], dtype, Any], Any], kind: Any = None) -> Callable[..., Tensor]:
    def build(*sizes: Any, **kwargs: Any) -> Tensor:
        if "size" in kwargs:
            sizes = (kwargs.pop("size"),)
        if not _ALLOWED.issuperset(kwargs):
            driver.unknown(f"torch.{name}({', '.join(sorted(set(kwargs) - _ALLOWED))}=)")
        where, found = _place(kwargs, kind)
        generator = kwargs.get("generator")
        check_generator(generator, where)
        source = generator._source if generator is not None else None
        made = make(value(_shape(sizes), found, source), where, found, kwargs.get("requires_grad", False))
        return made.pin_memory() if kwargs.get("pin_memory") else made

    build.__name__ = build.__qualname__ = name
    return build


def _random(call: Callable[[Any, tuple[int, ...]], Any]) -> Callable[..., Any]:
    def value(shape: tuple[int, ...], kind: dtype, source: Any) -> Any:
        drawn = call(source or Random.get(), () if math.prod(shape) > BIG else shape)
        return np.broadcast_to(np.asarray(drawn, numpy_dtype(kind)), shape)if math.prod(shape) > BIG else np.asarray(drawn, numpy_dtype(kind))

    return value


ones = _factory("ones", lambda s, k, _: constant(s, 1, k))
zeros = _factory("zeros", lambda s, k, _: constant(s, 0, k))
empty = _factory("empty", lambda s, k, _: constant(s, 0, k))
rand = _factory("rand", _random(lambda r, s: r.random(s)))
randn = _factory("randn", _random(lambda r, s: r.standard_normal(s)))


def randint(low: int, high: Any = None, size: Any = None, **kwargs: Any) -> Tensor:
    """Random integers."""
    if size is None:
        low, high, size = 0, low, high
    return _factory("randint", _random(lambda r, s: r.integers(low, high, s)), dtype.known["int64"])(tuple(size), **kwargs)


def randperm(n: int, **kwargs: Any) -> Tensor:
    """A random order."""
    return _factory("randperm", lambda s, k, r: (r or Random.get()).permutation(n), dtype.known["int64"])((n,), **kwargs)


def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, **kwargs: Any) -> Tensor:
    """Normal numbers."""
    shape = size if size is not None else (mean if isinstance(mean, Tensor) else std).shape
    return randn(tuple(shape), **kwargs) * std + mean


def full(size: Any, fill_value: Any, **kwargs: Any) -> Tensor:
    """One value everywhere."""
    guess = {bool: "bool", int: "int64"}.get(type(fill_value))
    kind = dtype.known[guess] if guess else None
    return _factory("full", lambda s, k, _: constant(s, fill_value, k), kind)(tuple(size) if not isinstance(size, int) else (size,), **kwargs)


def arange(*args: Any, **kwargs: Any) -> Tensor:
    """A range."""
    kind = dtype.known["int64"] if all(isinstance(a, int) for a in args) else None
    return _factory("arange", lambda s, k, _: np.arange(*args).astype(k.numpy_name), kind)((), **kwargs)


def linspace(start: float, end: float, steps: int, **kwargs: Any) -> Tensor:
    """Evenly spaced numbers."""
    return _factory("linspace", lambda s, k, _: np.linspace(start, end, steps).astype(k.numpy_name))((), **kwargs)


def eye(n: int, m: int | None = None, **kwargs: Any) -> Tensor:
    """The identity."""
    return _factory("eye", lambda s, k, _: np.eye(n, m, dtype=k.numpy_name))((), **kwargs)


def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """A tensor from Python data."""
    if isinstance(data, Tensor):
        array = data._touch()
    elif type(data).__module__ == "numpy":
        array = np.array(data)
    else:
        array = np.asarray(_nested(data))
        if array.dtype.kind == "f":
            array = array.astype(Default.dtype.numpy_name)
    kind = dtype or kind_of(array)
    made = make(np.array(array, numpy_dtype(kind)) if array.size <= BIG else array, resolve(device), kind, requires_grad)
    return made.pin_memory() if pin_memory else made


def _nested(data: Any) -> Any:
    if isinstance(data, Tensor):
        return data._touch()
    if isinstance(data, (list, tuple)):
        return [_nested(d) for d in data]
    return data


def from_numpy(array: Any) -> Tensor:
    """A tensor over an array's memory."""
    if type(array).__module__ != "numpy":
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    return make(array, CPU, kind_of(array))


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor that shares memory where it can."""
    if isinstance(data, Tensor):
        return data.to(**{k: v for k, v in (("dtype", dtype), ("device", device)) if v is not None})
    if hasattr(data, "__cuda_array_interface__"):
        return make(data.__cuda_array_interface__["paper"], resolve(device or "cuda"), dtype or float32)
    return tensor(data, dtype=dtype, device=device)


def _like(factory: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def build(source: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return factory(tuple(source.shape), *args, **{"dtype": source.dtype, "device": source.device, **kwargs})

    return build


def stack(tensors: Any, dim: int = 0, *, out: Any = None) -> Tensor:
    """Tensors side by side in a new dimension."""
    inputs = list(tensors)
    arrays = [t._touch() for t in inputs]
    if sum(a.size for a in arrays) > BIG:
        shape = list(arrays[0].shape)
        shape.insert(dim % (len(shape) + 1), len(arrays))
        return derived(inputs, np.broadcast_to(_shrink(arrays[0]).reshape(-1)[0] if arrays[0].size <= BIG else _shrink(arrays[0]), shape), inputs[0].dtype)
    try:
        return derived(inputs, np.stack(arrays, dim), inputs[0].dtype)
    except ValueError:
        raise RuntimeError("stack expects each tensor to be equal size") from None


def cat(tensors: Any, dim: int = 0, *, out: Any = None, axis: Any = None) -> Tensor:
    """Tensors one after the other."""
    inputs = list(tensors)
    arrays = [t._touch() for t in inputs]
    if sum(a.size for a in arrays) > BIG:
        shape = list(arrays[0].shape)
        shape[dim] = sum(a.shape[dim] for a in arrays)
        return derived(inputs, np.broadcast_to(np.asarray(arrays[0].flat[0]), shape), inputs[0].dtype)
    return derived(inputs, np.concatenate(arrays, dim if axis is None else axis), inputs[0].dtype)


def where(condition: Tensor, x: Any = None, y: Any = None) -> Any:
    """One or the other."""
    if x is None:
        return tuple(derived([condition], a) for a in np.nonzero(condition._touch()))
    inputs = [t for t in (condition, x, y) if isinstance(t, Tensor)]
    return derived(inputs, elementwise(np.where, condition._touch(), _plain(x), _plain(y)))


def einsum(equation: str, *tensors: Tensor) -> Tensor:
    """Einstein's sum."""
    return derived(tensors, np.einsum(equation, *(t._touch() for t in tensors)), tensors[0].dtype)


def outer(a: Tensor, b: Tensor) -> Tensor:
    """The outer product."""
    return derived([a, b], np.outer(a._touch(), b._touch()), a.dtype)


def cdist(a: Tensor, b: Tensor, p: float = 2.0) -> Tensor:
    """Distances."""
    d = a._touch()[..., :, None, :] - b._touch()[..., None, :, :]
    return derived([a, b], np.sqrt((d * d).sum(-1)), a.dtype)


FACTORIES: dict[str, Any] = {
    "ones": ones, "zeros": zeros, "empty": empty, "rand": rand, "randn": randn, "randint": randint, "normal": normal,
    "randperm": randperm, "full": full, "arange": arange, "linspace": linspace, "eye": eye, "tensor": tensor,
    "from_numpy": from_numpy, "as_tensor": as_tensor, "asarray": as_tensor, "stack": stack, "cat": cat,
    "concat": cat, "where": where, "einsum": einsum, "outer": outer, "cdist": cdist,
    "ones_like": _like(ones), "zeros_like": _like(zeros), "empty_like": _like(empty), "rand_like": _like(rand),
    "randn_like": _like(randn), "full_like": _like(full),
}
driver.by_name("torch", FACTORIES)
