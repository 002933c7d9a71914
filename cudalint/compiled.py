"""Whether this cudalint is of a compiled wheel: the same source, of which mypyc made a library for one Python."""

from __future__ import annotations

import importlib.util
from importlib.machinery import EXTENSION_SUFFIXES


def is_compiled() -> bool:
    """Whether the machine would run as a library; it is not imported."""
    spec = importlib.util.find_spec("cudalint.machine.state")
    return spec is not None and spec.origin is not None and spec.origin.endswith(tuple(EXTENSION_SUFFIXES))
