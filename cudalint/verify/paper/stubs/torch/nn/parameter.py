"""torch.nn.parameter."""

from torch.nn import Parameter  # noqa: F401
