"""The command line called in this process, with streams and surroundings of its own: most tests need no fresh one."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, NoReturn

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


def call_in_child(
    arguments: Sequence[str], cwd: Path, environment: Mapping[str, str], stdin: str | None = None, limit: float = 120
) -> subprocess.CompletedProcess[str]:
    """The same by a process of its own, forked from this one: its descriptors are its own, its imports are made."""
    with contextlib.ExitStack() as opened:
        given, out, err = (opened.enter_context(tempfile.TemporaryFile()) for _ in range(3))
        given.write((stdin or "").encode())
        given.seek(0)
        with warnings.catch_warnings():
            # Threads of pytest-xdist are not there in the child, which asks nothing of them.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            _be_the_command_line(arguments, cwd, environment, (given, out, err))
        guard = threading.Timer(limit, os.kill, (pid, signal.SIGKILL))
        guard.start()
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        guard.cancel()
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode())
    return subprocess.CompletedProcess(list(arguments), code, *texts)


def _be_the_command_line(
    arguments: Sequence[str], cwd: Path, environment: Mapping[str, str], streams: Sequence[BinaryIO]
) -> NoReturn:
    code = 70
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream.fileno(), number)
        sys.stdin, sys.stdout, sys.stderr = (
            os.fdopen(number, mode, encoding="utf-8", closefd=False) for number, mode in enumerate("rww")
        )
        os.chdir(cwd)
        for name in os.environ.keys() - environment.keys():
            del os.environ[name]
        os.environ.update(environment)
        code = int(main(arguments))
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)
