"""`[tool.cudalint.limits]`: what a run takes on of a file, and spends on it, is the user's to say."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]

HEAD = "import multiprocessing\nimport torch\n"
WORK = "def work(n):\n    return torch.ones(n, device='cuda').sum().item()\n"
LAUNCH = "    torch.cuda.init()\n    multiprocessing.Pool(2).map(work, [1, 2])\n"
MAIN = "if __name__ == '__main__':\n"


def chained(length: int) -> str:
    """A launch at the end of so many calls."""
    calls = "".join(f"def f{i}():\n    f{i + 1}()\n" for i in range(length))
    return f"{HEAD}{WORK}{calls}def f{length}():\n{LAUNCH}{MAIN}    f0()\n"


def doubling(length: int) -> str:
    """What takes two to the power of ``length`` steps, of which each does something."""
    calls = "".join(f"def f{i}(n):\n    f{i + 1}(2 * n)\n    f{i + 1}(2 * n + 1)\n" for i in range(length))
    return f"import os\n{HEAD}{WORK}{calls}def f{length}(n):\n    os.environ['N'] = str(n)\n{MAIN}    f0(1)\n{LAUNCH}"


def limits(folder: Path, text: str, **programs: str) -> None:
    (folder / "pyproject.toml").write_text(f"[tool.cudalint.limits]\n{text}\n", encoding="utf-8")
    for name, program in programs.items():
        (folder / f"{name}.py").write_text(program, encoding="utf-8")


def found(run: Run, *options: str) -> tuple[list[str], list[str]]:
    """The codes that a check of all files shows, by name of the file, and what was cut off."""
    done = run("check", "--output-format", "concise", "--verbose", *options, ".")
    shown = [row for row in done.stdout.splitlines() if ": CUD" in row]
    cut = [row for row in done.stderr.splitlines() if "cut off: " in row]
    return [f"{row.split(':')[0]} {row.split()[1]}" for row in shown], [row.rpartition("cut off: ")[2] for row in cut]


def test_what_a_file_may_weigh(run: Run, tmp_path: Path) -> None:
    padded = f"{HEAD}{WORK}{MAIN}{LAUNCH}" + "# pad\n" * 500
    limits(tmp_path, "file-size = 3_000", large=padded, small=f"{HEAD}{WORK}{MAIN}{LAUNCH}")
    assert found(run)[0] == ["large.py CUD901", "small.py CUD101"]
    assert f"it has {len(padded):,} bytes, more than 3,000" in run("check", ".").stdout
    limits(tmp_path, "")
    assert found(run)[0] == ["large.py CUD101", "small.py CUD101"]


@pytest.mark.parametrize(
    ("depth", "shown"), [(10, "train.py CUD102"), (40, "train.py CUD101"), (90, "train.py CUD101")]
)
def test_how_deep_calls_are_followed(run: Run, tmp_path: Path, depth: int, shown: str) -> None:
    """A launch that is too far away is one without a caller that is seen: a warning at most."""
    limits(tmp_path, f"depth = {depth}", train=chained(20))
    assert found(run) == ([shown], ["calls nested too deeply"] if depth < 20 else [])


def test_deeper_than_by_default(run: Run, tmp_path: Path) -> None:
    limits(tmp_path, "depth = 90", train=chained(60))
    assert found(run) == (["train.py CUD101"], [])
    limits(tmp_path, "", train=chained(60))
    assert found(run) == (["train.py CUD102"], ["calls nested too deeply"])


def test_how_many_steps_are_made(run: Run, tmp_path: Path) -> None:
    limits(tmp_path, "steps = 100", train=doubling(7))
    assert found(run) == ([], ["more than 100 steps"])
    assert run("check").stdout == "All checks passed! (1 time an analysis was cut off: --verbose says where)\n"
    limits(tmp_path, "", train=doubling(7))
    assert found(run) == (["train.py CUD101"], [])
    limits(tmp_path, "steps = 600", train=doubling(9))
    assert found(run) == ([], ["more than 600 steps"])
    limits(tmp_path, "steps = 100_000")
    assert found(run) == (["train.py CUD101"], [])


def test_how_long_a_file_is_looked_at(run: Run, tmp_path: Path) -> None:
    """Of what a clock ended nothing is kept: the next run may have more luck. Others are looked at all the same."""
    limits(tmp_path, "steps = 1_000_000\nseconds = 1", endless=doubling(30), train=f"{HEAD}{WORK}{MAIN}{LAUNCH}")
    for _ in range(2):
        assert found(run) == (["train.py CUD101"], ["more than 1 s of processor time"])


def test_what_is_kept_by_other_limits_is_not_believed(child: Run, tmp_path: Path) -> None:
    asked = {"env": {"CUDALINT_NO_CACHE": "", "CUDALINT_CACHE_KEY": "ab" * 32}, "cwd": tmp_path}
    for depth, code in ((10, "CUD102"), (40, "CUD101"), (10, "CUD102")):
        limits(tmp_path, f"depth = {depth}", train=chained(20))
        assert f"[{code}]" in child("check", "train.py", **asked).stdout
    assert (tmp_path / ".cudalint_cache").exists()


def test_the_limits_in_force_are_shown(run: Run, tmp_path: Path) -> None:
    limits(tmp_path, "seconds = 5")
    shown = (
        "file-size = 5000000, depth = 40, steps = 12000, seconds = 5, context-files = 20000, context-size = 200000000"
    )
    assert f"limits = {{{shown}}}\n" in run("config").stdout


LAUNCHER = f"{HEAD}def launch(body):\n    torch.cuda.init()\n    multiprocessing.Pool(2).map(body, [1, 2])\n"
PROGRAM = f"import torch\nfrom helper import launch\n{WORK}{MAIN}    launch(work)\n"


def noted(run: Run, *options: str) -> list[str]:
    """What a run says of files that it did not read as context."""
    told = run("check", "--output-format", "concise", "--verbose", *options).stderr
    return [row for row in told.splitlines() if "context: the nearest" in row]


def test_the_nearest_files_are_read_as_context(run: Run, tmp_path: Path) -> None:
    """Of a project with too many files those are read that lie next to what is checked, and the run says so."""
    for name in ("a/one.py", "a/two.py", "z/deep/below/three.py", "near/helper.py", "near/train.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(LAUNCHER if name == "near/helper.py" else PROGRAM, encoding="utf-8")
    train = "near/train.py"
    limits(tmp_path, "context-files = 1")
    assert "[CUD101]" in run("check", train).stdout
    (told,) = noted(run, train)
    assert "in the project lies more than is read as context: the nearest 1 files of " in told
    limits(tmp_path, "context-size = 1")
    assert run("check", train).stdout == "All checks passed!\n"
    assert "the nearest 0 files of 0 bytes" in noted(run, train)[0]
    limits(tmp_path, "context-files = 4")
    assert "[CUD101]" in run("check", train).stdout
    assert not noted(run, train)


def test_what_is_checked_is_read_whatever_there_is(run: Run, tmp_path: Path) -> None:
    limits(tmp_path, "context-files = 1\ncontext-size = 1", helper=LAUNCHER, train=PROGRAM, other="", more="")
    assert "[CUD101]" in run("check", ".").stdout
    assert not noted(run, ".")


@pytest.mark.parametrize("bound", ["context-files = 20", "context-size = 6_000"])
def test_of_other_folders_is_read_what_is_imported(run: Run, tmp_path: Path, bound: str) -> None:
    """A folder that holds far more than a project needs, such as all that is installed, costs no more than that."""
    project, library = tmp_path / "project", tmp_path / "library"
    (library / "deep" / "down").mkdir(parents=True)
    project.mkdir()
    for number in range(30):
        (library / f"a{number}.py").write_text(f"import torch\nx = {number}\n# {'pad ' * 20}\n", encoding="utf-8")
    (library / "deep" / "down" / "helper.py").write_text(LAUNCHER, encoding="utf-8")
    (project / "train.py").write_text(PROGRAM.replace("from helper", "from deep.down.helper"), encoding="utf-8")
    settings = project / "pyproject.toml"
    settings.write_text(
        f'[tool.cudalint]\nextra-paths = ["../library"]\nlimits = {{{bound.replace(chr(10), ", ")}}}\n',
        encoding="utf-8",
    )
    assert "[CUD101]" in run("check", "project").stdout
    (told,) = noted(run, "project")
    assert "outside of the project lies more than is read as context" in told
    read = next(row for row in run("check", "--verbose", "project").stderr.splitlines() if ": read " in row)
    assert int(read.split(": read ")[1].split()[0]) < 10
    settings.write_text('[tool.cudalint]\nextra-paths = ["../library"]\n', encoding="utf-8")
    assert "[CUD101]" in run("check", "project").stdout
    assert not noted(run, "project")


def test_folders_without_programs_are_not_searched_for_ever(run: Run, tmp_path: Path) -> None:
    """A named folder of data: it is left where it holds too many folders, and what is imported is read."""
    project, data = tmp_path / "project", tmp_path / "data"
    project.mkdir()
    for number in range(60):
        (data / f"d{number:02}" / "more").mkdir(parents=True)
    (data / "d59" / "more" / "far.py").write_text("import torch\n", encoding="utf-8")
    (data / "helper.py").write_text(LAUNCHER, encoding="utf-8")
    (project / "train.py").write_text(PROGRAM, encoding="utf-8")
    (project / "pyproject.toml").write_text(
        '[tool.cudalint]\nextra-paths = ["../data"]\nlimits = {context-files = 60}\n', encoding="utf-8"
    )
    assert "[CUD101]" in run("check", "project").stdout
    assert len(noted(run, "project")) == 1


def test_beside_files_without_a_project_is_read_what_they_import(run: Run, tmp_path: Path) -> None:
    for name, text in (("helper", LAUNCHER), ("other", "x = 1\n"), ("train", PROGRAM)):
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    done = run("check", "--verbose", "train.py")
    assert "[CUD101]" in done.stdout
    assert ": read 2 files" in done.stderr
