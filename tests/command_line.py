"""The command line called in this process, with streams and surroundings of its own: most tests need no fresh one."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from cudalint.hosts.cli import main


def call(
    arguments: Sequence[str],
    cwd: Path,
    environment: Mapping[str, str],
    stdin: str | None = None,
    program: Callable[[Sequence[str]], int] = main,
) -> subprocess.CompletedProcess[str]:
    """What cudalint, or another program, with these arguments would say in a process of its own, and its exit code."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    given = io.TextIOWrapper(io.BytesIO((stdin or "").encode()), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(cwd)
        for name in os.environ.keys() - environment.keys():
            patched.delenv(name)
        for name, value in environment.items():
            patched.setenv(name, value)
        patched.setattr(sys, "stdin", given)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = program(arguments)
    texts = [stream.detach().getvalue().decode() for stream in (out, err)]  # type: ignore[attr-defined]
    return subprocess.CompletedProcess(list(arguments), int(code), *texts)
