"""Comments for all that is found: where they go, and that nothing else of a file changes."""

from __future__ import annotations

import ast
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import call
from flake8.main import cli

from cudalint.config import Config
from cudalint.fixing.silence import silence_text
from cudalint.session import Session
from cudalint.text.noqa import Places

Run = Callable[..., "subprocess.CompletedProcess[str]"]

LAUNCH = 'multiprocessing.get_context("fork").Pool(1).map(work, [1, 2, 3])'


def silenced(run: Run, path: Path, text: str, *arguments: str) -> str:
    """What becomes of a program with one finding; the comment has to silence it, and a second run to change nothing."""
    path.write_bytes(text.encode())
    assert run("check", "--output-format=json").stdout != "[]\n"
    done = run("check", "--add-noqa", *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "Silenced 1 finding.\n")
    after = path.read_bytes()
    assert ast.dump(ast.parse(after)) == ast.dump(ast.parse(text))
    assert run("check").stdout == "All checks passed!\n"
    assert run("check", "--add-noqa").stderr == "Silenced 0 findings.\n"
    assert path.read_bytes() == after
    return after.decode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"print({LAUNCH})", f"print({LAUNCH})  # noqa: CUD101"),
        (f"print({LAUNCH})  ", f"print({LAUNCH})  # noqa: CUD101  "),
        (f"print({LAUNCH})  # all", f"print({LAUNCH})  # all  # noqa: CUD101"),
        (f"print({LAUNCH})  # noqa: E501", f"print({LAUNCH})  # noqa: E501, CUD101"),
        (f"print({LAUNCH})  # noqa:E501 # long", f"print({LAUNCH})  # noqa:E501, CUD101 # long"),
        (f"print({LAUNCH})  # NOQA: E501,F401", f"print({LAUNCH})  # NOQA: E501,F401, CUD101"),
        (f"print({LAUNCH})  # type: ignore", f"print({LAUNCH})  # type: ignore  # noqa: CUD101"),
        (f'print({LAUNCH}, "# noqa")', f'print({LAUNCH}, "# noqa")  # noqa: CUD101'),
        (f"print(  # one\n        {LAUNCH}\n    )", f"print(  # one\n        {LAUNCH}  # noqa: CUD101\n    )"),
        (
            "(multiprocessing.get_context('fork').Pool(1) \\\n        .map(work, [1,\n        2, 3]))",
            "(multiprocessing.get_context('fork').Pool(1) \\\n        .map(work, [1,  # noqa: CUD101\n        2, 3]))",
        ),
        (
            'multiprocessing.get_context("fork").Pool(1).map(work, [1, """\nx\n""".count("x")])',
            'multiprocessing.get_context("fork").Pool(1).map(work, [1, """\nx\n""".count("x")])  # noqa: CUD101',
        ),
    ],
)
def test_where_a_comment_goes(run: Run, tmp_path: Path, forked: str, before: str, after: str) -> None:
    text = forked.replace(f"print({LAUNCH})", before)
    assert before in text
    assert silenced(run, tmp_path / "train.py", text) == text.replace(before, after)


@pytest.mark.parametrize("end", ["\r\n", "\r", ""])
def test_ends_of_rows_stay(run: Run, tmp_path: Path, forked: str, end: str) -> None:
    text = forked.replace("\n", end) if end else forked.rstrip("\n")
    shown = silenced(run, tmp_path / "train.py", text)
    assert shown == text.replace(LAUNCH + ")", LAUNCH + ")  # noqa: CUD101")


@pytest.mark.parametrize(
    "start", [b"\xef\xbb\xbf", b"# coding: latin-1\n# Gr\xf6\xdfe\n", "# coding: cp1252\n# „Größe“\n".encode("cp1252")]
)
def test_encodings_stay(run: Run, tmp_path: Path, forked: str, start: bytes) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(start + forked.encode())
    assert run("check", "--add-noqa").returncode == 0
    assert path.read_bytes() == (start + forked.encode()).replace(b"3]))\n", b"3]))  # noqa: CUD101\n")


def test_reasons(run: Run, tmp_path: Path, forked: str) -> None:
    path = tmp_path / "train.py"
    shown = silenced(run, path, forked, ".")
    assert "  # noqa: CUD101\n" in shown
    path.write_text(forked.replace("3]))", "3]))  # noqa: E501"))
    assert run("check", "--add-noqa=H100 only: JIRA-12").returncode == 0
    assert "3]))  # noqa: E501, CUD101  # H100 only: JIRA-12\n" in path.read_text()
    assert run("check").returncode == 0
    for reason in ("two\nrows", "flake8: noqa"):
        done = run("check", f"--add-noqa={reason}")
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    path.write_bytes(b"# coding: latin-1\n" + forked.encode())
    done = run("check", "--add-noqa=\u20ac")
    assert done.returncode == 1
    assert "12" in done.stderr or "13" in done.stderr
    assert "CUD101 is left: the encoding of its file lacks a character of the reason" in done.stderr
    assert path.read_bytes() == b"# coding: latin-1\n" + forked.encode()


def test_several_findings_on_a_row_share_a_comment(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "pinned.py"
    text = (
        "import torch\nfrom torch.utils.data import DataLoader, TensorDataset\n\n\ndef main():\n"
        '    data = TensorDataset(torch.ones(8, 2, device="cuda"))\n'
        "    for (batch,) in DataLoader(data, batch_size=4, pin_memory=True, num_workers=2):\n"
        '        print(batch.sum())\n\n\nif __name__ == "__main__":\n    main()\n'
    )
    path.write_text(text)
    codes = sorted({row.split()[1] for row in run("check", "--output-format=concise", "-q").stdout.splitlines()})
    assert run("check", "--add-noqa").returncode == 0
    assert f"  # noqa: {', '.join(codes)}\n" in path.read_text()
    assert run("check").returncode == 0


def test_what_cannot_be_silenced_is_said(run: Run, tmp_path: Path, forked: str) -> None:
    (tmp_path / "broken.py").write_text("def f(:\n")
    (tmp_path / "pyproject.toml").touch()
    launch = f"print({LAUNCH})  # flake8: noqa: E501"
    (tmp_path / "train.py").write_text(forked.replace(f"print({LAUNCH})", launch))
    done = run("check", "--add-noqa")
    assert done.returncode == 1
    assert f"{tmp_path / 'broken.py'}:1: CUD901 is left: no comment can silence it" in done.stderr
    assert "train.py:12: CUD101 is left: no row of its call can hold a comment" in done.stderr
    assert (tmp_path / "train.py").read_text() == forked.replace(f"print({LAUNCH})", launch)


def test_a_file_that_was_not_named_is_not_written(run: Run, tmp_path: Path, forked: str) -> None:
    (tmp_path / "pyproject.toml").touch()
    work, main = forked.split("\n\nif __name__")
    (tmp_path / "work.py").write_text(work)
    imports = "import multiprocessing\n\nimport torch\nfrom work import work\n"
    (tmp_path / "train.py").write_text(f"{imports}\nif __name__{main}")
    before = (tmp_path / "train.py").read_text()
    done = run("check", "--add-noqa", "work.py")
    assert (done.returncode, (tmp_path / "train.py").read_text()) == (1, before)
    assert "CUD101 is left: its file was not named" in done.stderr
    (tmp_path / "train.py").chmod(0o444)
    done = run("check", "--add-noqa")
    assert (done.returncode, (tmp_path / "train.py").read_text()) == (2, before)
    assert "train.py is not changed: it is read-only" in done.stderr


def test_standard_input_goes_to_standard_output(run: Run, forked: str) -> None:
    done = run("check", "-", "--add-noqa", stdin=forked)
    assert (done.returncode, done.stderr) == (0, "Silenced 1 finding.\n")
    assert done.stdout == forked.replace("3]))\n", "3]))  # noqa: CUD101\n")
    assert run("check", "--add-noqa", "--fix").returncode == 2


def test_flake8_reads_the_comment_too(run: Run, tmp_path: Path, forked: str) -> None:
    (tmp_path / "train.py").write_text(forked)
    flake8 = ("--jobs=1", "--select=CUD", "train.py")
    assert "CUD101" in call(flake8, tmp_path, os.environ, program=cli.main).stdout
    run("check", "--add-noqa=known")
    done = call(flake8, tmp_path, os.environ, program=cli.main)
    assert (done.returncode, done.stdout) == (0, "")


FIXTURES = sorted((Path(__file__).parents[1] / "fixtures").rglob("*.py"))


@pytest.mark.parametrize("path", FIXTURES[::40], ids=lambda path: path.stem)
def test_programs_of_every_rule_stay_what_they_are(path: Path) -> None:
    data = path.read_bytes()
    session = Session(Config(exclude=()))
    done = silence_text(session, str(path), data, "known")
    after = done.changes[0].after if done.changes else data
    assert done.left == ()
    assert ast.dump(ast.parse(after)) == ast.dump(ast.parse(data))
    assert session.check_alone(str(path), after, repair=False).findings == ()


def test_no_row_inside_a_string_or_before_a_continued_one_takes_a_comment() -> None:
    text = 'a = """\nb\n"""\nc = 1 + \\\n  2  # x\nd = f"{a}" \'\'\'\nx\'\'\''
    places = Places(text)
    assert [row for row in range(10) if places.takes(row)] == [3, 5, 7]
    assert places.insertions(5, ["CUD101"]) == [(text.index("# x") + 3, "  # noqa: CUD101")]
