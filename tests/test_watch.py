"""``check --watch``: programs and settings that change are checked again, and it ends when nobody reads on."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import Run, environment


@contextmanager
def watching(folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "cudalint", "check", "--watch", "--output-format", "concise", *options]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=folder, env=environment(), stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def save(path: Path, text: str) -> None:
    """As editors do: there is no moment at which half of it is there, which would be checked by itself."""
    new = path.with_suffix(".new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


def said(process: subprocess.Popen[str]) -> list[str]:
    """What is printed of one check: it ends with a summary."""
    assert process.stdout is not None
    rows: list[str] = []
    for row in process.stdout:
        rows.append(row)
        if row.startswith(("Found ", "All checks passed!", "Nothing was checked.")):
            return rows
    raise AssertionError("it has ended")


def complained(process: subprocess.Popen[str], words: str) -> None:
    assert process.stderr is not None
    assert any(words in row for row in process.stderr)


@pytest.mark.long
def test_a_change_is_checked_at_once(tmp_path: Path, forked: str) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.cudalint]\n")
    (tmp_path / "train.py").write_text(forked, encoding="utf-8")
    with watching(tmp_path) as process:
        assert "CUD101" in said(process)[0]
        complained(process, "files are watched; Ctrl-C ends it")
        save(tmp_path / "train.py", "x = 1\n")
        assert said(process)[-1] == "All checks passed!\n"
        save(tmp_path / "new.py", forked)
        assert any(row.startswith("new.py:12:11: CUD101 ") for row in said(process))
        save(tmp_path / "pyproject.toml", "[tool.cudalint]\nignoer = []\n")
        complained(process, "unknown key 'ignoer'")
        save(tmp_path / "pyproject.toml", '[tool.cudalint]\nignore = ["CUD101"]\n')
        assert said(process)[-1] == "All checks passed!\n"
        for _ in range(2):  # after what is wrong, and after the last check
            complained(process, "files are watched")
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


def test_it_ends_with_the_last_exit_code_when_its_reader_has_gone(tmp_path: Path, forked: str) -> None:
    (tmp_path / "train.py").write_text(forked, encoding="utf-8")
    with watching(tmp_path, "--quiet") as process:
        assert process.stdout is not None
        assert "CUD101" in process.stdout.readline()
        process.stdout.close()
        assert process.wait(60) == 1
        assert process.stderr is not None
        assert process.stderr.read() == ""


@pytest.mark.parametrize("options", [["-"], ["--fix"], ["--add-noqa"], ["--diff"], ["nothing.py"]])
def test_what_cannot_be_watched_is_one_line(run: Run, tmp_path: Path, options: list[str]) -> None:
    done = run("check", "--watch", *options)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_a_file_that_goes_is_said_and_checked_again_when_it_is_back(tmp_path: Path, forked: str) -> None:
    train = tmp_path / "train.py"
    train.write_text(forked, encoding="utf-8")
    with watching(tmp_path, "train.py") as process:
        assert "CUD101" in said(process)[0]
        complained(process, "files are watched")
        train.unlink()
        complained(process, "error: no such file or directory: train.py")
        save(train, "x = 1\n")
        assert said(process)[-1] == "All checks passed!\n"
        for _ in range(2):  # after what is missing, and after the last check
            complained(process, "files are watched")
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


def test_a_folder_that_goes_while_it_is_watched_ends_it_with_one_line(tmp_path: Path, forked: str) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text(forked, encoding="utf-8")
    with watching(folder) as process:
        assert "CUD101" in said(process)[0]
        complained(process, "files are watched")
        shutil.rmtree(folder)
        assert process.wait(60) == 2
        assert process.stderr is not None
        assert process.stderr.read() == "cudalint: error: the current folder does not exist any more\n"
