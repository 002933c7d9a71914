"""Patches of --diff, applied by real programs: git in and outside of repositories, and patch."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import PINNED

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Names = Callable[[list[str]], tuple[str, ...]]

NAMES = ("train.py", "src/one two.py", "src/gr\u00f6\u00dfe.py", "src/new\nline.py", "src/deep/er/last.py", "lib/a.py")
PATCH = ["patch", "-p1", "--no-backup-if-mismatch"]
GIT = ["git", "apply", "-"]
NEW_LINE = """\
--- "a/new\\nline"
+++ "b/new\\nline"
@@ -1 +1 @@
-old
+new
"""


@pytest.fixture(scope="session")
def names(tmp_path_factory: pytest.TempPathFactory) -> Names:
    """The files that a tool can be given: patch 2.8 refuses names with a line end in them, whoever wrote the patch."""
    folder = tmp_path_factory.mktemp("patch")
    (folder / "new\nline").write_text("old\n")
    done = subprocess.run(PATCH, cwd=folder, input=NEW_LINE.encode(), capture_output=True, check=False)
    refused = b"Invalid byte sequence" in done.stderr
    assert refused or (folder / "new\nline").read_text() == "new\n"
    return lambda tool: tuple(name for name in NAMES if not (refused and tool is PATCH and "\n" in name))


@pytest.fixture
def project(tmp_path: Path, names: Names, tool: list[str]) -> Path:
    for number, name in enumerate(NAMES):
        if name not in names(tool):
            continue
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # Without an end of the last row, with ends of Windows, and as usual.
        text = (PINNED.rstrip("\n"), PINNED.replace("\n", "\r\n"), PINNED)[number % 3]
        path.write_bytes(text.encode())
    (tmp_path / "pyproject.toml").touch()
    return tmp_path


def repaired(project: Path) -> list[str]:
    there = [name for name in NAMES if (project / name).exists()]
    return [name for name in there if b"pin_memory" not in (project / name).read_bytes()]


def applied(tool: list[str], patch: str, folder: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(tool, cwd=folder, input=patch.encode(), capture_output=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert b"fuzz" not in done.stdout


@pytest.mark.parametrize("tool", [PATCH, GIT], ids=["patch", "git"])
@pytest.mark.parametrize("is_repository", [False, True])
@pytest.mark.parametrize("where", ["", "src", "src/deep"])
def test_where_the_run_was_the_patch_applies(
    run: Run, project: Path, names: Names, tool: list[str], is_repository: bool, where: str
) -> None:
    if is_repository:
        subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    below = [name for name in names(tool) if name.startswith(where)]
    before = {name: (project / name).read_bytes() for name in below}
    done = run("check", "--diff", ".", cwd=project / where)
    assert done.stderr == f"Would make {len(below)} repair{'' if len(below) == 1 else 's'}.\n"
    applied(tool, done.stdout, project / where)
    assert repaired(project) == below
    for name in below:
        assert (project / name).read_bytes() == before[name].replace(b", pin_memory=True", b"")


@pytest.mark.parametrize("tool", [PATCH, GIT], ids=["patch", "git"])
def test_files_beside_the_folder_count_from_the_project(run: Run, project: Path, names: Names, tool: list[str]) -> None:
    done = run("check", "--diff", "..", cwd=project / "src")
    assert done.stderr.splitlines() == [
        f"Would make {len(names(tool))} repairs.",
        f"The names in the patch count from {project}: git apply, or patch -p1, there.",
    ]
    applied(tool, done.stdout, project)
    assert repaired(project) == [*names(tool)]


@pytest.mark.parametrize("tool", [PATCH], ids=["patch"])
def test_files_of_no_project_count_from_what_they_share(run: Run, project: Path, names: Names, tool: list[str]) -> None:
    (project / "pyproject.toml").unlink()
    done = run("check", "--diff", "../lib", "../src", cwd=project / "src")
    assert f"count from {project}:" in done.stderr
    applied(tool, done.stdout, project)
    assert repaired(project) == [name for name in names(tool) if "/" in name]
