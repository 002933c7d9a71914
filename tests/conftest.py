"""What several test modules need: running cudalint as users do, and findings made by hand."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from command_line import call, call_in_child
from sampling import LEFT_OUT, split

from cudalint.finding import Applicability, Finding, Fix, Position, Severity, Span, Step, StepKind

pytest_plugins = ["paper.plugin"]

# A forked pool whose parent asked for CUDA: the shortest program with a finding (CUD101 at 12:9).
PINNED = """\
import torch
from torch.utils.data import DataLoader, TensorDataset


def main():
    data = TensorDataset(torch.ones(8, 2, device="cuda"))
    for (batch,) in DataLoader(data, batch_size=4, pin_memory=True):
        print(batch.sum())


if __name__ == "__main__":
    main()
"""
FORKED = """\
import multiprocessing

import torch


def work(n):
    return torch.ones(n, device="cuda").sum().item()


if __name__ == "__main__":
    torch.zeros(1, device="cuda")
    print(multiprocessing.get_context("fork").Pool(1).map(work, [1, 2, 3]))
"""

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def pytest_configure(config: pytest.Config) -> None:
    """Make the surroundings of workers, and of what they start, the same wherever the tests run."""
    config.addinivalue_line("markers", "long: takes many seconds, and is started before other tests")
    # A shell has what it runs in the background ignore interruptions; tests interrupt what they start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # What a test sees must not come from another; the tests of the cache switch it on for themselves.
    os.environ["CUDALINT_NO_CACHE"] = "1"
    # What one interpreter compiled the thousands that follow need not; where it may not be written, none tries to.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_collection_finish() -> None:
    """Keep the garbage collector from walking what lives as long as the session: thousands of tests, and modules."""
    gc.collect()
    gc.freeze()
    # Little of what a test makes refers to itself, and looking for cycles each 700 objects is a tenth of all work.
    gc.set_threshold(50_000, 10, 10)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take a sample of large tables; start what takes longest first, so that in the end no worker waits for another."""
    items[:], left = split(items, config.args)
    config.stash[LEFT_OUT] = left
    if left:
        config.hook.pytest_deselected(items=left)
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.fixture
def forked() -> str:
    """The text of a program with one CUD101."""
    return FORKED


def environment() -> dict[str, str]:
    """The environment of a command line that tests start: the same whatever the terminal is."""
    return {key: value for key, value in os.environ.items() if key != "NO_COLOR"} | {"PYTHONIOENCODING": "utf-8"}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Call the command line in this process, in the temporary directory."""

    def start(*arguments: str, cwd: Path | None = None, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        return call(arguments, cwd or tmp_path, environment(), stdin)

    return start


@pytest.fixture
def child(tmp_path: Path) -> Run:
    """Run the command line in a process of its own that has imported everything: where only its streams matter."""

    def start(
        *arguments: str, cwd: Path | None = None, stdin: str | None = None, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return call_in_child(arguments, cwd or tmp_path, environment() | dict(env or {}), stdin)

    return start


@pytest.fixture
def process(tmp_path: Path) -> Run:
    """Run the command line in a fresh process, in the temporary directory: where it is a fresh start that matters."""

    def start(
        *arguments: str, cwd: Path | None = None, stdin: str | None = None, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "cudalint", *arguments],
            cwd=cwd or tmp_path,
            input=stdin,
            capture_output=True,
            text=True,
            encoding="utf-8",
            env=environment() | dict(env or {}),
            timeout=120,
            check=False,
        )

    return start


@pytest.fixture
def finding() -> Finding:
    """A finding with everything a finding can have, in ``/project/train.py`` and ``/project/lib.py``."""

    def span(name: str, row: int, first: int, last: int) -> Span:
        return Span(f"/project/{name}.py", Position(row, first), Position(row, last))

    place = span("train", 12, 10, 17)
    return Finding(
        code="CUD101",
        name="cuda-in-forked-worker",
        severity=Severity.ERROR,
        message="`work` uses CUDA in a worker that was forked after its parent initialised CUDA",
        span=place,
        trace=(
            Step(span("train", 11, 5, 34), "initialises CUDA", StepKind.CAUSE, "main"),
            Step(place, "forks two workers", StepKind.LAUNCH, "main"),
            Step(span("lib", 2, 12, 40), "uses CUDA", StepKind.EFFECT, "worker"),
        ),
        outcome="crash",
        condition="on Linux before Python 3.14",
        fix=Fix(Applicability.UNSAFE, "start the workers by spawn", (), "it may print its header twice"),
        noqa_rows=(12, 14),
    )
