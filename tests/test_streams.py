"""What leaves cudalint: readers that go away, disks that are full, and text that would command a terminal or a CI."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import environment

Run = Callable[..., "subprocess.CompletedProcess[str]"]

PINNED = """\
import torch
from torch.utils.data import DataLoader, TensorDataset

NOTE = '''
::error title=owned::by a source line
##[add-matcher]owned \x1b]0;title\x07 \u202e
'''
data = TensorDataset(torch.ones(8, 2, device="cuda"))
for (batch,) in DataLoader(data, batch_size=4, pin_memory=True):  # \x1b[2J ##[group]owned
    print(batch.sum())
"""
# A name that would write over what was said, and one that begins a line with a command for the runner.
NAMES = (
    "clear\x1b[2J\x1b[1;1H.py",
    "line\n::error title=owned::by a name.py",
    "::error title=owned::x.py",
    "##[group]g.py",
)
COMMAND = [sys.executable, "-m", "cudalint"]


def ends(folder: Path, *arguments: str, stdout: int, stderr: int = subprocess.PIPE) -> tuple[int, str]:
    """The exit code and the errors of a command line whose output goes to a descriptor."""
    given = {"stdout": stdout, "stderr": stderr, "stdin": subprocess.DEVNULL}
    done = subprocess.run(
        [*COMMAND, *arguments], cwd=folder, env=environment(), text=True, timeout=60, check=False, **given
    )
    return done.returncode, done.stderr or ""


def without_reader() -> int:
    """The writing end of a pipe whose reader has gone."""
    reader, writer = os.pipe()
    os.close(reader)
    return writer


@pytest.fixture
def project(tmp_path: Path, forked: str) -> Path:
    (tmp_path / "train.py").write_text(forked, encoding="utf-8")
    (tmp_path / "pinned.py").write_text(PINNED, encoding="utf-8")
    return tmp_path


@pytest.fixture
def unused(tmp_path: Path) -> Path:
    """A finding that needs no analysis: a comment that silences nothing."""
    (tmp_path / "train.py").write_text("x = 1  # noqa: CUD101\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("check",), 1),
        (("check", "--output-format", "json"), 1),
        (("check", "--statistics"), 1),
        (("check", "--exit-zero"), 0),
        (("check", "--diff"), 1),
        (("rule", "--all"), 0),
        (("--help",), 0),
    ],
)
def test_a_reader_that_has_gone_changes_no_exit_code(
    request: pytest.FixtureRequest, arguments: tuple[str, ...], code: int
) -> None:
    # A patch takes a finding that can be repaired; the others tell of any.
    project = request.getfixturevalue("project" if "--diff" in arguments else "unused")
    writer = without_reader()
    ended, errors = ends(project, *arguments, stdout=writer)
    os.close(writer)
    assert ended == code
    assert "Traceback" not in errors
    assert "error" not in errors


def test_neither_stream_has_a_reader(unused: Path) -> None:
    writer = without_reader()
    assert ends(unused, "check", "--verbose", stdout=writer, stderr=writer) == (1, "")
    os.close(writer)


def test_a_terminal_that_was_closed(unused: Path) -> None:
    ours, theirs = os.openpty()
    os.close(ours)
    assert ends(unused, "check", stdout=theirs, stderr=theirs)[0] == 1
    os.close(theirs)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_full_disk_is_an_error(unused: Path) -> None:
    with open("/dev/full", "wb") as full:
        code, errors = ends(unused, "check", stdout=full.fileno())
    assert (code, errors) == (2, "cudalint: error: the output cannot be written: No space left on device\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
@pytest.mark.parametrize("asked", [["--help"], ["check", "--help"], ["--version"]], ids=" ".join)
def test_a_full_disk_takes_no_help(unused: Path, asked: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMAND, *asked], cwd=unused, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    said = "cudalint: error: the output cannot be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (2, said)


def test_standard_input_that_cannot_be_read(tmp_path: Path) -> None:
    closed = subprocess.run(
        ["sh", "-c", '"$@" <&-', "sh", *COMMAND, "check", "-"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (closed.returncode, closed.stderr) == (2, "cudalint: error: standard input is closed\n")


def test_the_current_folder_is_gone(tmp_path: Path) -> None:
    script = 'mkdir gone && cd gone && rmdir ../gone && exec "$@"'
    done = subprocess.run(
        ["sh", "-c", script, "sh", *COMMAND, "check"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr == "cudalint: error: the current folder does not exist any more\n"


def harmless(text: str) -> None:
    """Nothing in a text moves a cursor, turns the direction of writing, or begins or holds a command of a runner."""
    odd = [c for c in text if not c.isprintable() and c not in "\n\t"]
    assert odd == []
    # Rows of a path begin with ``:::``, which names the command ``:``, and there is none of that name.
    assert [row for row in text.splitlines() if re.match(r"\s*::(?!:)", row)] == []
    assert "##[" not in text


@pytest.mark.parametrize(
    "arguments", [(), ("--output-format", "concise"), ("--output-format", "grouped"), ("--fix",), ("--statistics",)]
)
def test_names_and_lines_give_no_commands(run: Run, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    for name in NAMES:
        (tmp_path / name).write_text(PINNED, encoding="utf-8")
        (tmp_path / name).chmod(0o444)
    (tmp_path / f"nothing{NAMES[1]}").symlink_to("nowhere")
    done = run("check", *arguments)
    assert "CUD403" in done.stdout
    assert "owned" in done.stdout + done.stderr
    harmless(done.stdout)
    harmless(done.stderr)
    harmless(run("check", f"no {NAMES[0]}{NAMES[1]}").stderr)
    harmless(run("explain", f"{NAMES[1]}:9").stdout)


def test_github_gets_its_own_commands_and_no_others(run: Run, tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / name).write_text(PINNED, encoding="utf-8")
    rows = run("check", "--output-format", "github").stdout.splitlines()
    assert len(rows) == len(NAMES)
    assert all(row.startswith("::error title=cudalint (CUD403),file=") for row in rows)
    assert all(row.isprintable() and "##[" not in row for row in rows)


def test_flake8_gets_harmless_messages(tmp_path: Path) -> None:
    from cudalint.hosts.flake8_plugin import Plugin

    text = 'import torch\nx = "\x1b[2J"\n'
    (tmp_path / "pyproject.toml").write_text('[tool.cudalint]\n"a\\u001b[2J" = 1\n', encoding="utf-8")
    lines = text.splitlines(keepends=True)
    ((*_, told, _),) = Plugin(None, lines, str(tmp_path / "a.py")).run()  # type: ignore[arg-type]
    assert "CUD900" in told
    harmless(told)


def test_json_is_text_for_strict_parsers_and_terminals(run: Run, tmp_path: Path) -> None:
    name = f"\x7f\x9b2J\u202e{os.fsdecode(bytes([255]))}.py"
    (tmp_path / name).write_text("def f(:\n", encoding="utf-8")
    for output_format in ("json", "sarif"):
        shown = run("check", "--output-format", output_format).stdout
        harmless(shown)
        shown.encode("utf-8")
        json.loads(shown)


def test_a_patch_on_a_terminal_is_harmless_and_elsewhere_exact(run: Run, child: Run, tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / name).write_text(PINNED, encoding="utf-8")
    ours, theirs = os.openpty()
    # A terminal without commands, so that nobody who waits is told how long.
    told = {**environment(), "NO_COLOR": "1", "TERM": "dumb"}
    with subprocess.Popen([*COMMAND, "check", "--diff"], cwd=tmp_path, env=told, stdout=theirs, stderr=theirs) as shown:
        os.close(theirs)
        seen = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:
                break
            if not part:
                break
            seen += part
    os.close(ours)
    assert shown.returncode == 1
    rows = seen.decode().replace("\r\n", "\n")
    assert "pin_memory" in rows
    assert [c for c in rows if not c.isprintable() and c not in "\n\t"] == []

    told = child("check", "--diff", env={"GITHUB_ACTIONS": "true"}).stdout
    first, *_, last = told.splitlines()
    assert first.startswith("::stop-commands::")
    assert last == f"::{first.removeprefix('::stop-commands::')}::"
    git = ["git", "apply", "-"]
    patched = subprocess.run(git, cwd=tmp_path, input=told, encoding="utf-8", capture_output=True, check=False)
    assert patched.returncode == 0, patched.stderr
    for name in NAMES:
        assert (tmp_path / name).read_text(encoding="utf-8") == PINNED.replace(", pin_memory=True", "")


def test_every_format_says_when_a_finding_holds(run: Run, tmp_path: Path, forked: str) -> None:
    from cudalint.hosts.flake8_plugin import Plugin

    either = forked.replace('.get_context("fork")', "").replace("Pool(1)", "Pool(2)")
    (tmp_path / "either.py").write_text(either, encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text('[project]\nrequires-python = ">=3.12"\n', encoding="utf-8")
    conditions = {e["code"]: e["condition"] for e in json.loads(run("check", "--output-format", "json").stdout)}
    assert conditions.keys() >= {"CUD101", "CUD201"}
    assert all(conditions.values())
    for output_format in ("full", "concise", "github", "sarif", "gitlab", "junit", "rdjson", "grouped", "json-lines"):
        shown = run("check", "--output-format", output_format).stdout
        assert [words for words in conditions.values() if words not in shown] == [], output_format
    lines = either.splitlines(keepends=True)
    told = [text for *_, text, _ in Plugin(None, lines, str(tmp_path / "either.py")).run()]  # type: ignore[arg-type]
    assert sorted(conditions) == [text.split()[0] for text in sorted(told)]
    assert all(conditions[text.split()[0]] in text for text in told)
