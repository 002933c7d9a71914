"""Editors: the extension for Visual Studio Code as far as Node tests it, JupyterLab, and Neovim where it is there."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import tomli
from conftest import environment

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
    project = tomli.loads((EXTENSION.parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
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


# Waits for findings, says what is shown, and does so again after a change of another file that is not saved.
_IN_NEOVIM = """
local function shown()
  local found = {}
  for _, one in ipairs(vim.diagnostic.get()) do
    table.insert(found, { vim.fs.basename(vim.api.nvim_buf_get_name(one.bufnr)), one.lnum + 1, one.code })
  end
  return found
end
vim.api.nvim_create_autocmd("VimEnter", { callback = function()
  vim.schedule(function()
    vim.wait(20000, function() return #shown() > 0 end)
    local before = shown()
    vim.cmd("edit library.py")
    vim.wait(2000, function() return #vim.lsp.get_clients({ bufnr = 0 }) > 0 end)
    vim.api.nvim_buf_set_lines(0, 4, 5, false, { "    return torch.ones(n)" })
    vim.wait(20000, function() return #shown() == 0 end)
    io.stdout:write("told: " .. vim.json.encode({ before, shown() }))
    vim.cmd("qa!")
  end)
end })
"""


def test_neovim_with_the_settings_of_the_page_shows_findings_once(tmp_path: Path, forked: str) -> None:
    nvim = shutil.which("nvim")
    version = (
        "" if nvim is None else subprocess.run([nvim, "--version"], capture_output=True, text=True, check=True).stdout
    )
    if nvim is None or tuple(map(int, re.findall(r"\d+", version)[:2])) < (0, 11):
        pytest.skip("Neovim 0.11 is not installed")
    (settings,) = re.findall(r"```lua\n(.*?)```", (EXTENSION.parent / "README.md").read_text("utf-8"), re.DOTALL)
    command = tmp_path / "bin" / "cudalint"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m cudalint "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    (tmp_path / "init.lua").write_text(settings + _IN_NEOVIM, encoding="utf-8")
    (tmp_path / "pyproject.toml").touch()
    head, work, rest = re.split(r"(?s)(?=def work)|(?<=item\(\)\n)", forked)
    (tmp_path / "library.py").write_text(f"import torch\n\n\n{work}", encoding="utf-8")
    (tmp_path / "main.py").write_text(f"{head}from library import work\n{rest}", encoding="utf-8")
    told = environment() | {"PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path)}
    done = subprocess.run(
        [nvim, "--headless", "-u", "init.lua", "main.py"],
        cwd=tmp_path, env=told, capture_output=True, text=True, timeout=90, check=False,
    )  # fmt: skip
    before, after = json.loads((done.stdout + done.stderr).partition("told: ")[2])
    assert [(name, code) for name, _, code in before] == [("main.py", "CUD101")]
    assert after == []
