"""Fixtures as pytest items, in a pytest of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="programs are run on Linux")


def fixture(folder: Path, name: str, header: str, body: str) -> None:
    (folder / f"{name}.py").write_text(f"# /// script\n# [tool.cudalint]\n# {header}\n# ///\n{body}\n")


def started(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "cudalint.verify.pytest",
        "-p",
        "no:cacheprovider",
        "-rs",
        *options,
    ]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def test_a_fixture_passes_fails_or_is_skipped_and_is_never_imported(tmp_path: Path) -> None:
    fixture(tmp_path, "fine", 'outcome = "ok"', "import torch\nassert __name__ == '__main__'\ntorch.ones(1).cuda()")
    fixture(tmp_path, "test_wrong", 'outcome = "ok"', "import torch\nprint('printed')\ntorch.zeros(1) / no_such_name")
    fixture(tmp_path, "far", 'outcome = "ok"\n# gpus = 4', "")
    (tmp_path / "helper.py").write_text("raise SystemExit(1)\n")
    done = started(tmp_path, "--cudalint-paper")
    assert "1 failed, 1 passed, 1 skipped" in done.stdout
    assert "the header says ok, observed crash (exit 1): NameError" in done.stdout
    assert "printed" in done.stdout
    assert "needs 4 GPUs, there are 2" in done.stdout


def test_without_a_gpu_nothing_passes(tmp_path: Path) -> None:
    """Where this runs on a machine with a GPU, the fixture can run and does."""
    from cudalint.verify import gpus

    fixture(tmp_path, "fine", 'outcome = "ok"', "")
    done = started(tmp_path, "fine.py")
    if gpus.discover().devices:
        assert "1 passed" in done.stdout
    else:
        assert "1 failed" in done.stdout
        assert "no GPU was found: nothing was verified" in done.stdout
