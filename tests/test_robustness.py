"""Whatever lies in a tree: never a traceback, never a silent skip, and the other files are still checked."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import call, call_in_child
from conftest import environment

from cudalint import config, session
from cudalint.discovery import discover
from cudalint.report.render import OutputFormat, Style, render
from cudalint.session import Session

Run = Callable[..., "subprocess.CompletedProcess[str]"]

HEAD = b"import torch\n"
LAUNCH = b"from multiprocessing import Pool\nPool(2).map(torch.cuda.init, [])\n"
BROKEN = {
    "bad_bytes": HEAD + b"x = '\xff\xfe'\n",
    "unknown_encoding": b"# coding: klingon\n" + HEAD,
    "half_a_character": b"# coding: raw_unicode_escape\nimport torch\nx = '\\ud800'\n",
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
    # Python 3.14 compiles both: they are read, so that they matter, and are more than the parser of trees holds.
    "chained_calls": HEAD + LAUNCH + b"x = a" + b".f()" * 5000 + b"\n",
    "long_sum": HEAD + LAUNCH + b"x = " + b"1 + " * 50_000 + b"1\n",
    "chains_within_chains": HEAD + b"x = " + (b"-" * 1_900 + b"(") * 10 + b"1" + b")" * 10 + b"\n",
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


DOUBTFUL_ESCAPES = """\
import multiprocessing as mp
import os
import re
import torch
PATTERN = "\\d"
def work(n):
    return torch.ones(n, device="cuda").sum().item()
if __name__ == "__main__":
    if not re.match("\\w+", os.environ.get("DATA", "")):
        torch.cuda.init()
    with mp.get_context("fork").Pool(1) as pool:
        print(pool.map(work, [1]), "\\d")
"""


def test_python_does_not_warn_of_the_texts_that_are_checked(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(DOUBTFUL_ESCAPES)
    command = [sys.executable, "-W", "always", "-m", "cudalint", "check", "--isolated", "--diff", "--unsafe-fixes", "."]
    for edit in ("", "\n", "\nprint('\\s')\n"):
        (tmp_path / "main.py").write_text(DOUBTFUL_ESCAPES + edit)
        done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)
        assert 'get_context("spawn")' in done.stdout
        assert "Warning" not in done.stderr


@pytest.mark.long
def test_all_of_them_at_once_in_every_format(child: Run, tmp_path: Path) -> None:
    for name, data in (BROKEN | HARMLESS).items():
        (tmp_path / f"{name}.py").write_bytes(data)
    done = child("check")
    assert (done.returncode, done.stderr) == (1, "")
    report = Session(config.load([str(tmp_path)])).check([str(tmp_path)])
    for output_format in OutputFormat:
        told = render(report, output_format, Style(colour=False, directory=str(tmp_path)))
        assert told.count("CUD901") >= len(BROKEN), output_format
        assert (told == done.stdout) is (output_format is OutputFormat.FULL)


def _loop(path: Path) -> None:
    path.symlink_to(path)


def _socket(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # names of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def _endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 40)


# What looks like a file and is none, or none that can be read: also for root, and without waiting.
UNREADABLE = {
    "a link to itself": (_loop, "it cannot be read: a link leads back to itself"),
    "a named pipe": (os.mkfifo, "it is a named pipe"),
    "a socket": (_socket, "it is a socket"),
    "a device without end": (_endless, "it is a device"),
    "a terabyte": (_sparse, "it has more than 256 MB"),
}


@pytest.mark.parametrize("output_format", [f.value for f in OutputFormat])
@pytest.mark.parametrize("name", UNREADABLE)
def test_what_is_no_file_costs_only_itself(
    run: Run, tmp_path: Path, forked: str, name: str, output_format: str
) -> None:
    make, words = UNREADABLE[name]
    make(tmp_path / "odd.py")
    (tmp_path / "train.py").write_text(forked, encoding="utf-8")
    for named in ((), ("odd.py", "train.py")):
        done = run("check", "--output-format", output_format, *named)
        assert (done.returncode, done.stderr) == (1, "")
        assert words in done.stdout
        assert "CUD901" in done.stdout
        assert "CUD101" in done.stdout


def test_explain_says_why_it_cannot_tell(run: Run, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    for arguments in (("pipe.py:1",), ("--functions", "pipe.py")):
        done = run("explain", *arguments)
        told = f"{tmp_path / 'pipe.py'}: cannot analyse this file: it is a named pipe\n"
        assert (done.returncode, done.stdout) == (0, told)


def test_a_link_that_leads_nowhere_is_said_and_holds_nothing_to_check(run: Run, tmp_path: Path) -> None:
    (tmp_path / "gone.py").symlink_to(tmp_path / "nothing.py")
    (tmp_path / ".#edited.py").symlink_to("me@here.1234")
    (tmp_path / "other.py").touch()
    done = run("check")
    assert (done.returncode, done.stdout) == (0, "All checks passed!\n")
    assert done.stderr == f"cudalint: warning: {tmp_path / 'gone.py'}: not checked: it is a link that leads nowhere\n"


def test_a_file_that_vanishes_after_it_was_listed(
    run: Run, tmp_path: Path, forked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").write_text(forked, encoding="utf-8")
    (tmp_path / "gone.py").touch()

    def listed(*arguments: Any) -> tuple[str, ...]:
        found = discover(*arguments)
        (tmp_path / "gone.py").unlink(missing_ok=True)
        return found

    monkeypatch.setattr(session, "discover", listed)
    code, found = check(run)
    assert code == 1
    assert [entry["code"] for entry in found] == ["CUD901", "CUD101"]
    assert "cannot be read: No such file or directory" in str(found[0]["message"])


@contextlib.contextmanager
def _as_nobody() -> Iterator[None]:
    """Act for a user who may not read everything, which root may."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_folder_and_a_file_that_may_not_be_read(run: Run, forked: str) -> None:
    with tempfile.TemporaryDirectory(prefix="cudalint-") as name:
        top = Path(name)
        top.chmod(0o755)
        for path in (top / "closed" / "inner.py", top / "secret.py", top / "train.py"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(forked, encoding="utf-8")
        run("check", "--output-format", "json", cwd=top)  # now all modules are loaded, which nobody may read
        (top / "secret.py").chmod(0)
        (top / "closed").chmod(0)
        with _as_nobody():
            done = run("check", "--output-format", "json", cwd=top)
            named = run("check", "--output-format", "json", "closed/inner.py", "secret.py", cwd=top)
        (top / "closed").chmod(0o755)
    assert (done.returncode, done.stderr) == (1, "")
    told = {Path(e["filename"]).name: (e["code"], e["message"]) for e in json.loads(done.stdout)}
    assert told["closed"] == (
        "CUD901",
        "cannot analyse this file: it is a folder that cannot be listed: Permission denied",
    )
    assert told["secret.py"] == ("CUD901", "cannot analyse this file: it cannot be read: Permission denied")
    assert told["train.py"][0] == "CUD101"
    assert [entry["code"] for entry in json.loads(named.stdout)] == ["CUD901", "CUD901"]


@pytest.mark.parametrize("output_format", [f.value for f in OutputFormat])
def test_a_name_that_is_no_text(process: Run, tmp_path: Path, output_format: str) -> None:
    (tmp_path / os.fsdecode(b"\xff.py")).write_bytes(BROKEN["syntax_error"])
    arguments, cached = ("check", "--cache-dir", "cache", "--output-format", output_format), {"CUDALINT_NO_CACHE": ""}
    # Twice, because the second answers from the cache; for one format by processes, whose streams Python opens.
    for _ in range(2):
        if output_format == "full":
            done = process(*arguments, env=cached)
        else:
            done = call(arguments, tmp_path, environment() | cached)
        assert (done.returncode, done.stderr) == (1, "")
        if output_format == "sarif":
            assert '"uri": "%FF.py"' in done.stdout
        elif output_format in ("json", "json-lines"):
            (entry,) = [json.loads(done.stdout)] if output_format == "json-lines" else json.loads(done.stdout)
            assert entry["filename"].endswith("\\xff.py")
        elif output_format in ("gitlab", "rdjson"):
            assert '"path": "\\\\xff.py"' in done.stdout
            json.loads(done.stdout)
        elif output_format == "grouped":
            assert done.stdout.startswith("\\xff.py:\n  2:9: CUD901 ")
        else:
            assert "\\xff.py:2:9" in done.stdout


def test_settings_and_patterns_that_are_pipes(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.py").touch()
    for name in (".gitignore", "setup.py", "setup.cfg"):
        os.mkfifo(tmp_path / name)
    (tmp_path / "pyproject.toml").write_text("[tool.cudalint]\n", encoding="utf-8")
    assert [entry["code"] for entry in check(run)[1]] == ["CUD901"]
    (tmp_path / "pyproject.toml").unlink()
    os.mkfifo(tmp_path / "pyproject.toml")
    done = run("check")
    assert done.returncode == 2
    assert done.stderr == f"cudalint: error: {tmp_path / 'pyproject.toml'}: it is a named pipe\n"


def test_odd_names(run: Run, child: Run, tmp_path: Path) -> None:
    (tmp_path / "x.py").mkdir()
    (tmp_path / "x.py" / "a b\n'\".py").write_bytes(BROKEN["syntax_error"])
    (tmp_path / os.fsdecode(b"\xff.py")).write_bytes(BROKEN["syntax_error"])
    code, found = check(run)
    assert code == 1
    assert [entry["code"] for entry in found] == ["CUD901", "CUD901"]
    assert child("check").returncode == 1


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


# What Python would compute for minutes, fill the memory with, or refuse to write down.
COSTLY = {
    "digits without an end": f"0x{'f' * 20_000}",
    "far before the point": "round(1, -10**10)",
    "a fraction with an exponent": "fractions.Fraction('1e1000000')",
    "an exact number with an exponent": "int(decimal.Decimal('1e99999999'))",
    "an exact number written out": "f\"{decimal.Decimal('1e99999999'):f}\"",
    "a text many times": "operator.mul('a', 10**10)",
    "a wide format": "format('a', '>99999999999')",
    "a wide record": "struct.pack('99999999999x')",
    "many pools": "itertools.product([1], repeat=10**10)",
    "long combinations": "itertools.combinations([1, 2], 10**10)",
    "many bytes": "(1).to_bytes(length=10**10, byteorder='big')",
    "wide tabs": "'\\t'.expandtabs(tabsize=10**9)",
}
# A value that doubles each time.
DOUBLED = {
    "a list": ("[1]", "x + x"),
    "a tuple": ("(1,)", "x + x"),
    "a fraction": ("fractions.Fraction(3, 7)", "x * x"),
}


def costs_little(folder: Path, statements: str, forked: str) -> bool:
    imports = "import decimal, fractions, itertools, multiprocessing, operator, struct"
    text = forked.replace("import multiprocessing", imports).replace(
        "    torch.zeros", f"    {statements}\n    torch.zeros"
    )
    (folder / "a.py").write_text(text.replace("[1, 2, 3]", "[x]"), encoding="utf-8")
    asked = ["check", "--select", "CUD101,CUD9", "--output-format", "json"]
    done = call_in_child(asked, folder, environment(), limit=60)
    return [entry["code"] for entry in json.loads(done.stdout)] == ["CUD101"]


@pytest.mark.parametrize("name", COSTLY)
def test_what_takes_long_to_compute_is_not_known(tmp_path: Path, forked: str, name: str) -> None:
    assert costs_little(tmp_path, f"x = {COSTLY[name]}\n    print(f'{{x}}', x == 3)", forked)


@pytest.mark.parametrize("name", DOUBLED)
def test_what_a_loop_doubles_is_known_no_more(tmp_path: Path, forked: str, name: str) -> None:
    start, doubled = DOUBLED[name]
    loops = f"for n in range(12):\n        for m in range(12):\n            x = {doubled}"
    assert costs_little(tmp_path, f"x = {start}\n    {loops}", forked)


# Calls that go around without a function of the program in between: Python ends them with a RecursionError.
AROUND = {
    "an instance of its own class": "A.__call__ = A()\n",
    "two classes": "A.__call__ = B()\nB.__call__ = A()\n",
    "a partial": "A.__call__ = functools.partial(A())\n",
    "a class that makes itself": "A.__init__ = A\n",
    "a class that is made by itself": "A.__new__ = A\n",
    "what is asked for every attribute": "A.__getattr__ = getattr\nA.__call__ = lambda self, *given: self.other\n",
    "an instance that is made by its class": "A.__new__ = lambda cls: object.__new__(cls)\nA.__init__ = A\n",
}


@pytest.mark.parametrize("name", AROUND)
@pytest.mark.parametrize("call", ["A()()", "multiprocessing.Pool(2).map(A(), [1])", "A()(A())(A())"])
def test_calls_that_go_around(run: Run, tmp_path: Path, forked: str, name: str, call: str) -> None:
    classes = "import functools\n\n\nclass A:\n    pass\n\n\nclass B(A):\n    pass\n\n\n"
    program = forked.replace("if __name__", f"{classes}{AROUND[name]}\nif __name__")
    (tmp_path / "a.py").write_text(f"{program}    {call}\n", encoding="utf-8")
    code, found = check(run, "--exit-zero", "--select", "CUD101,CUD9")
    assert (code, [entry["code"] for entry in found]) == (0, ["CUD101"])


@pytest.mark.parametrize("gives", ["A() if n else self", "self if n else B()", "B()"])
def test_iterations_that_go_around(run: Run, tmp_path: Path, forked: str, gives: str) -> None:
    classes = (
        f"\n\nclass A:\n    def __iter__(self):\n        n = len(input())\n        return {gives}\n"
        "\n\nclass B(A):\n    def __iter__(self):\n        return iter(ONE)\n\n\nONE = A()\n\n\nif __name__"
    )
    program = forked.replace("if __name__", classes)
    (tmp_path / "a.py").write_text(f"{program}    for each in ONE:\n        print(each)\n", encoding="utf-8")
    code, found = check(run, "--exit-zero", "--select", "CUD101,CUD9")
    assert (code, [entry["code"] for entry in found]) == (0, ["CUD101"])


def test_a_transform_whose_attributes_are_what_calls_it(run: Run, tmp_path: Path) -> None:
    text = (
        "from fastai.vision.all import *\n\n\nclass Moves(Transform):\n    __getattr__ = vision_learner\n\n\n"
        "loaders = ImageDataLoaders.from_folder('a', item_tfms=[Resize(64), Moves()], num_workers=2)\n"
        "learner = vision_learner(loaders, resnet18)\nlearner.fine_tune(1)\n"
    )
    (tmp_path / "a.py").write_text(text, encoding="utf-8")
    assert check(run) == (0, [])


def test_a_decorator_of_a_library_without_its_function(run: Run, tmp_path: Path) -> None:
    calls = "ray.remote()()\nray.remote(num_cpus=1)(*[], **{})\n"
    text = f"import ray\nimport torch\n\ntorch.zeros(1, device='cuda')\n{calls}"
    (tmp_path / "a.py").write_text(text, encoding="utf-8")
    assert check(run) == (0, [])


def test_a_context_that_derives_from_a_function_of_the_library(run: Run, tmp_path: Path, forked: str) -> None:
    derived = "from multiprocessing import get_context\n\n\nclass Mine(get_context):\n    pass\n\n\nif __name__"
    program = forked.replace("if __name__", derived)
    pool = "ProcessPoolExecutor(2, mp_context=Mine('spawn'))"
    started = f"from concurrent.futures import ProcessPoolExecutor\n    {pool}.submit(work, 1)"
    (tmp_path / "a.py").write_text(f"{program}    {started}\n", encoding="utf-8")
    code, found = check(run, "--exit-zero", "--select", "CUD101,CUD9")
    assert (code, [entry["code"] for entry in found]) == (0, ["CUD101"])


def test_a_long_circle_of_star_imports(run: Run, tmp_path: Path, forked: str) -> None:
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "__init__.py").touch()
    *_, last = modules = [f"m{i}" for i in range(75)]
    worker, main = forked.split("if __name__")
    for name, following in zip(modules, [*modules[1:], modules[0]], strict=True):
        text = f"import torch\nfrom pkg.{following} import *\n" + (worker if name == last else "")
        (package / f"{name}.py").write_text(text, encoding="utf-8")
    start = "import multiprocessing\nimport torch\nfrom pkg.m0 import *\nif __name__"
    (tmp_path / "train.py").write_text(start + main, encoding="utf-8")
    assert [entry["code"] for entry in check(run)[1]] == ["CUD101"]


def test_imports_nested_as_deep_as_they_are_followed(run: Run, tmp_path: Path, forked: str) -> None:
    for i in range(120):
        nested = f"if X:\n    try:\n        with x():\n            for _ in y():\n                import m{i + 1}\n"
        rows = [f"{nested}    finally:\n        pass\n", "import torch\n"]
        (tmp_path / f"m{i}.py").write_text("".join(reversed(rows)), encoding="utf-8")
    calls = "".join(f"def f{i}(n):\n    return f{i + 1}(n)\n" for i in range(60))
    (tmp_path / "m99.py").write_text(f"import torch\n{calls}def f60(n): pass\nf0(1)\n", encoding="utf-8")
    (tmp_path / "train.py").write_text(f"import m0\n{forked}", encoding="utf-8")
    assert [entry["code"] for entry in check(run, "train.py")[1]] == ["CUD101"]
