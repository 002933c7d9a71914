"""What the programs of a campaign share and do without, so that hundreds of them are done sooner.

Nothing of it has to do with CUDA or with processes. Measured with torch 2.11 on 16 cores beside an H100:

- Images are often built, and run, with PYTHONDONTWRITEBYTECODE. There each process compiles torch anew, and
  ``import torch`` takes 4.3 s; with what others have compiled, 1.7 s.
- numpy's OpenBLAS starts a thread for each core when it is imported, and they spin for a while: that is 2.0 of the 3.4
  seconds of processor time that ``import torch`` takes then.
- The driver makes contexts one after the other, for all GPUs of a machine: on two H100 (driver 580) 4.7 in a second,
  whether 4 or 16 processes ask, and 8.8 where a context gets one hardware queue instead of eight.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path


def keeps_nothing() -> bool:
    """Whether this Python is told to keep no compiled modules, so that a campaign needs a folder for them."""
    return sys.dont_write_bytecode


def economical(folder: Path | None) -> Mapping[str, str]:
    """The variables that all programs of a campaign are given; compiled modules are kept in ``folder``, if anywhere."""
    spared = {"OPENBLAS_NUM_THREADS": "1", "CUDA_DEVICE_MAX_CONNECTIONS": "1"}
    if folder is None:
        return spared
    return {**spared, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder)}
