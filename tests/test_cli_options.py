"""Options that say which files are read, which settings hold, and where the report goes: ruff's names and manners."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def project(tmp_path: Path, forked: str) -> Path:
    """A project of three programs with one finding each, of which it leaves out one."""
    for name in ("train.py", "tests/test_train.py", "third_party/old.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(forked, encoding="utf-8")
    settings = '[project]\nrequires-python = ">=3.10"\n[tool.cudalint]\nextend-exclude = ["third_party"]\n'
    (tmp_path / "pyproject.toml").write_text(settings, encoding="utf-8")
    return tmp_path


def found(run: Run, *arguments: str, cwd: Path | None = None) -> list[str]:
    done = run("check", "--output-format", "json", *arguments, cwd=cwd)
    return sorted("/".join(Path(e["filename"]).parts[-2:]) for e in json.loads(done.stdout))


def files(run: Run, project: Path, *arguments: str, cwd: Path | None = None) -> list[str]:
    done = run("check", "--show-files", *arguments, cwd=cwd)
    assert (done.returncode, done.stderr) == (0, "")
    return [str(Path(row).relative_to(project)) for row in done.stdout.splitlines()]


def test_exclusions_of_the_command_line(run: Run, project: Path) -> None:
    tests, old, train = "tests/test_train.py", "third_party/old.py", "train.py"
    assert files(run, project) == [tests, train]
    assert files(run, project, "--exclude", "tests") == [train]
    assert files(run, project, "--exclude", "nothing") == [tests, train]
    assert files(run, project, "--extend-exclude", "tests/,nothing") == [train]
    assert files(run, project, "--extend-exclude", "tests", "--extend-exclude", "train.py") == []
    # A pattern with a slash counts from where the command was given.
    assert files(run, project, "--extend-exclude", "./test_*.py", ".", "..", cwd=project / "tests") == [train]
    assert files(run, project, "--isolated") == [tests, old, train]
    assert found(run, "--extend-exclude", "tests") == [f"{project.name}/train.py"]


def test_what_is_named_is_read_unless_exclusion_is_forced(run: Run, project: Path, forked: str) -> None:
    old = "third_party/old.py"
    assert found(run, old) == [old]
    assert found(run, "third_party") == [old]
    assert found(run, "--force-exclude", old, "third_party", "train.py") == [f"{project.name}/train.py"]
    assert run("check", "-", "--stdin-filename", old, stdin=forked).returncode == 1
    assert run("check", "-", "--stdin-filename", old, "--force-exclude", stdin=forked).returncode == 0
    fixed = run("check", "--fix", "--unsafe-fixes", "-", "--stdin-filename", old, "--force-exclude", stdin=forked)
    assert (fixed.returncode, fixed.stdout) == (0, forked)
    with (project / "pyproject.toml").open("a") as stream:
        stream.write("force-exclude = true\n")
    assert found(run, old) == []
    assert found(run, old, "--no-force-exclude") == [old]


def test_a_project_that_lies_in_a_folder_of_an_excluded_name(run: Run, tmp_path: Path, forked: str) -> None:
    inner = tmp_path / "build" / "project"
    inner.mkdir(parents=True)
    (inner / "pyproject.toml").write_text("[tool.cudalint]\n", encoding="utf-8")
    (inner / "train.py").write_text(forked, encoding="utf-8")
    assert found(run, "--force-exclude", ".", cwd=inner) == ["project/train.py"]


def test_rules_hidden_in_some_files(run: Run, project: Path) -> None:
    train = f"{project.name}/train.py"
    assert found(run, "--per-file-ignores", "tests/*:CUD101") == [train]
    assert found(run, "--per-file-ignores", "test_*.py:CUD2,tests:CUD1") == [train]
    assert found(run, "--per-file-ignores", "train.py:ALL", "--per-file-ignores", "tests:ALL") == []
    for wrong, words in (
        ("tests", "expected PATTERN:CODE, not 'tests'"),
        ("tests:CUD999", "unknown rule 'CUD999' in --per-file-ignores"),
        ("[z-a]:CUD1", "invalid pattern '[z-a]'"),
    ):
        done = run("check", "--per-file-ignores", wrong)
        assert (done.returncode, words in done.stderr) == (2, True)


def test_another_file_of_settings_or_none(run: Run, project: Path, tmp_path: Path) -> None:
    (project / "other").mkdir()
    (project / "other" / "strict.toml").write_text('select = ["CUD2"]\nextend-exclude = ["tests"]\n', encoding="utf-8")
    (project / "other" / "pyproject.toml").write_text('[tool.cudalint]\nexclude = ["train.py"]\n', encoding="utf-8")
    assert files(run, project, "--config", "other/strict.toml") == ["third_party/old.py", "train.py"]
    assert found(run, "--config", "other/strict.toml") == []
    assert found(run, "--config", "other/strict.toml", "--select", "CUD1", "train.py") == [f"{project.name}/train.py"]
    assert files(run, project, "--config", "other/pyproject.toml") == ["tests/test_train.py", "third_party/old.py"]
    (project / "pyproject.toml").write_text("[tool.cudalint]\nselct = []\n", encoding="utf-8")
    assert run("check").returncode == 2
    assert found(run, "--isolated", "train.py") == [f"{project.name}/train.py"]
    for wrong, words in (
        (("--config", "nothing.toml"), "nothing.toml: it cannot be read: No such file or directory"),
        (("--config", "pyproject.toml"), "unknown key 'selct'"),
        (("--config", "other/strict.toml", "--isolated"), "leave out one"),
    ):
        done = run("check", *wrong)
        assert (done.returncode, done.stdout, words in done.stderr) == (2, "", True)


def test_the_report_goes_to_a_file(run: Run, project: Path) -> None:
    shown = run("check", "--output-format", "sarif")
    done = run("check", "--output-format", "sarif", "--output-file", "out.sarif")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")
    assert (project / "out.sarif").read_text(encoding="utf-8") == shown.stdout
    done = run("check", "-o", "nowhere/out.txt")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "cudalint: error: nowhere/out.txt cannot be written: No such file or directory\n"


@pytest.mark.parametrize("name", ["train.py", "new.ipynb", "pyproject.toml", "link.txt", ""])
def test_no_report_takes_the_place_of_what_is_read(run: Run, project: Path, name: str) -> None:
    (project / "new.ipynb").write_text("{}", encoding="utf-8")
    (project / "link.txt").symlink_to("train.py")
    before = {path: path.read_bytes() for path in project.iterdir() if path.is_file()}
    words = f"{name} is not a report, and would be overwritten" if name else "it names no file"
    for command in ("check", "map"):
        done = run(command, "-o", name)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"cudalint: error: invalid value for '-o' / '--output-file': {words}\n"
    assert {path: path.read_bytes() for path in project.iterdir() if path.is_file()} == before
    assert run("check", "-o", "report.py").returncode == 1  # which is no program of anybody yet
    assert "CUD101" in (project / "report.py").read_text(encoding="utf-8")


def test_no_report_takes_the_place_of_the_baseline(run: Run, project: Path) -> None:
    run("check", "--write-baseline", "known.json")
    before = (project / "known.json").read_bytes()
    done = run("check", "--baseline", "known.json", "-o", "./known.json")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "cudalint: error: ./known.json is the baseline of this run: write the report to another file\n"
    )
    assert (project / "known.json").read_bytes() == before


def test_what_is_complained_of_is_quoted_as_far_as_anybody_reads(run: Run, project: Path) -> None:
    (project / "pyproject.toml").write_text(f"[tool.cudalint]\nselect = ['{'A' * 1_000_000}']\n", encoding="utf-8")
    done = run("check")
    assert (done.returncode, done.stdout) == (2, "")
    assert "unknown rule 'AAA" in done.stderr
    assert done.stderr.endswith("AAA...\n")
    assert len(done.stderr) < 10_000


def test_quiet_prints_findings_and_errors_only(run: Run, project: Path) -> None:
    assert run("check", "-q", "--extend-exclude", "*.py").stderr == ""
    assert run("check", "-q", "--isolated", "--select", "CUD2").stdout == ""
    rows = run("check", "--quiet", "--output-format", "concise").stdout.splitlines()
    assert [row.split(":")[0] for row in rows] == ["tests/test_train.py", "train.py"]
    assert run("check", "-q", "nothing.py").stderr == "cudalint: error: no such file or directory: nothing.py\n"
    assert run("check", "-q", "--fix-only", "--unsafe-fixes").stderr == ""


def test_a_run_about_nothing_says_so(run: Run, project: Path) -> None:
    (project / "docs").mkdir()
    (project / "docs" / "a.md").touch()
    for output_format in ("full", "json"):
        done = run("check", "docs", "--output-format", output_format)
        assert (done.returncode, done.stderr) == (0, "cudalint: warning: no Python file found under docs\n")
    (project / "bin").mkdir()
    for _ in range(2):  # the second time from the cache
        done = run("check", "train.py", "docs", "tests", "bin")
        assert (done.returncode, done.stderr) == (1, "cudalint: warning: no Python file found under docs, bin\n")
    for select in ("", " ", ","):
        done = run("check", "--select", select)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == "cudalint: error: --select names no rule\n"
    (project / "pyproject.toml").write_text("[tool.cudalint]\nselect = []\n", encoding="utf-8")
    done = run("check")
    assert (done.returncode, done.stdout) == (0, "All checks passed!\n")
    assert done.stderr == "cudalint: warning: no rule is selected, so nothing is looked for\n"


@pytest.mark.parametrize("named", [("third_party/old.py",), ("third_party",), ("./third_party/../third_party/old.py",)])
def test_what_is_left_out_on_purpose_is_not_missed(run: Run, project: Path, named: tuple[str, ...]) -> None:
    """A hook for commits names the files of the commit, and it may be that all of them are excluded."""
    done = run("check", "--force-exclude", *named)
    assert (done.returncode, done.stdout, done.stderr) == (0, "Nothing was checked.\n", "")
    (project / "docs").mkdir()
    done = run("check", "--force-exclude", *named, "docs")
    assert (done.returncode, done.stderr) == (0, "cudalint: warning: no Python file found under docs\n")
    inner = project / "inner"
    inner.mkdir()
    (inner / "pyproject.toml").write_text('[tool.cudalint]\nextend-exclude = ["gen"]\n', encoding="utf-8")
    (inner / "gen").mkdir()
    (inner / "gen" / "a.py").touch()
    done = run("check", "--force-exclude", *named, "inner/gen/a.py")
    assert (done.returncode, done.stderr) == (0, "")


def test_programs_by_other_names(run: Run, project: Path, forked: str) -> None:
    scripts = {
        "gui.pyw": ("", 0o644),
        "bin/train": ("#!/usr/bin/env python3\n", 0o755),
        "bin/serve": ("#!/opt/venv/bin/python -u\r\n", 0o755),
        "bin/shell": ("#!/bin/sh\n", 0o755),
        "bin/data": ("#!/usr/bin/env python3\n", 0o644),
        "bin/plain": ("", 0o755),
        "bin/train.sh": ("#!/usr/bin/env python3\n", 0o755),
    }
    (project / "bin").mkdir()
    for name, (first, mode) in scripts.items():
        (project / name).write_text(first + forked, encoding="utf-8", newline="")
        (project / name).chmod(mode)
    (project / "bin" / "pipe").symlink_to("/dev/zero")
    (project / "bin" / "binary").write_bytes(b"\x7fELF\0python")
    (project / "bin" / "binary").chmod(0o755)
    assert found(run, "bin", "gui.pyw") == ["bin/serve", "bin/train", f"{project.name}/gui.pyw"]
    assert "gui.pyw" in files(run, project)
    assert found(run, "bin/data") == ["bin/data"]
    assert found(run, "--exclude", "bin,tests,third_party,train.py") == [f"{project.name}/gui.pyw"]


def test_repairs_of_files_that_are_not_checked_are_not_offered(run: Run, tmp_path: Path) -> None:
    for name, text in {
        "lib/launching.py": "import multiprocessing as mp\n\n\ndef run(function, items):\n"
        '    with mp.get_context("fork").Pool(2) as pool:\n        return pool.map(function, items)\n',
        "project/main.py": "import torch\nfrom launching import run\n\n\ndef work(n):\n"
        '    return torch.ones(n, device="cuda").sum().item()\n\n\nif __name__ == "__main__":\n'
        "    torch.cuda.init()\n    print(run(work, [1, 2]))\n",
        "project/pyproject.toml": '[tool.cudalint]\nextra-paths = ["../lib"]\n',
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    project, aside = tmp_path / "project", "1 repair would change files that are not checked here.\n"
    assert run("check", cwd=project).stdout.endswith(f"Found 1 error in 1 file.\n{aside}")
    assert run("check", "--fix", cwd=project).stdout.endswith(f"Found 1 error in 1 file.\n{aside}")
    assert run("check", "--diff", cwd=project).stderr.endswith("Would make 0 repairs.\n")
    (project / "pyproject.toml").write_text("[project]\n", encoding="utf-8")
    (tmp_path / "lib/launching.py").rename(project / "launching.py")
    assert run("check", "main.py", cwd=project).stdout.endswith(aside)
    assert run("check", cwd=project).stdout.endswith("You can have 1 repair with --fix (--diff shows what).\n")


WHOLE = "a baseline is about the whole project: leave out --since"
SILENCES = "--add-noqa silences findings: leave out --fix, --diff and --write-baseline"
CHECKS = "--watch checks: leave out what repairs, silences, lists or keeps"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--since", "HEAD", "--write-baseline", "known.json"), WHOLE),
        (("--since", "HEAD", "--prune-baseline"), WHOLE),
        *((("--add-noqa", *other), SILENCES) for other in (("--fix",), ("--fix-only",), ("--diff",))),
        (("--add-noqa", "--write-baseline", "known.json"), SILENCES),
        *((("--watch", *other), CHECKS) for other in (("--fix",), ("--fix-only",), ("--diff",), ("--show-files",))),
        (("--watch", "--add-noqa"), CHECKS),
        (("--watch", "--write-baseline", "known.json"), CHECKS),
        (("--prune-baseline",), "--prune-baseline needs a baseline: --baseline FILE, or the key in the configuration"),
        (("--write-baseline", "known.json", "-"), "standard input is not part of a project, so it has no baseline"),
        (("--watch", "-"), "--watch waits for files to change: standard input is none"),
        (("--watch", "--stdin-filename", "a.py", "-"), "--watch waits for files to change: standard input is none"),
    ],
)
def test_options_that_contradict_one_another_are_refused(
    run: Run, tmp_path: Path, options: tuple[str, ...], said: str
) -> None:
    (tmp_path / "a.py").write_text("import torch\n", encoding="utf-8")
    done = run("check", *options)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"cudalint: error: {said}\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.py"]
