"""Other systems, as far as they can be had on one: their paths, what they lack, how they start processes."""

from __future__ import annotations

import ntpath
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from cudalint.policy import identity
from cudalint.report import paths, sarif

Run = Callable[..., "subprocess.CompletedProcess[str]"]

# What Windows does not have is taken away before cudalint is imported.
WITHOUT = """\
import os, signal, sys
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
for name in ("fork", "getuid", "geteuid", "getgid", "killpg", "setsid", "sched_getaffinity", "register_at_fork",
             "waitid", "wait", "fchmod", "fchown", "chown", "mkfifo", "getxattr", "setxattr", "listxattr", "uname"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGKILL", "SIGHUP", "SIGQUIT", "SIGPIPE", "SIGUSR1", "SIGALRM", "SIGCHLD"):
    if hasattr(signal, name):
        delattr(signal, name)
from cudalint.hosts.cli import main
sys.platform = sys.argv[1]
sys.exit(main(sys.argv[2:]))
"""
IMPLICIT = """\
import multiprocessing

import torch


def work(n):
    return torch.ones(n, device="cuda").sum().item()


if __name__ == "__main__":
    torch.zeros(1, device="cuda")
    print(multiprocessing.Pool(1).map(work, [1, 2, 3]))
"""


@pytest.fixture
def elsewhere(tmp_path: Path) -> Run:
    """Runs cudalint without what only POSIX systems have."""

    def run(*arguments: str, platform: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", WITHOUT, platform, *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    return run


def test_a_check_needs_nothing_that_only_posix_has(elsewhere: Run, run: Run, tmp_path: Path, forked: str) -> None:
    (tmp_path / "train.py").write_text(forked, encoding="utf-8")
    for arguments in (["check", "--diff"], ["explain", "train.py:12"]):
        # The name of the system stays: with another one, Python's own modules ask for what they have there.
        there, here = elsewhere(*arguments, platform=sys.platform), run(*arguments)
        assert (there.returncode, there.stderr, there.stdout) == (here.returncode, here.stderr, here.stdout)


@pytest.mark.parametrize("platform", ["win32", "darwin"])
def test_what_needs_linux_says_so(elsewhere: Run, platform: str) -> None:
    done = elsewhere("--verify", platform=platform)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "cudalint: error: --verify needs Linux\n")


@pytest.mark.parametrize(
    ("options", "forks"),
    [
        (["--platform", "linux", "--target-version", "3.13"], True),
        (["--platform", "linux", "--target-version", "3.14"], False),
        (["--platform", "darwin", "--target-version", "3.13"], False),
        (["--platform", "win32", "--target-version", "3.13"], False),
    ],
)
def test_each_system_starts_processes_its_own_way(run: Run, tmp_path: Path, options: list[str], forks: bool) -> None:
    (tmp_path / "train.py").write_text(IMPLICIT, encoding="utf-8")
    done = run("check", "--isolated", "--output-format", "concise", *options)
    assert ("CUD101" in done.stdout) == forks


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The modules that write paths work with those of Windows."""
    names = SimpleNamespace(sep="\\", path=ntpath, fsencode=lambda path: path.encode())
    for module in (paths, identity, sarif):
        monkeypatch.setattr(module, "os", names)


@pytest.mark.usefixtures("windows")
def test_paths_of_windows_are_shown_as_such_and_written_as_addresses() -> None:
    assert paths.relative("C:\\project\\src\\a b.py", "C:\\project") == "src\\a b.py"
    assert paths.relative("D:\\other\\a.py", "C:\\project") == "D:\\other\\a.py"
    assert sarif._artifact("C:\\project\\src\\a b.py", "C:\\project") == {"uri": "src/a%20b.py"}


@pytest.mark.usefixtures("windows")
def test_a_baseline_of_windows_names_files_as_elsewhere() -> None:
    assert identity._path("C:\\project\\src\\a.py", "C:\\project") == "src/a.py"
    assert identity._path("D:\\other\\a.py", "C:\\project") == "D:/other/a.py"
