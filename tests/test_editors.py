"""The extension for Visual Studio Code, as far as Node alone can test it; and what JupyterLab is told."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from conftest import environment

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

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


def test_jupyterlab_finds_the_server_and_runs_nothing_of_the_folder(tmp_path: Path) -> None:
    project = tomllib.loads((EXTENSION.parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (named,) = project["entry-points"]["jupyter_lsp_spec_v1"].items()
    servers = EntryPoint(*named, group="jupyter_lsp_spec_v1").load()(object())
    server = servers["cudalint"]
    assert server["version"] == 2
    assert {"text/x-ipython", "text/x-python"} <= set(server["mime_types"])
    for name in ("cudalint", "types", "runpy", "contextlib", "click"):
        (tmp_path / f"{name}.py").write_text("open('ran', 'w')\n")
    command = [*server["argv"], "--help"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert "Serve an editor by the Language Server Protocol" in done.stdout, done.stderr
    assert not (tmp_path / "ran").exists()
