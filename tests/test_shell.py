"""Completion in a real shell, and the manual page."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cudalint.hosts import commands

Run = Callable[..., "subprocess.CompletedProcess[str]"]

ROOT = Path(__file__).parents[1]
MAN = ROOT / "docs" / "man"

# What bash does when a user presses tab: the program's function fills COMPREPLY.
PRESS = """
eval "$(_CUDALINT_COMPLETE=bash_source cudalint)"
COMP_WORDS=({words}); COMP_CWORD={last}
_cudalint_completion cudalint
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file, and a program named cudalint on the path."""
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "cudalint"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m cudalint "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    (tmp_path / "train.py").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("cudalint c", ["check", "clean", "config"]),
        ("cudalint check --output-format gi", ["github", "gitlab"]),
        ("cudalint check --select CUD1,CUD90", ["CUD1,CUD900", "CUD1,CUD901", "CUD1,CUD902"]),
        ("cudalint rule cud90", ["CUD900", "CUD901", "CUD902"]),
    ],
)
def test_bash_completes(folder: Path, words: str, completed: list[str]) -> None:
    script = PRESS.format(words=words, last=len(words.split()) - 1)
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    bash = ["bash", "--norc", "-c", script]
    environment = os.environ | {"PATH": path}
    done = subprocess.run(bash, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split() == completed, done.stderr


def test_every_shell_is_offered_paths(process: Run) -> None:
    for words in ("cudalint check tr", "cudalint explain tr"):
        asked = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
        done = process(env={**asked, "_CUDALINT_COMPLETE": "bash_complete"})
        assert (done.returncode, done.stdout, done.stderr) == (0, "file,tr\n", "")
    assert "_CUDALINT_COMPLETE=fish_complete" in process(env={"_CUDALINT_COMPLETE": "fish_source"}).stdout


def made() -> str:
    spec = importlib.util.spec_from_file_location("make_manual", MAN / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = module.page()
    assert isinstance(page, str)
    return page


def test_the_manual_is_that_of_the_commands() -> None:
    page = (MAN / "cudalint.1").read_text(encoding="utf-8")
    assert page == made()
    for name in commands.COMMANDS:
        assert f".SS cudalint {name} " in page


@pytest.mark.skipif(shutil.which("groff") is None, reason="no groff")
def test_the_manual_is_read_without_complaint() -> None:
    command = ["groff", "-man", "-Tutf8", "-ww", str(MAN / "cudalint.1")]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"GROFF_NO_SGR": "1"}, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "--write-baseline" in re.sub(".\b", "", done.stdout)
