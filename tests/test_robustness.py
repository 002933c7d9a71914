"""Whatever lies in a tree: never a traceback, never a silent skip, and the other files are still checked."""

from __future__ import annotations

import ast
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cudalint import config
from cudalint.report.render import OutputFormat, Style, render
from cudalint.session import Session

Run = Callable[..., "subprocess.CompletedProcess[str]"]

HEAD = b"import torch\n"
BROKEN = {
    "bad_bytes": HEAD + b"x = '\xff\xfe'\n",
    "unknown_encoding": b"# coding: klingon\n" + HEAD,
    "utf16": "import torch\n".encode("utf-16"),
    "binary": b"\x7fELF\x02\x01\x00\x00" + bytes(range(256)),
    "syntax_error": HEAD + b"def work(n:\n    return n\n",
    "half_a_string": HEAD + b"x = '''\n",
    "bad_indent": HEAD + b"def f():\n  x = 1\n y = 2\n",
    "python_2": HEAD + b"print 'hello'\n",
    "syntax_error_without_markers": b"def f(:\n",
    "deep_without_markers": b"x = " + b"(" * 1000 + b"1" + b")" * 1000 + b"\n",
    "huge": HEAD + b"x = 1\n" * 2_000_000,
    "nested_brackets": HEAD + b"x = " + b"(" * 1000 + b"1" + b")" * 1000 + b"\n",
    "chained_calls": HEAD + b"x = a" + b".f()" * 5000 + b"\n",
    "long_sum": HEAD + b"x = " + b"1 + " * 50_000 + b"1\n",
    "many_lambdas": HEAD + b"x = " + b"lambda: " * 5_000 + b"1\n",
    "many_elifs": HEAD + b"if a:\n    pass\n" + b"elif a:\n    pass\n" * 20_000,
    "deep_blocks": HEAD + b"".join(b" " * depth + b"if a:\n" for depth in range(150)) + b" " * 150 + b"pass\n",
}
# What Python says a place of; the others are about the file as a whole.
PLACED = {"syntax_error", "half_a_string", "bad_indent", "python_2", "syntax_error_without_markers"}
HARMLESS = {
    "empty": b"",
    "only_a_comment": b"# torch",
    "no_newline_at_the_end": b"import torch",
    "only_a_mark": b"\xef\xbb\xbf",
    "old_mac": b"import torch\rx = 1\r",
    "form_feed": b"import torch\n\x0c\nx = 1\n",
    "tabs": b"import torch\nif x:\n\ty = 1\n",
    "latin_1": b"# coding: latin-1\nimport torch\nx = '\xe9'\n",
    "newest_syntax": b"import torch\ntype X[T] = list[T]\ndef f[T](x: T) -> T:\n    return x\n",
    "large_without_markers": b"x = 1\n" * 2_000_000,
    "names_that_are_no_ascii": "import torch\nfür = lambda größe: größe\n".encode(),
    "many_rows": b"import torch\n" + b"x = f(1, 2)\n" * 20_000,
    "a_large_table": b"import torch\nx = [\n" + b"    (1.5, -2.5, 'a'),\n" * 20_000 + b"]\n",
}


def check(run: Run, *arguments: str) -> tuple[int, list[dict[str, object]]]:
    done = run("check", "--output-format", "json", *arguments)
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_one_finding_and_costs_no_other(run: Run, tmp_path: Path, name: str) -> None:
    (tmp_path / "broken.py").write_bytes(BROKEN[name])
    (tmp_path / "other.py").write_text("import torch  # noqa: CUD101\n", encoding="utf-8")
    code, found = check(run)
    assert code == 1
    assert [(Path(str(entry["filename"])).name, entry["code"]) for entry in found] == [
        ("broken.py", "CUD901"),
        ("other.py", "CUD902"),
    ]
    row, column = _place(BROKEN[name]) if name in PLACED else (1, 1)
    assert found[0]["location"] == {"row": row, "column": column}
    assert found[0]["name"] == "syntax-error"
    assert "\n" not in str(found[0]["message"])


def _place(data: bytes) -> tuple[int | None, int | None]:
    """Where Python's own parser stops."""
    with pytest.raises(SyntaxError) as error:
        ast.parse(data)
    return error.value.lineno, error.value.offset


@pytest.mark.parametrize("head", ["", "import torch\n"], ids=["plain", "speaks of CUDA"])
@pytest.mark.parametrize(
    ("text", "row", "column", "words"),
    [
        ("x = (1,\n\ny = 2\n", 1, 5, "'(' was never closed"),
        ("é = (1]\n", 1, 7, "closing parenthesis ']' does not match opening parenthesis '('"),
        ("def f():\n    return 1 +\n", 2, 15, "invalid syntax"),
        ("x = 1\n\ny = 'abc\n", 3, 5, "unterminated string literal"),
    ],
)
def test_a_syntax_error_stands_where_python_says_in_its_words(
    run: Run, tmp_path: Path, head: str, text: str, row: int, column: int, words: str
) -> None:
    (tmp_path / "broken.py").write_text(head + text, encoding="utf-8")
    line = row + head.count("\n")
    assert run("check", "--output-format", "concise").stdout.splitlines()[0] == (
        f"broken.py:{line}:{column}: CUD901 cannot parse this file: {words}"
    )
    assert f"{line} | {text.splitlines()[row - 1]}" in run("check").stdout


@pytest.mark.parametrize("name", HARMLESS)
def test_an_unusual_file_is_no_finding(run: Run, tmp_path: Path, name: str) -> None:
    (tmp_path / "unusual.py").write_bytes(HARMLESS[name])
    assert check(run) == (0, [])


@pytest.mark.long
def test_all_of_them_at_once_in_every_format(process: Run, tmp_path: Path) -> None:
    for name, data in (BROKEN | HARMLESS).items():
        (tmp_path / f"{name}.py").write_bytes(data)
    done = process("check")
    assert (done.returncode, done.stderr) == (1, "")
    report = Session(config.load([str(tmp_path)])).check([str(tmp_path)])
    for output_format in OutputFormat:
        told = render(report, output_format, Style(colour=False, directory=str(tmp_path)))
        assert told.count("CUD901") >= len(BROKEN), output_format
        assert (told == done.stdout) is (output_format is OutputFormat.FULL)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "secret.py"
    path.touch(mode=0)
    code, found = check(run)
    assert code == 1
    assert [entry["code"] for entry in found] == ["CUD901"]


def test_a_file_that_cannot_be_opened(run: Run, tmp_path: Path) -> None:
    # A link to itself is refused by the system for everybody, also for root.
    (tmp_path / "loop.py").symlink_to(tmp_path / "loop.py")
    done = run("check", "loop.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "cudalint: error: no such file or directory: loop.py\n"


def test_odd_names(run: Run, process: Run, tmp_path: Path) -> None:
    (tmp_path / "x.py").mkdir()
    (tmp_path / "x.py" / "a b\n'\".py").write_bytes(BROKEN["syntax_error"])
    (tmp_path / os.fsdecode(b"\xff.py")).write_bytes(BROKEN["syntax_error"])
    code, found = check(run)
    assert code == 1
    assert [entry["code"] for entry in found] == ["CUD901", "CUD901"]
    assert process("check").returncode == 1


def test_import_cycles(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import torch\nfrom b import g\ndef f(): return g()\nf()\n", encoding="utf-8")
    (tmp_path / "b.py").write_text("import torch\nfrom a import f\ndef g(): return f()\n", encoding="utf-8")
    (tmp_path / "c.py").write_text("import torch\nimport c\nfrom . import c\nfrom .... import d\n", encoding="utf-8")
    assert check(run) == (0, [])


def test_broken_standard_input(process: Run) -> None:
    done = process("check", "-", "--output-format", "concise", stdin="import torch\ndef f(:\n")
    assert done.returncode == 1
    assert done.stdout.startswith("-:2:7: CUD901 ")


def test_ranges_are_not_written_out(run: Run, tmp_path: Path) -> None:
    far = 10**21
    text = f"for i in range({far}):\n    torch.zeros(i)\nfor i in range(0, -{far}, 7):\n    print(i)\n"
    (tmp_path / "a.py").write_text(f"import multiprocessing, torch\nmultiprocessing.Pool\n{text}", encoding="utf-8")
    assert check(run) == (0, [])
