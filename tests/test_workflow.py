"""What a run says and how it ends, in the manners of other linters: colour, waiting, exit codes, severities, pages."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import pytest
from command_line import call
from conftest import PINNED

from cudalint.hosts.progress import Progress

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def program(tmp_path: Path, forked: str) -> Path:
    path = tmp_path / "train.py"
    path.write_text(forked, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("options", "environment", "is_coloured"),
    [
        ((), {}, False),
        (("--color=always",), {"NO_COLOR": "1"}, True),
        (("--color=never",), {"FORCE_COLOR": "1"}, False),
        ((), {"FORCE_COLOR": "1"}, True),
        ((), {"FORCE_COLOR": "0"}, False),
        ((), {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (("--color=auto",), {"FORCE_COLOR": "1"}, True),
        (("--color=always", "--diff", "--unsafe-fixes"), {}, True),
    ],
)
def test_colour(program: Path, options: tuple[str, ...], environment: dict[str, str], is_coloured: bool) -> None:
    plain = {name: value for name, value in os.environ.items() if not name.endswith("_COLOR")}
    done = call(("check", *options), program.parent, plain | environment)
    assert "CUD101" in done.stdout or "--- a/train.py" in done.stdout
    assert ("\x1b[" in done.stdout) is is_coloured


@pytest.mark.parametrize("columns", ["0", "-1", "1", "x", "9" * 30])
def test_no_width_of_a_terminal_hides_a_finding(program: Path, columns: str) -> None:
    told = call(("check",), program.parent, dict(os.environ) | {"COLUMNS": "80"}).stdout
    assert "CUD101" in told
    assert call(("check",), program.parent, dict(os.environ) | {"COLUMNS": columns}).stdout == told


def test_an_unknown_way_of_colouring(run: Run, program: Path) -> None:
    done = run("check", "--color=alway")
    said = "unknown value 'alway' of --color: expected one of auto, always, never (did you mean 'always'?)"
    assert (done.returncode, done.stderr) == (2, f"cudalint: error: {said}\n")


@contextmanager
def terminal() -> Iterator[tuple[TextIO, Callable[[], str], Callable[[], str]]]:
    """A terminal to write to, a way to wait for what comes first, and one to close it and read the rest."""
    ours, theirs = pty.openpty()
    stream = os.fdopen(theirs, "w", encoding="utf-8")

    def written() -> str:
        stream.close()
        parts = b""
        try:
            while part := os.read(ours, 4096):
                parts += part
        except OSError:  # how Linux says that the other side has closed the terminal
            pass
        return parts.decode()

    yield stream, lambda: os.read(ours, 4096).decode(), written
    os.close(ours)


def test_who_waits_is_told_and_nothing_is_left_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    with terminal() as (stream, first, written):
        with Progress(stream, "checking", patience=0.01):
            assert first().startswith("\r\x1b[Kcudalint: checking (")
        assert written().endswith("\r\x1b[K")


@pytest.mark.parametrize(("wanted", "term", "patience"), [(False, "xterm", 0), (True, "dumb", 0), (True, "xterm", 60)])
def test_who_does_not_wait_or_want_it_is_told_nothing(
    monkeypatch: pytest.MonkeyPatch, wanted: bool, term: str, patience: float
) -> None:
    monkeypatch.setenv("TERM", term)
    with terminal() as (stream, _, written):
        with Progress(stream, "checking", wanted=wanted, patience=patience):
            time.sleep(0.05)
        assert written() == ""


def test_a_pipe_and_a_terminal_that_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    pipe = io.StringIO()
    with Progress(pipe, "checking", patience=0):
        time.sleep(0.05)
    assert pipe.getvalue() == ""
    ours, theirs = pty.openpty()
    stream = os.fdopen(theirs, "w", encoding="utf-8")
    with Progress(stream, "checking", patience=0.05):
        os.close(ours)
        time.sleep(0.2)
    with contextlib.suppress(OSError):
        stream.close()
    assert not [one for one in threading.enumerate() if one.name == "cudalint-progress"]


@pytest.mark.parametrize("command", ["--fix", "--fix-only"])
def test_repairs_may_count_like_findings(run: Run, tmp_path: Path, command: str) -> None:
    path = tmp_path / "pinned.py"
    for options, code in (((), 0), (("--exit-non-zero-on-fix",), 1)):
        path.write_text(PINNED, encoding="utf-8")
        assert run("check", command, *options).returncode == code
        assert run("check", command, *options).returncode == 0


def test_severities_are_what_the_project_says(run: Run, tmp_path: Path, program: Path) -> None:
    def settings(text: str) -> None:
        (tmp_path / "pyproject.toml").write_text(f"[tool.cudalint.severity]\n{text}\n", encoding="utf-8")

    def severities() -> tuple[int, list[str]]:
        done = run("check", "--output-format=json")
        return done.returncode, [entry["severity"] for entry in json.loads(done.stdout)]

    assert severities() == (1, ["error"])
    settings('CUD101 = "note"')
    assert severities() == (0, ["note"])
    assert run("check").stdout.startswith("note[CUD101]: ")
    settings('ALL = "error"\nCUD = "note"\nCUD1 = "warning"')
    assert severities() == (1, ["warning"])
    assert run("check", "--fail-on=error").returncode == 0
    shown = run("config").stdout
    assert 'severity = {"ALL" = "error", "CUD" = "note", "CUD1" = "warning"}\n' in shown
    (tmp_path / "pinned.py").write_text("import torch\nx = 1  # noqa: CUD101\n", encoding="utf-8")
    settings('CUD1 = "note"\nCUD902 = "note"')
    assert severities() == (0, ["note", "note"])


def test_another_severity_changes_no_repair(run: Run, tmp_path: Path) -> None:
    (tmp_path / "pinned.py").write_text(PINNED, encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text('[tool.cudalint.severity]\nCUD403 = "note"\n', encoding="utf-8")
    (entry,) = json.loads(run("check", "--output-format=json").stdout)
    assert (entry["severity"], entry["fix"]["applicability"]) == ("note", "safe")
    assert run("check", "--fix-only").stderr == "Made 1 repair.\n"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('CUD999 = "note"', "unknown rule 'CUD999' in severity"),
        ('CUD101 = "fatal"', "unknown severity of CUD101 'fatal': expected one of note, warning, error"),
        ("CUD101 = 1", "severity of 'CUD101' must be note, warning or error"),
        ('"" = "note"', "severity of '' must be note, warning or error"),
    ],
)
def test_a_severity_that_is_none(run: Run, tmp_path: Path, line: str, words: str) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.cudalint.severity]\n{line}\n", encoding="utf-8")
    done = run("check")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert words in done.stderr


def test_rules_by_name_and_by_prefix(run: Run) -> None:
    assert run("rule", "cuda-in-forked-worker").stdout == run("rule", "CUD101").stdout
    assert run("rule", "Cuda-In-Forked-Worker").stdout == run("rule", "cud101").stdout
    rows = run("rule", "cud90").stdout.splitlines()
    assert [row.split(":")[0] for row in rows] == [
        "CUD900  error    internal-error",
        "CUD901  error    syntax-error",
        "CUD902  warning  unused-suppression",
    ]
    listed = json.loads(run("rule", "CUD90", "--output-format=json").stdout)
    assert [one["code"] for one in listed] == ["CUD900", "CUD901", "CUD902"]
    assert "did you mean 'cuda-in-forked-worker'?" in run("rule", "cuda-in-forked-workers").stderr
    for unknown in ("", "X", "CUD7"):
        assert run("rule", unknown).returncode == 2


def test_explain_shows_the_findings_at_a_line(run: Run, program: Path) -> None:
    rows = run("explain", "train.py:12").stdout.splitlines()
    assert any(row.startswith("error[CUD101] at 12:11: torch.ones() in a worker") for row in rows)
    assert any(row.startswith("effect of CUD101 at train.py:12:11, in ") for row in run_rows(run, "train.py:7"))
    assert any(row.startswith("cause of CUD101 at train.py:12:11, in main") for row in run_rows(run, "train.py:11"))
    assert run_rows(run, "train.py:2") == ["train.py:2: nothing is known to happen to CUDA or processes here"]


def run_rows(run: Run, place: str) -> list[str]:
    return run("explain", place).stdout.splitlines()


@pytest.mark.parametrize(("text", "rows"), [("x = 1\n", 1), ("x = 1", 1), ("", 1), ("\r\n\r\n", 2), ("a\rb", 2)])
def test_a_line_that_is_not_there(run: Run, tmp_path: Path, text: str, rows: int) -> None:
    (tmp_path / "a.py").write_bytes(text.encode())
    assert run("explain", f"a.py:{rows}").returncode == 0
    done = run("explain", f"a.py:{rows + 1}")
    assert (done.returncode, done.stdout) == (2, "")
    said = f"a.py has no line {rows + 1}: it has {rows} line{'' if rows == 1 else 's'}"
    assert done.stderr == f"cudalint: error: {said}\n"


def test_patterns_that_are_none(run: Run, program: Path) -> None:
    for options in (("--exclude", "[z-a]"), ("--extend-exclude", "x,[z-a]"), ("--per-file-ignores", "[z-a]:CUD1")):
        done = run("check", *options)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert "invalid pattern '[z-a]'" in done.stderr
