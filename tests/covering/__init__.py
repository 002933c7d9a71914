"""`python -m coverage run -m pytest -p covering`: what tests reach of cudalint, in all processes that they start."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Start Python by way of `python`, which lets coverage into processes that ask for no `site`.

    Before conftest.py: what is imported there remembers which Python it starts.
    """
    if "COVERED_PYTHON" not in os.environ:
        os.environ["COVERED_PYTHON"] = sys.executable
    sys.executable = str(Path(__file__).with_name("python"))
