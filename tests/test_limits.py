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
    assert "limits = {file-size = 5000000, depth = 40, steps = 12000, seconds = 5}\n" in run("config").stdout
