"""pathos.helpers."""

import multiprocess as mp

__all__ = ["mp"]
