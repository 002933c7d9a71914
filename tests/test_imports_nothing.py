"""A check runs nothing of what it reads, wherever it is started: only ``--verify`` runs programs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import environment

# Files that would stand in for modules that cudalint imports. Python itself imports types, warnings and a few more from
# the current folder before any program that is started by -m has begun: no program can keep it from that.
SHADOWS = (
    "__future__",
    "json",
    "rich",
    "libcst",
    "msgspec",
    "click",
    "pathspec",
    "tomllib",
    "tomli",
    "difflib",
    "socket",
    "ast",
)
PACKAGES = ("libcst", "rich", "json", "encodings", "multiprocessing", "torch")
# What other tools run as soon as they see it.
AROUND = ("conftest", "setup", "noxfile", "manage", "pkg/__init__", "pkg/__main__", "encodings/klingon")
BY_SITE = ("sitecustomize", "usercustomize")
TRAP = "import os\nwith open(os.environ['TRAP'], 'a') as stream:\n    stream.write(__file__ + '\\n')\n"


@pytest.fixture
def trapped(tmp_path: Path, forked: str) -> Path:
    """A project of modules that leave a trace when they run, one of which has a finding."""
    folder = tmp_path / "project"
    for name in (*SHADOWS, *AROUND, *BY_SITE, *(f"{package}/__init__" for package in PACKAGES)):
        path = folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TRAP, encoding="utf-8")
    (folder / "train.py").write_text(TRAP + forked, encoding="utf-8")
    (folder / "other.py").write_text("# coding: klingon\nimport torch\n", encoding="utf-8")
    (folder / "pyproject.toml").write_text("[build-system]\nrequires = []\nbuild-backend = 'setup'\n", encoding="utf-8")
    return folder


def started(trapped: Path, command: list[str], *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    trap = trapped.parent / "ran"
    told = environment() | {"TRAP": str(trap)} | more
    command = [*command, "check", *arguments]
    done = subprocess.run(command, cwd=trapped, env=told, capture_output=True, text=True, timeout=120, check=False)
    assert not trap.exists(), trap.read_text()
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    return done


MODULE = [sys.executable, "-m", "cudalint"]
# What pip writes for the command, in short.
SCRIPT = [sys.executable, "-c", "import sys; sys.path.pop(0); from cudalint.__main__ import main; sys.exit(main())"]


@pytest.mark.parametrize("command", [MODULE, SCRIPT])
def test_the_modules_of_the_current_folder_stay_unread_by_python(trapped: Path, command: list[str]) -> None:
    assert "CUD101" in started(trapped, command).stdout
    assert "spawn" in started(trapped, command, "--diff", "--unsafe-fixes").stdout


@pytest.mark.parametrize("command", [MODULE, SCRIPT])
def test_an_empty_element_of_the_path_changes_nothing(trapped: Path, command: list[str]) -> None:
    for name in BY_SITE:  # Python imports these before any program begins
        (trapped / f"{name}.py").unlink()
    shutil.rmtree(trapped / "encodings")  # nor does it begin without its own
    path = os.pathsep.join(["", *filter(None, [os.environ.get("PYTHONPATH")]), ""])
    assert "CUD101" in started(trapped, command, PYTHONPATH=path).stdout


@pytest.mark.parametrize("command", [MODULE, SCRIPT])
def test_the_folders_of_python_itself_can_be_checked_from_within(command: list[str]) -> None:
    """What is taken off the path is the current folder, not the standard library, nor installed packages."""
    for folder in (Path(os.__file__).parent, Path(pytest.__file__).parents[1]):
        command_there = [*command, "check", "--isolated", "--no-cache", "-q", "wsgiref", "pytest"]
        present = [name for name in command_there[-2:] if (folder / name).exists()]
        done = subprocess.run(
            [*command_there[:-2], *present], cwd=folder, env=environment(), capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
