"""The record of what passed on paper: nothing that changed passes by it, and what it skips still runs in turn."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

import pytest
from paper.fixture import judge
from paper.ingredients import ROOT, VARIABLE, Inputs, Tree, of_program
from paper.record import PASSED, SLICES, Need, Record, files, is_due, read, write
from paper.run import run

TORCH = "import torch\n\ntorch.ones(1).cuda()\n"
CODE = ("paper.fixture",)
TEXTS = {"program.py": TORCH}
STUBS = "cudalint/verify/paper/stubs"
# Without these a program ends or is judged in another way.
DECISIVE = [
    "cudalint/verify/measure.py",
    "cudalint/verify/paper/__init__.py",
    f"{STUBS}/paper_driver.py",
    f"{STUBS}/sitecustomize.py",
    f"{STUBS}/torch/__init__.py",
    f"{STUBS}/torch/_gpu.py",
    f"{STUBS}/torch/utils/data/dataloader.py",
    "tests/fixture_markers.py",
    "tests/paper/fixture.py",
    "tests/paper/run.py",
    "tests/paper/supervise.py",
    "tests/paper/watch.py",
]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of what runs programs."""
    ignore = shutil.ignore_patterns("__pycache__")
    for folder in ("tests/paper", "tests/oracle", "cudalint/verify"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignore)
    shutil.copy(ROOT / "tests" / "fixture_markers.py", tmp_path / "tests")
    return tmp_path


def digest(root: Path, texts: dict[str, str] | None = None, code: tuple[str, ...] = CODE, rest: object = None) -> str:
    return Tree(root).digest(Inputs(texts or TEXTS, code, rest))


def change(path: Path) -> None:
    """Change one byte, in a comment at most: nobody has to judge whether it matters."""
    path.write_bytes(path.read_bytes() + b"#")


# -- what decides ------------------------------------------------------------------------------------------------


def test_the_same_has_the_same_hash_wherever_it_lies(copy: Path) -> None:
    assert digest(copy) == digest(copy) == digest(ROOT)


@pytest.mark.parametrize("name", DECISIVE)
def test_one_byte_of_what_runs_and_judges_changes_the_hash(copy: Path, name: str) -> None:
    before = digest(copy)
    change(copy / name)
    assert digest(copy) != before


def test_every_file_that_takes_part_changes_the_hash(copy: Path) -> None:
    inputs = Inputs({"program.py": "from numba import cuda\n"}, CODE)
    taking_part = Tree(copy).files(inputs)
    seen = {Tree(copy).digest(inputs)}
    for path in taking_part:
        change(path)
        seen.add(Tree(copy).digest(inputs))
    assert len(seen) == len(taking_part) + 1


def test_code_that_is_imported_on_the_way_takes_part(copy: Path) -> None:
    taking_part = Tree(copy).files(Inputs(TEXTS, ("oracle.fix_runner",)))
    assert {copy / "tests" / "oracle" / name for name in ("inherited_process.py", "states.py")} <= set(taking_part)


def test_a_new_file_of_a_stub_changes_the_hash(copy: Path) -> None:
    before = digest(copy)
    (copy / STUBS / "torch" / "fresh.py").write_text("")
    assert digest(copy) != before


def test_what_the_runner_comes_to_import_takes_part(copy: Path) -> None:
    (copy / "tests" / "paper" / "helper.py").write_text("LIMIT = 1\n")
    watch = copy / "tests" / "paper" / "watch.py"
    watch.write_text("def late():\n    from paper import helper\n" + watch.read_text())
    before = digest(copy)
    change(copy / "tests" / "paper" / "helper.py")
    assert digest(copy) != before


@pytest.mark.parametrize(
    ("texts", "code", "rest"),
    [
        ({"program.py": TORCH + "#"}, CODE, None),
        ({"other.py": TORCH}, CODE, None),
        ({"program.py": TORCH, "helper.py": ""}, CODE, None),
        (TEXTS, ("paper.run",), None),
        (TEXTS, CODE, {"outcome": "crash"}),
    ],
)
def test_program_judge_and_expectation_change_the_hash(
    texts: dict[str, str], code: tuple[str, ...], rest: object
) -> None:
    assert digest(ROOT, texts, code, rest) != digest(ROOT)


def test_versions_change_the_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest(ROOT)
    with monkeypatch.context() as patched:
        patched.setattr(sys, "version_info", (3, 99, 0))
        assert digest(ROOT) != before
    monkeypatch.setattr("paper.ingredients.metadata.version", lambda name: "0.0.1")
    assert digest(ROOT) != before


def test_a_stub_that_a_program_cannot_import_does_not_matter_to_it(copy: Path) -> None:
    jax = {"program.py": "import jax\n"}
    named = {"program.py": "import importlib\nimportlib.import_module('jax')\n"}
    indirect = {"program.py": "import skorch\n"}
    before = [digest(copy, texts) for texts in (TEXTS, jax, named, indirect)]
    change(copy / STUBS / "jax" / "__init__.py")
    after = [digest(copy, texts) for texts in (TEXTS, jax, named, indirect)]
    assert [old == new for old, new in zip(before, after, strict=True)] == [True, False, False, True]
    change(copy / STUBS / "torch" / "_base.py")
    assert digest(copy, indirect) != after[3]  # by way of torch


def test_what_a_program_imports_from_beside_it_is_part_of_it(tmp_path: Path) -> None:
    for name, text in (("main", "import first\n"), ("first", "def f():\n    import second\n"), ("second", "")):
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "stranger.py").write_text("")
    assert sorted(of_program(tmp_path / "main.py", "main")) == ["main", "main/first.py", "main/second.py"]


def test_an_import_that_no_text_names_is_a_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a hash without a stub is never that of a program which uses it."""
    program = tmp_path / "program.py"
    program.write_text("try:\n    __import__('j' + 'ax')\nexcept ImportError:\n    pass\n")
    monkeypatch.setenv(VARIABLE, "torch")
    assert judge({}, run(program)) == ["paper CUDA does not know jax,-which-PAPER_STUBS-does-not-name"]
    monkeypatch.setenv(VARIABLE, "jax torch")
    assert judge({}, run(program)) == []


# -- the record ------------------------------------------------------------------------------------------------------


def test_only_what_is_recorded_need_not_run(tmp_path: Path) -> None:
    record = Record({"a": frozenset(["1", "2"])})
    day = next(day for day in _days() if not is_due("a", day))
    assert [record.need("a", one, day) for one in ("1", "2", "3")] == [Need.NONE, Need.NONE, Need.CHANGED]
    assert record.need("b", "1", day) is Need.CHANGED
    write(record.passed, tmp_path / "passed.txt")
    assert read(tmp_path / "passed.txt") == record
    assert read(tmp_path / "missing.txt") == Record({})


def test_each_runs_on_one_day_of_so_many_and_no_day_runs_most() -> None:
    names = sorted(read().passed)
    for name in names:
        assert sum(is_due(name, day) for day in _days()) == 1
    shares = [sum(is_due(name, day) for name in names) / len(names) for day in _days()]
    assert max(shares) < 2 / SLICES


def _days() -> list[date]:
    return [date(2030, 1, 1) + timedelta(days) for days in range(SLICES)]


def test_the_record_is_about_tests_that_there_are() -> None:
    modules = {f"tests/{path.name}" for path in files()}
    assert {name.partition("::")[0] for name in read().passed} == modules
    assert PASSED.read_text("utf-8").splitlines() == sorted(
        set(PASSED.read_text("utf-8").splitlines()), key=lambda line: (line.partition("  ")[2], line)
    )


# -- in pytest -------------------------------------------------------------------------------------------------------

PROGRAM = """\
# /// script
# dependencies = ["torch"]
#
# [tool.cudalint]
# outcome = "ok"
# gpus = 1
# ///
import torch

torch.ones(1).cuda()
"""
NAMES = (
    "conftest.py",
    "command_line.py",
    "fixture_markers.py",
    "sampling.py",
    "since_python.py",
    "test_fixtures_run.py",
)


@pytest.fixture
def small(copy: Path) -> Callable[..., str]:
    """A repository with one fixture: runs its test, and gives what pytest says."""
    for name in NAMES:
        shutil.copy(ROOT / "tests" / name, copy / "tests")
    shutil.copy(ROOT / "pyproject.toml", copy)
    for path in (ROOT / "cudalint").iterdir():
        if path.name not in ("verify", "__pycache__"):
            (copy / "cudalint" / path.name).symlink_to(path)
    (copy / "tests" / "paper" / "passed.txt").unlink()
    (copy / "fixtures" / "CUD101").mkdir(parents=True)
    (copy / "fixtures" / "CUD101" / "ok_one.py").write_text(PROGRAM)

    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}

    def tests(*arguments: str) -> str:
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            *arguments,
            "tests",
        ]
        done = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False, env=environment)
        return done.stdout + done.stderr

    return tests


def test_a_test_passes_by_the_record_until_something_changes(small: Callable[..., str], copy: Path) -> None:
    program = copy / "fixtures" / "CUD101" / "ok_one.py"
    passed = copy / "tests" / "paper" / "passed.txt"
    told = small("--record-paper", "replace")
    assert "1 passed" in told
    assert "paper CUDA: 1 run because they changed" in told
    kept = passed.read_text()
    assert kept.endswith("  tests/test_fixtures_run.py::test_the_program_ends_as_its_header_says[CUD101/ok_one.py]\n")
    told = small()
    assert "1 passed" in told
    assert "paper CUDA: 1 as recorded" in told or "paper CUDA: 1 run because it is their day" in told
    assert "paper CUDA: 1 run because all were asked for" in small("--all-paper")
    # A program that fails now fails, whatever is recorded of it before, and is not recorded.
    program.write_text(PROGRAM.replace('outcome = "ok"', 'outcome = "crash"'))
    told = small("--record-paper", "add")
    assert "1 failed" in told
    assert "1 run because they changed" in told
    assert passed.read_text() == kept
    # So does one whose stubs do something else, and nothing is left of what was recorded.
    program.write_text(PROGRAM)
    driver = copy / STUBS / "paper_driver.py"
    driver.write_text(driver.read_text() + "\nraise SystemExit(3)\n")
    assert "1 failed" in small("--record-paper", "replace")
    assert passed.read_text() == ""
