"""The command line as users meet it: exit codes, streams, messages."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cudalint import __version__, rules

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def program(tmp_path: Path, forked: str) -> Path:
    return write(tmp_path / "train.py", forked)


def test_a_clean_tree_is_zero(process: Run, tmp_path: Path) -> None:
    write(tmp_path / "a.py", "x = 1\n")
    done = process("check")
    assert (done.returncode, done.stdout, done.stderr) == (0, "All checks passed!\n", "")


def test_a_finding_is_one_and_shows_where_and_why(process: Run, program: Path) -> None:
    done = process("check", program.name)
    assert done.returncode == 1
    assert "error[CUD101]" in done.stdout
    assert "--> train.py:12:11" in done.stdout
    assert "cudalint rule CUD101" in done.stdout
    assert "Found 1 error in 1 file.\n" in done.stdout
    assert "\x1b" not in done.stdout
    assert done.stderr == ""


def test_json_is_parsable_and_absolute(run: Run, program: Path) -> None:
    done = run("check", "--output-format", "json", ".")
    (entry,) = json.loads(done.stdout)
    assert (entry["code"], entry["severity"], entry["name"]) == ("CUD101", "error", "cuda-in-forked-worker")
    assert entry["filename"] == str(program)
    assert entry["location"] == {"row": 12, "column": 11}
    assert {step["kind"] for step in entry["trace"]} >= {"cause", "launch", "effect"}


def test_concise_and_statistics(run: Run, program: Path) -> None:
    assert run("check", "--output-format=concise").stdout.startswith("train.py:12:11: CUD101 ")
    assert run("check", "--statistics").stdout == "1\tCUD101\tcuda-in-forked-worker\n"
    counted = run("check", "--statistics", "--output-format", "json").stdout
    assert json.loads(counted) == [{"code": "CUD101", "name": "cuda-in-forked-worker", "count": 1, "notes": 0}]


@pytest.mark.parametrize("name", ["sarif", "gitlab", "junit", "rdjson", "json-lines", "github"])
def test_no_report_for_programs_is_replaced_by_counts(run: Run, program: Path, name: str) -> None:
    done = run("check", "--statistics", "--output-format", name)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"counts are shown as text or json: leave out --output-format {name}" in done.stderr


def test_select_ignore_and_exit_zero(run: Run, program: Path) -> None:
    assert run("check", "--select", "CUD2,CUD3").returncode == 0
    assert run("check", "--ignore", "CUD101").returncode == 0
    assert run("check", "--select", "CUD1", "--ignore", "CUD102").returncode == 1
    assert run("check", "--ignore", "CUD1", "--extend-select", "CUD101").returncode == 1
    assert run("check", "--exit-zero").returncode == 0


def test_noqa_on_any_line_of_the_call(run: Run, tmp_path: Path, forked: str) -> None:
    call = ".map(work, [1, 2, 3])"
    for comment in ("# noqa", "# noqa: CUD101", "# noqa: CUD102", "# noqa: CUD1,E501"):
        write(
            tmp_path / "train.py", forked.replace(f"{call})", f".map(\n        work,  {comment}\n        [1, 2, 3]))")
        )
        assert run("check").stdout == "All checks passed!\n", comment
    write(tmp_path / "train.py", forked.replace(f"{call})", f"{call})  # noqa: E501"))
    assert run("check").returncode == 1


def test_the_platform_decides_whether_a_default_forks(run: Run, tmp_path: Path, forked: str) -> None:
    write(tmp_path / "train.py", forked.replace('.get_context("fork")', ""))
    assert run("check").returncode == 1
    assert run("check", "--platform", "darwin").returncode == 0
    assert run("check", "--target-version", "3.14").returncode == 0


def test_standard_input(run: Run, process: Run, forked: str) -> None:
    done = process("check", "-", "--stdin-filename", "src/x.py", "--output-format", "concise", stdin=forked)
    assert done.returncode == 1
    assert done.stdout.startswith("src/x.py:12:11: CUD101 ")
    assert run("check", "-", stdin="x = 1\n").returncode == 0
    assert run("check", "-", stdin=forked + "# cudalint: noqa\n").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["chekc"], "unknown command 'chekc' (did you mean 'check'?)"),
        (["check", "--selct", "CUD1"], "unknown option --selct (did you mean '--select'?)"),
        (["check", "--select", "CUDA101"], "unknown rule 'CUDA101' in --select (did you mean 'CUD101'?)"),
        (["check", "--output-format", "jason"], "did you mean 'json'?"),
        (["check", "--platform", "windows"], "unknown platform 'windows'"),
        (["check", "--target-version", "2.7"], "unknown target-version '2.7'"),
        (["check", "--fail-on", "eror"], "did you mean 'error'?"),
        (["check", "nothing.py"], "no such file or directory: nothing.py"),
        (["check", "-", "."], "standard input (-) is checked alone"),
        (
            ["check", "--ignore", "cuda-in-forked-worker"],
            "unknown rule 'cuda-in-forked-worker' in --ignore (rules are selected by code: CUD101)",
        ),
        (["rule", "CUD110"], "unknown rule 'CUD110' (did you mean 'CUD108'?); cudalint rule CUD lists them"),
        (["rule"], "name one rule, or --all; cudalint rule CUD lists them"),
        (["explain", "x.py"], "expected FILE:LINE"),
        (["explain", "x.py:3"], "no such file or directory: x.py"),
        (["config", "nothing"], "no such file or directory: nothing"),
        (["--verify", "missing.py"], "no such file or directory: missing.py"),
        (["--verify", "--output-format", "tabel"], "unknown output format 'tabel'"),
        (["check", "--verify"], "unknown option --verify"),
        ([], "missing command"),
    ],
)
def test_what_cannot_be_done_is_two_and_one_line(run: Run, arguments: list[str], message: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("cudalint: error: ")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_bad_configuration_is_two(child: Run, tmp_path: Path) -> None:
    write(tmp_path / "pyproject.toml", '[tool.cudalint]\nignroe = ["CUD1"]\n')
    done = child("check")
    assert done.returncode == 2
    assert "unknown key 'ignroe' in [tool.cudalint] (did you mean 'ignore'?)" in done.stderr


def test_fail_on_comes_from_the_option_then_the_file(run: Run, tmp_path: Path) -> None:
    # An unused suppression is a warning that needs no analysis.
    write(tmp_path / "a.py", "x = 1  # noqa: CUD101\n")
    assert run("check").returncode == 1
    assert run("check", "--fail-on", "error").returncode == 0
    write(tmp_path / "pyproject.toml", '[tool.cudalint]\nfail-on = "error"\n')
    assert run("check").returncode == 0
    assert run("check", "--fail-on", "warning").returncode == 1


LATENT = """\
import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def run(rank):
    dist.init_process_group("nccl", init_method="tcp://127.0.0.1:29500", rank=rank, world_size=2)
    torch.cuda.set_device(rank)


if __name__ == "__main__":
    mp.spawn(run, nprocs=2)
"""


def test_a_note_is_shown_and_fails_only_where_it_is_meant_to(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "train.py", LATENT)
    done = run("check")
    assert done.returncode == 0
    assert done.stdout.startswith("note[CUD501]: ")
    assert "Found 1 note in 1 file.\n" in done.stdout
    assert run("check", "--fail-on", "note").returncode == 1
    assert run("check", "--fail-on", "error").returncode == 0
    write(tmp_path / "pyproject.toml", '[tool.cudalint]\nfail-on = "note"\n')
    assert run("check").returncode == 1
    assert run("check", "--fail-on", "warning").returncode == 0


@pytest.mark.parametrize("between", ["torch.ones(1, device='cuda')", "torch.nn.Linear(1, 1).cuda()"])
def test_what_uses_a_gpu_in_between_makes_a_warning_of_the_note(run: Run, tmp_path: Path, between: str) -> None:
    write(tmp_path / "train.py", LATENT.replace("    torch.cuda.set", f"    {between}\n    torch.cuda.set"))
    (found,) = json.loads(run("check", "--select", "CUD501", "--output-format", "json").stdout)
    assert found["severity"] == "warning"


def test_verbose_says_what_was_read(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "a.py", "x = 1\n")
    nothing = "parsed 0 (0 bytes), lowered 0 nodes, entered 0 functions, ran 0 entries, 0 cut"
    assert run("check", "--verbose").stderr == f"cudalint: read 1 files (6 bytes), {nothing}\n"


def test_a_number_of_processes_is_one_or_more(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("check", "--jobs", "2", "--no-cache").returncode == 0
    done = run("check", "-j", "0")
    assert done.returncode == 2
    assert "--jobs" in done.stderr
    monkeypatch.setenv("CUDALINT_JOBS", "many")
    done = run("check")
    assert done.returncode == 2
    assert "'many'" in done.stderr


def test_rule_pages(run: Run) -> None:
    assert run("rule", "cud101").stdout.startswith(rules.page("CUD101"))
    (first, *_) = listed = json.loads(run("rule", "--all", "--output-format", "json").stdout)
    assert [entry["code"] for entry in listed] == list(rules.codes())
    assert set(first) == {"code", "name", "severity", "summary", "explanation", "evidence"}
    assert json.loads(run("rule", "CUD501", "--output-format", "json").stdout)["severity"] == "warning"


def test_version_and_help(run: Run) -> None:
    assert run("--version").stdout == f"cudalint {__version__}\n"
    assert "--output-format" in run("check", "--help").stdout


def test_config_shows_where_it_comes_from(run: Run, tmp_path: Path) -> None:
    unmarked = "# no project root: what named files import from beside them is read too"
    assert run("config").stdout.splitlines()[:2] == ["# no pyproject.toml: all defaults", unmarked]
    write(tmp_path / "pyproject.toml", '[tool.cudalint]\nselect = ["CUD1"]\ntarget-version = "3.12"\n')
    shown = run("config").stdout
    assert str(tmp_path / "pyproject.toml") in shown
    assert 'select = ["CUD1"]' in shown
    assert 'target-version = "3.12"' in shown


def test_explain_answers_for_a_line(run: Run, program: Path) -> None:
    done = run("explain", "train.py:12")
    assert done.returncode == 0
    assert done.stdout.strip()


def on_terminal(program: Path, **environment: str) -> bytes:
    """What cudalint writes when its output is a terminal."""
    master, slave = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "cudalint", "check", program.name],
        cwd=program.parent,
        stdout=slave,
        env={key: value for key, value in os.environ.items() if key != "NO_COLOR"} | {"TERM": "xterm"} | environment,
    )
    os.close(slave)
    written = b""
    try:
        while part := os.read(master, 65536):
            written += part
    except OSError:  # how Linux says that the other side has closed the terminal
        pass
    os.close(master)
    child.wait(timeout=60)
    return written


def test_colour_on_a_terminal_only_and_never_with_no_color(tmp_path: Path) -> None:
    program = write(tmp_path / "a.py", "import torch\nx = 1  # noqa: CUD101\n")
    assert b"\x1b[" in on_terminal(program)
    assert b"\x1b[" not in on_terminal(program, NO_COLOR="1")


def test_output_that_the_terminal_cannot_show_is_escaped(tmp_path: Path) -> None:
    write(tmp_path / "é.py", "x = 1  # noqa: CUD101\n")
    done = subprocess.run(
        [sys.executable, "-m", "cudalint", "check", "--output-format", "concise"],
        cwd=tmp_path,
        capture_output=True,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        check=False,
    )
    assert done.returncode == 1
    assert b"\\xe9.py:1:8: CUD902" in done.stdout


def test_a_reader_that_goes_away_gets_no_traceback(tmp_path: Path) -> None:
    for number in range(2000):
        write(tmp_path / f"a{number}.py", "x = 1  # noqa: CUD101\n")
    line = f"{sys.executable} -m cudalint check --output-format concise | head -1"
    done = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""
