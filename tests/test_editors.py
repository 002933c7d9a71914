"""The extension for Visual Studio Code, as far as Node alone can test it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
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


def test_an_interpreter_runs_the_server_and_nothing_of_the_folder(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed")
    for name in ("cudalint", "types", "runpy", "contextlib", "click"):
        (tmp_path / f"{name}.py").write_text("open('ran', 'w')\n")
    asked = "console.log(JSON.stringify(require('./src/command.js').serverCommand(JSON.parse(process.argv[1]), '/')))"
    settings = json.dumps({"path": "", "interpreter": sys.executable, "arguments": ["--help"]})
    told = subprocess.run([node, "-e", asked, settings], cwd=EXTENSION, capture_output=True, text=True, check=True)
    server = json.loads(told.stdout)
    done = subprocess.run(
        [server["command"], *server["args"]], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert "Serve an editor by the Language Server Protocol" in done.stdout, done.stderr
    assert not (tmp_path / "ran").exists()
