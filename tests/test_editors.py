"""The extension for Visual Studio Code, as far as Node alone can test it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

EXTENSION = Path(__file__).parent.parent / "docs" / "editors" / "vscode"


def test_the_extension_passes_its_tests() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed")
    done = subprocess.run(
        [node, "--test", *map(str, sorted((EXTENSION / "test").glob("*.test.js")))],
        cwd=EXTENSION,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "fail 0" in done.stdout
