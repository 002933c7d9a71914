"""torch.nn: modules with parameters that move to devices."""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import Any, Callable, Iterator

import paper_driver as driver

import torch
from torch import _gpu, _tensor
from torch._tensor import Tensor
from torch.multiprocessing.reductions import ForkingPickler, reduce_tensor


class Parameter(Tensor):
    """A tensor that is trained."""

    __module__ = "torch.nn.parameter"

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> "Parameter":
        made = (torch.empty(0) if data is None else data).detach()
        made.__class__ = cls
        made._requires = requires_grad
        return made  # type: ignore[return-value]

    def __repr__(self) -> str:
        return "Parameter containing:\n" + Tensor.__repr__(self)


ForkingPickler.register(Parameter, reduce_tensor)


class Module:
    """The base of all networks."""

    training = True

    def __init__(self, *_: Any, **__: Any) -> None:
        for name in ("_parameters", "_buffers", "_modules"):
            self.__dict__.setdefault(name, {})

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        if isinstance(value, (Parameter, Module)) and "_modules" not in own:
            raise AttributeError("cannot assign module before Module.__init__() call")
        for kind in ("_parameters", "_buffers", "_modules"):
            if name in own.get(kind, {}):
                del own[kind][name]
                if kind == "_buffers" and isinstance(value, Tensor):
                    own[kind][name] = value
                    return
        if isinstance(value, Parameter):
            own["_parameters"][name] = value
        elif isinstance(value, Module):
            own["_modules"][name] = value
        else:
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        for kind in ("_parameters", "_buffers", "_modules"):
            found = self.__dict__.get(kind, {})
            if name in found:
                return found[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name: str) -> None:
        for kind in ("_parameters", "_buffers", "_modules"):
            if name in self.__dict__.get(kind, {}):
                del self.__dict__[kind][name]
                return
        object.__delattr__(self, name)

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """A tensor that moves along and is not trained."""
        self._buffers[name] = tensor

    def register_parameter(self, name: str, parameter: Any) -> None:
        """A parameter by name."""
        self._parameters[name] = parameter

    def add_module(self, name: str, module: Any) -> None:
        """A child by name."""
        self._modules[name] = module

    register_module = add_module

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """To be written by subclasses."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def children(self) -> Iterator["Module"]:
        """Direct children."""
        return iter([m for m in self._modules.values() if m is not None])

    def named_children(self) -> Iterator[tuple[str, "Module"]]:
        """Direct children and names."""
        return iter([(n, m) for n, m in self._modules.items() if m is not None])

    def named_modules(self, memo: Any = None, prefix: str = "") -> Iterator[tuple[str, "Module"]]:
        """This and all below."""
        yield prefix, self
        for name, child in self.named_children():
            yield from child.named_modules(None, f"{prefix}.{name}" if prefix else name)

    def modules(self) -> Iterator["Module"]:
        """This and all below."""
        return (module for _, module in self.named_modules())

    def _named(self, kind: str) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        for prefix, module in self.named_modules():
            for name, value in module.__dict__.get(kind, {}).items():
                if value is not None and id(value) not in seen:
                    seen.add(id(value))
                    yield (f"{prefix}.{name}" if prefix else name), value

    def named_parameters(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Parameter]]:
        """All parameters and names."""
        return self._named("_parameters")

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """All parameters."""
        return (value for _, value in self._named("_parameters"))

    def named_buffers(self, *_: Any) -> Iterator[tuple[str, Tensor]]:
        """All buffers and names."""
        return self._named("_buffers")

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """All buffers."""
        return (value for _, value in self._named("_buffers"))

    def _apply(self, move: Callable[[Tensor], Tensor]) -> "Module":
        for module in self.modules():
            for kind in ("_parameters", "_buffers"):
                for value in module.__dict__.get(kind, {}).values():
                    if value is not None:
                        with _tensor.no_grad():
                            value._become(move(value))
                            if value.grad is not None:
                                value.grad = move(value.grad)
        return self

    def to(self, *args: Any, **kwargs: Any) -> "Module":
        """Move every parameter, in place; nothing happens without parameters."""
        kinds = [a for a in (*args, *kwargs.values()) if isinstance(a, torch.dtype)]
        rest = [a for a in args if not isinstance(a, torch.dtype)]
        options = {k: v for k, v in kwargs.items() if k not in ("dtype", "non_blocking", "memory_format")}

        def move(value: Tensor) -> Tensor:
            moved = value.detach().to(*rest, **options) if rest or options else value.detach()
            return moved.to(kinds[0]) if kinds and value.dtype.is_floating_point else moved

        return self._apply(move)

    def cuda(self, device: Any = None) -> "Module":
        """Move every parameter to a GPU."""
        return self._apply(lambda value: value.detach().cuda(device))

    def cpu(self) -> "Module":
        """Move every parameter to host memory."""
        return self._apply(lambda value: value.detach().cpu())

    def half(self) -> "Module":
        """Smaller floats."""
        return self.to(_tensor.dtype.known["float16"])

    def bfloat16(self) -> "Module":
        """Smaller floats."""
        return self.to(_tensor.dtype.known["bfloat16"])

    def float(self) -> "Module":
        """Usual floats."""
        return self.to(_tensor.dtype.known["float32"])

    def double(self) -> "Module":
        """Larger floats."""
        return self.to(_tensor.dtype.known["float64"])

    def share_memory(self) -> "Module":
        """Share every host parameter."""
        for value in (*self.parameters(), *self.buffers()):
            value.share_memory_()
        return self

    def train(self, mode: bool = True) -> "Module":
        """Training mode."""
        for module in self.modules():
            object.__setattr__(module, "training", mode)
        return self

    def eval(self) -> "Module":
        """Not training mode."""
        return self.train(False)

    def requires_grad_(self, mode: bool = True) -> "Module":
        """Train or freeze."""
        for value in self.parameters():
            value.requires_grad_(mode)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget gradients."""
        for value in self.parameters():
            value.grad = None

    def apply(self, function: Callable[["Module"], None]) -> "Module":
        """Visit all modules."""
        for module in list(self.modules()):
            function(module)
        return self

    def state_dict(self, *_: Any, **__: Any) -> "OrderedDict[str, Tensor]":
        """All parameters and buffers by name."""
        return OrderedDict((n, v.detach()) for kind in ("_parameters", "_buffers") for n, v in self._named(kind))

    def load_state_dict(self, state: Any, strict: bool = True, assign: bool = False) -> str:
        """Take values by name."""
        own = dict([*self._named("_parameters"), *self._named("_buffers")])
        if strict and set(own) != set(state):
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}")
        for name, value in state.items():
            if name in own:
                with _tensor.no_grad():
                    own[name]._become(value.detach().to(own[name].device).clone())
        return "<All keys matched successfully>"

    def compile(self, *_: Any, **__: Any) -> None:
        """As torch.compile."""
        torch.compile(self)

    def extra_repr(self) -> str:
        """What repr shows inside the brackets."""
        return ""

    def __repr__(self) -> str:
        inner = ", ".join(f"({n}): {m!r}" for n, m in self.named_children())
        return f"{type(self).__name__}({self.extra_repr()}{inner})"

    def register_forward_hook(self, *_: Any, **__: Any) -> Any:
        """Not modelled."""
        driver.unknown("torch.nn.Module.register_forward_hook")


def _weights(*shape: int, device: Any = None, dtype: Any = None) -> Parameter:
    return Parameter(torch.rand(*shape, device=device, dtype=dtype) * 0.2 - 0.1)


class Linear(Module):
    """A linear layer."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = _weights(out_features, in_features, device=device, dtype=dtype)
        if bias:
            self.bias = _weights(out_features, device=device, dtype=dtype)
        else:
            self.bias = None

    def forward(self, x: Tensor) -> Tensor:
        """x W^T + b."""
        return torch.nn.functional.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Bilinear(Module):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        driver.unknown("torch.nn.Bilinear")


class Sequential(Module):
    """Modules one after the other."""

    def __init__(self, *modules: Any) -> None:
        super().__init__()
        pairs = modules[0].items() if len(modules) == 1 and isinstance(modules[0], dict) else enumerate(modules)
        for name, module in pairs:
            self.add_module(str(name), module)

    def forward(self, x: Any) -> Any:
        """Through all."""
        for module in self._modules.values():
            x = module(x)
        return x

    def __getitem__(self, index: int) -> Module:
        return list(self._modules.values())[index]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(list(self._modules.values()))

    def append(self, module: Module) -> "Sequential":
        """One more."""
        self.add_module(str(len(self)), module)
        return self


class ModuleList(Sequential):
    """A list of modules."""

    def __init__(self, modules: Any = ()) -> None:
        super().__init__(*modules)


class ModuleDict(Module):
    """Modules by name."""

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        for name, module in (modules or {}).items():
            self.add_module(name, module)

    def __getitem__(self, name: str) -> Module:
        return self._modules[name]

    def items(self) -> Any:
        """Names and modules."""
        return self._modules.items()


def _activation(name: str, call: Callable[[Tensor], Tensor]) -> type:
    def forward(self: Any, x: Tensor) -> Tensor:
        return call(x)

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        Module.__init__(self)

    return type(name, (Module,), {"__init__": init, "forward": forward, "__module__": __name__})


Identity = _activation("Identity", lambda x: x)
ReLU = _activation("ReLU", lambda x: x.relu())
Tanh = _activation("Tanh", lambda x: x.tanh())
Sigmoid = _activation("Sigmoid", lambda x: x.sigmoid())
GELU = LeakyReLU = SiLU = ELU = ReLU6 = ReLU
Dropout = _activation("Dropout", lambda x: x)
Dropout2d = Dropout1d = Dropout
Softmax = _activation("Softmax", lambda x: x.softmax(-1))
LogSoftmax = _activation("LogSoftmax", lambda x: x.log_softmax(-1))
Flatten = _activation("Flatten", lambda x: x.flatten(1))


class _Shaped(Module):
    """A layer whose result is only a shape with plausible values: one parameter, mixed in."""

    def _fill(self, x: Tensor, shape: tuple[int, ...]) -> Tensor:
        value = x.mean() if x.dtype.is_floating_point else x.float().mean()
        if x.is_cuda:
            _gpu.blas(x.device.index)  # type: ignore[arg-type]
        return torch.zeros(*shape, device=x.device) + value * self.weight.mean()


class Conv2d(_Shaped):
    """A convolution; shapes are right, values are not."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, bias: bool = True, device: Any = None, **_: Any) -> None:
        super().__init__()
        self.k = kernel_size if isinstance(kernel_size, int) else kernel_size[0]
        self.s = stride if isinstance(stride, int) else stride[0]
        self.p = padding if isinstance(padding, int) else self.k // 2
        self.out_channels = out_channels
        self.weight = _weights(out_channels, in_channels, self.k, self.k, device=device)
        if bias:
            self.bias = _weights(out_channels, device=device)

    def forward(self, x: Tensor) -> Tensor:
        """A convolved shape."""
        space = [(n + 2 * self.p - self.k) // self.s + 1 for n in x.shape[-2:]]
        return self._fill(x, (*x.shape[:-3], self.out_channels, *space))


class _Pool2d(Module):
    def __init__(self, kernel_size: Any, stride: Any = None, padding: int = 0, **_: Any) -> None:
        super().__init__()
        self.k = kernel_size if isinstance(kernel_size, int) else kernel_size[0]
        self.s, self.p = stride or self.k, padding

    def forward(self, x: Tensor) -> Tensor:
        """A pooled shape."""
        space = [(n + 2 * self.p - self.k) // self.s + 1 for n in x.shape[-2:]]
        return torch.zeros(*x.shape[:-2], *space, device=x.device) + x.mean()


class MaxPool2d(_Pool2d):
    """The largest of each window; the shape is right."""


class AvgPool2d(_Pool2d):
    """The mean of each window; the shape is right."""


class AdaptiveAvgPool2d(Module):
    """A fixed size; the shape is right."""

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.size = (output_size, output_size) if isinstance(output_size, int) else tuple(output_size)

    def forward(self, x: Tensor) -> Tensor:
        """A pooled shape."""
        return torch.zeros(*x.shape[:-2], *self.size, device=x.device) + x.mean()


class _Norm(Module):
    def __init__(self, features: Any, *_: Any, device: Any = None, **__: Any) -> None:
        super().__init__()
        count = features if isinstance(features, int) else math.prod(features)
        self.weight, self.bias = Parameter(torch.ones(count, device=device)), Parameter(torch.zeros(count, device=device))

    def forward(self, x: Tensor) -> Tensor:
        """As it is, with the parameters mixed in."""
        return x * self.weight.mean() + self.bias.mean()


class LayerNorm(_Norm):
    """Normalised by layer."""


class BatchNorm1d(_Norm):
    """Normalised by batch."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.register_buffer("running_mean", torch.zeros(self.weight.shape[0]))


class BatchNorm2d(BatchNorm1d):
    """Normalised by batch."""


class Embedding(Module):
    """Rows of a table."""

    def __init__(self, num_embeddings: int, embedding_dim: int, device: Any = None, **_: Any) -> None:
        super().__init__()
        self.weight = _weights(num_embeddings, embedding_dim, device=device)

    def forward(self, x: Tensor) -> Tensor:
        """The rows."""
        return self.weight[x]


class _Loss(Module):
    def __init__(self, *_: Any, reduction: str = "mean", **__: Any) -> None:
        super().__init__()
        self.reduction = reduction


class MSELoss(_Loss):
    """Mean squared error."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.nn.functional.mse_loss(x, y)


class L1Loss(_Loss):
    """Mean absolute error."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return (x - y).abs().mean()


class CrossEntropyLoss(_Loss):
    """Cross entropy."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.nn.functional.cross_entropy(x, y)


class NLLLoss(CrossEntropyLoss):
    """Negative log likelihood."""


class BCELoss(MSELoss):
    """Binary cross entropy, a stand-in."""


class BCEWithLogitsLoss(MSELoss):
    """Binary cross entropy, a stand-in."""


class DataParallel(Module):
    """One module on all GPUs of this process: initialises CUDA when made."""

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        _gpu.lazy_init()
        super().__init__()
        self.module = module
        ids = device_ids if device_ids is not None else list(range(len(driver.visible())))
        self.device_ids = [d if isinstance(d, int) else torch.device(d).index for d in ids]
        for index in self.device_ids:
            _gpu.use(index)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Through the module."""
        moved = [a.to(f"cuda:{self.device_ids[0]}") if isinstance(a, Tensor) else a for a in args]
        return self.module(*moved, **kwargs)


__getattr__ = driver.lazy("torch.nn", "functional parallel utils init modules parameter")
