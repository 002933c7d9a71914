"""The plugin in a real flake8, on a small repository."""

from __future__ import annotations

import ast
import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import call
from flake8.main import cli

from cudalint import __version__
from cudalint.hosts import flake8_plugin
from cudalint.hosts.flake8_plugin import Plugin
from cudalint.project import analysis, entering


def flake8(directory: Path, *arguments: str, stdin: str | None = None) -> list[str]:
    """The lines that flake8 prints in a process of its own; its errors fail the test."""
    done = subprocess.run(
        [sys.executable, "-m", "flake8", *arguments],
        cwd=directory,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return lines(done)


def called(directory: Path, *arguments: str) -> list[str]:
    """The same in this process, for questions that a flake8 of any process answers."""
    return lines(call(["--jobs=1", *arguments], directory, os.environ, program=cli.main))


def lines(done: subprocess.CompletedProcess[str]) -> list[str]:
    assert done.stderr == ""
    assert done.returncode in (0, 1)
    return done.stdout.splitlines()


@pytest.fixture
def repository(tmp_path: Path, forked: str) -> Path:
    (tmp_path / "plain.py").write_text("import os\n", encoding="utf-8")
    (tmp_path / "train.py").write_text(forked, encoding="utf-8")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_train.py").write_text(forked, encoding="utf-8")
    return tmp_path


def places(lines: list[str]) -> list[str]:
    """``path:row:column: CODE`` of each line."""
    return sorted(" ".join(line.split()[:2]).removeprefix("./") for line in lines)


TRAIN, TEST = "train.py:12:11: CUD101", "tests/test_train.py:12:11: CUD101"


def test_the_entry_point_is_registered() -> None:
    (entry,) = (point for point in importlib.metadata.entry_points(group="flake8.extension") if point.name == "CUD")
    assert entry.load() is Plugin
    assert Plugin.version == __version__


def test_findings_are_reported_beside_those_of_flake8(repository: Path) -> None:
    assert places(flake8(repository)) == ["plain.py:1:1: F401", TEST, TRAIN]


def test_notes_are_shown_where_they_are_to_fail(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import torch\nimport torch.distributed as dist\nimport torch.multiprocessing as mp\n\n\n"
        "def run(rank):\n    dist.init_process_group('nccl', 'tcp://127.0.0.1:29500', rank=rank, world_size=2)\n"
        "    torch.cuda.set_device(rank)\n\n\nif __name__ == '__main__':\n    mp.spawn(run, nprocs=2)\n",
        encoding="utf-8",
    )
    assert called(tmp_path, "--select", "CUD") == []
    (tmp_path / "pyproject.toml").write_text('[tool.cudalint]\nfail-on = "note"\n', encoding="utf-8")
    assert places(called(tmp_path, "--select", "CUD")) == ["train.py:7:5: CUD501"]


def test_select_and_ignore(repository: Path) -> None:
    assert places(called(repository, "--select", "CUD")) == [TEST, TRAIN]
    assert places(called(repository, "--select", "CUD1")) == [TEST, TRAIN]
    assert places(called(repository, "--select", "CUD2,F")) == ["plain.py:1:1: F401"]
    assert places(called(repository, "--extend-ignore", "CUD101")) == ["plain.py:1:1: F401"]


def test_configuration_and_per_file_ignores(repository: Path) -> None:
    (repository / ".flake8").write_text(
        "[flake8]\nselect = CUD\nper-file-ignores =\n    tests/*: CUD1\n", encoding="utf-8"
    )
    assert places(called(repository)) == [TRAIN]


@pytest.mark.parametrize("comment", ["# noqa", "# noqa: CUD101", "# noqa: CUD1,E501"])
def test_flake8_applies_its_noqa(repository: Path, forked: str, comment: str) -> None:
    call = "[1, 2, 3]))"
    (repository / "train.py").write_text(forked.replace(call, f"{call}  {comment}"), encoding="utf-8")
    assert places(called(repository, "--select", "CUD")) == [TEST]
    assert places(called(repository, "--select", "CUD", "--disable-noqa")) == [TEST, TRAIN]


def test_noqa_of_another_tool_changes_nothing(repository: Path, forked: str) -> None:
    (repository / "train.py").write_text(forked.replace("3]))", "3]))  # noqa: E501"), encoding="utf-8")
    assert places(called(repository, "--select", "CUD")) == [TEST, TRAIN]


def test_an_unused_suppression_is_not_judged(repository: Path) -> None:
    (repository / "train.py").write_text("import torch  # noqa: CUD101, F401\n", encoding="utf-8")
    assert places(called(repository, "--select", "CUD")) == [TEST]


def test_standard_input(tmp_path: Path, forked: str) -> None:
    assert places(flake8(tmp_path, "--select", "CUD", "-", stdin=forked)) == ["stdin:12:11: CUD101"]
    assert flake8(tmp_path, "--select", "CUD", "-", stdin="import torch\n") == []


def test_a_file_that_flake8_cannot_parse_is_its_own_affair(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import torch\ndef f(:\n", encoding="utf-8")
    assert [line.split()[1] for line in called(tmp_path)] == ["E999"]


def run_plugin(text: str, filename: str = "x.py") -> list[tuple[int, int, str, type[Plugin]]]:
    return list(Plugin(ast.parse(text), text.splitlines(keepends=True), filename).run())


def test_a_declared_encoding_does_not_matter_to_decoded_lines() -> None:
    text = "# coding: ascii\nimport torch\nx = 'é'\n"
    assert run_plugin(text) == []


def test_an_internal_error_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("broken\ninside")

    monkeypatch.setattr(entering, "entering", fail)
    monkeypatch.setattr(analysis, "analyse", fail)
    ((row, column, text, _),) = run_plugin("import torch\n")
    assert (row, column) == (1, 0)
    assert text == "CUD900 cudalint failed on this file: RuntimeError: broken inside"
    monkeypatch.setattr(flake8_plugin, "_check", fail)
    assert [text for _, _, text, _ in run_plugin("import torch\n")] == [text]
    assert run_plugin("x = 1\n") == []


def test_a_bad_configuration_does_not_end_the_run(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.cudalint]\nselct = []\n", encoding="utf-8")
    (tmp_path / "a.py").write_text("import torch\n", encoding="utf-8")
    (line,) = called(tmp_path, "--select", "CUD")
    assert "CUD900" in line
    assert "unknown key 'selct'" in line


def test_platform_and_versions_come_from_pyproject(repository: Path, forked: str) -> None:
    (repository / "train.py").write_text(forked.replace('.get_context("fork")', ""), encoding="utf-8")
    assert places(called(repository, "--select", "CUD", "train.py")) == [TRAIN]
    (repository / "pyproject.toml").write_text('[tool.cudalint]\nplatform = "win32"\n', encoding="utf-8")
    assert called(repository, "--select", "CUD", "train.py") == []
