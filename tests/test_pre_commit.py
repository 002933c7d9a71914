"""The hooks in a real pre-commit, which clones this repository and installs it as users get it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
_IDENTITY = {
    f"GIT_{role}_{key}": value
    for role in ("AUTHOR", "COMMITTER")
    for key, value in (("NAME", "Test"), ("EMAIL", "test@example.org"))
}
_INSTALL_LIMIT = 300
# Bytecode is made of what is imported, not of all that is installed.
_QUICK = {"PIP_NO_COMPILE": "1"}

Hooks = Callable[..., "subprocess.CompletedProcess[str]"]


def start(directory: Path, *command: str, limit: int = 60, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return subprocess.run(
        command,
        cwd=directory,
        env=inherited | _IDENTITY | {"GIT_CONFIG_GLOBAL": os.devnull} | environment,
        capture_output=True,
        text=True,
        timeout=limit,
        check=False,
    )


def git(directory: Path, *arguments: str) -> None:
    done = start(directory, "git", *arguments)
    assert done.returncode == 0, done.stderr


def commit_all(directory: Path) -> None:
    git(directory, "init", "-q")
    git(directory, "add", "-A")
    git(directory, "commit", "-qm", "all")


@pytest.fixture
def hooks(tmp_path_factory: pytest.TempPathFactory) -> Hooks:
    """Run pre-commit against a repository that holds this working tree; its environment is made once."""
    top = tmp_path_factory.mktemp("pre_commit")
    clone = top / "cudalint"
    # The working tree and not the last commit: the test is about what is being written.
    wanted = ("pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml")
    shutil.copytree(ROOT / "cudalint", clone / "cudalint", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "fixtures", clone / "fixtures", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "docs" / "evidence", clone / "docs" / "evidence")
    for name in wanted:
        shutil.copy(ROOT / name, clone / name)
    commit_all(clone)

    def run(directory: Path, hook: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        revision = start(clone, "git", "rev-parse", "HEAD").stdout.strip()
        (directory / ".pre-commit-config.yaml").write_text(
            f"repos:\n- repo: {clone}\n  rev: {revision}\n  hooks:\n  - id: {hook}\n", encoding="utf-8"
        )
        git(directory, "add", "-A")
        command = (sys.executable, "-m", "pre_commit", "run", *arguments)
        return start(directory, *command, limit=_INSTALL_LIMIT, PRE_COMMIT_HOME=str(top / "home"), **_QUICK)

    return run


@pytest.fixture
def repository(tmp_path: Path, forked: str) -> Path:
    (tmp_path / "plain.py").write_text("x = 1\n", encoding="utf-8")
    (tmp_path / "train.py").write_text(forked, encoding="utf-8")
    commit_all(tmp_path)
    return tmp_path


@pytest.mark.long
def test_hooks_check_what_was_changed_or_everything(hooks: Hooks, repository: Path) -> None:
    (repository / "plain.py").write_text("x = 2\n", encoding="utf-8")
    done = hooks(repository, "cudalint")
    assert done.returncode == 0, done.stdout + done.stderr
    with (repository / "train.py").open("a", encoding="utf-8") as stream:
        stream.write("# changed\n")
    done = hooks(repository, "cudalint")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "train.py:12:11" in done.stdout
    assert "CUD101" in done.stdout

    # The hook of the whole project, with what is checked last as it was committed: an environment is made once a test.
    git(repository, "checkout", "-q", "train.py")
    done = hooks(repository, "cudalint-project")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "train.py:12:11" in done.stdout

    # pre-commit names every file, also those that the project leaves out.
    (repository / "third_party").mkdir()
    (repository / "train.py").rename(repository / "third_party" / "train.py")
    settings = '[tool.cudalint]\nextend-exclude = ["third_party"]\n'
    (repository / "pyproject.toml").write_text(settings, encoding="utf-8")
    (repository / "train.py").write_text("import torch\n", encoding="utf-8")
    done = hooks(repository, "cudalint", "--all-files")
    assert done.returncode == 0, done.stdout + done.stderr

    # Of a commit that changes only such files, nothing is missed.
    git(repository, "commit", "-q", "-m", "moved")
    with (repository / "third_party" / "train.py").open("a", encoding="utf-8") as stream:
        stream.write("# changed\n")
    done = hooks(repository, "cudalint", "--verbose")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Nothing was checked." in done.stdout
    assert "warning" not in done.stdout
