"""torch on paper: what programs about CUDA and processes use, behaving as measured on hardware."""

from __future__ import annotations

import paper_driver as driver

from torch import _base, _tensor

globals().update({name: value for name, value in vars(_base).items() if not name.startswith("__")})
globals().update(_tensor.dtype.known)
globals().update({name: _tensor.dtype.known[real] for name, real in _tensor.ALIASES.items()})
globals().update(_tensor.FUNCTIONS)
globals().update(_tensor.FACTORIES)
__version__ = _base.__version__

import torch.multiprocessing as multiprocessing  # noqa: E402  its reductions are part of importing torch

_SUBMODULES = "cuda nn optim utils distributed profiler amp accelerator autograd export testing"
__getattr__ = driver.lazy("torch", _SUBMODULES)
