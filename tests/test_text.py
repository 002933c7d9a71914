"""Bytes to text, the guard before the parser, and suppression comments."""

from __future__ import annotations

import codecs
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudalint.config import Config
from cudalint.session import Session
from cudalint.text.decode import Refusal, decode
from cudalint.text.guard import MAX_CHAIN, refuse, too_large
from cudalint.text.lines import Rows, split_rows
from cudalint.text.noqa import Noqa, suppressions, with_code
from cudalint.text.scan import lexemes
from cudalint.text.source import SourceFile


def text_of(data: bytes) -> str:
    source = decode("/x.py", data)
    assert isinstance(source, SourceFile), source
    return source.text


def reason(data: bytes) -> str:
    refusal = decode("/x.py", data)
    assert isinstance(refusal, Refusal)
    return refusal.reason


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        ("é = 1\r\n".encode(), "é = 1\r\n"),
        (codecs.BOM_UTF8 + b"x = 1\n", "x = 1\n"),
        (b"# -*- coding: latin-1 -*-\n# \xe9\n", "# -*- coding: latin-1 -*-\n# é\n"),
        (
            b"#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\n# \x80\n",
            "#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\n# €\n",
        ),
        (codecs.BOM_UTF8 + b"# coding: utf-8\nx = 1\n", "# coding: utf-8\nx = 1\n"),
        # Below a line of code a cookie is only a comment.
        ("x = 1\n# coding: latin-1\n# é\n".encode(), "x = 1\n# coding: latin-1\n# é\n"),
    ],
)
def test_decoding_follows_python(data: bytes, text: str) -> None:
    assert text_of(data) == text


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"x = '\xff'\n", "byte 6 is not valid utf-8"),
        (b"# coding: klingon\n", "unknown encoding 'klingon'"),
        (b"# coding: hex\n", "unknown encoding 'hex'"),
        (b"# coding: undefined\n", "cannot be decoded as 'undefined'"),
        (codecs.BOM_UTF8 + b"# coding: latin-1\n", "byte order mark"),
        ("x = 1\n".encode("utf-16"), "null bytes"),
        (b"\x7fELF\0\0", "null bytes"),
    ],
)
def test_bytes_that_are_no_text_are_refused_with_a_reason(data: bytes, words: str) -> None:
    assert words in reason(data)


@given(st.binary(max_size=200))
def test_any_bytes_give_a_text_or_a_reason(data: bytes) -> None:
    assert isinstance(decode("/x.py", data), SourceFile | Refusal)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = " + "(" * 1000 + "1" + ")" * 1000, "brackets"),
        ("x = " + "(\n" * 1000 + "1" + ")\n" * 1000, "brackets"),
        ("x = f'{" + "(" * 1000 + "1" + ")" * 1000 + "}'", "brackets"),
        ("x = a" + ".f()" * 5000, "chains"),
        ("x = (a" + "\n  .f()" * 5000 + ")", "chains"),
        ("x = a" + " \\\n + a" * 50_000, "chains"),
        ("x = " + "1 + " * 50_000 + "1", "chains"),
        ("x = " + "not " * 20_000 + "a", "chains"),
        ("x = " + "-" * 20_000 + "a", "chains"),
        ("x = " + "lambda: " * 5_000 + "a", "chains"),
        ("x = " + "a if b else " * 5_000 + "c", "chains"),
        ("x = " + "'a' " * 5_000, "chains"),
        ("if a:\n  pass\n" + "elif a:\n  pass\n" * 20_000, "elif"),
        ("".join(" " * depth + "if a:\n" for depth in range(150)) + " " * 150 + "pass\n", "blocks"),
    ],
)
def test_what_would_bring_the_parser_down_is_refused(text: str, words: str) -> None:
    refusal = refuse(text)
    assert refusal is not None
    assert words in refusal.reason


@pytest.mark.parametrize(
    "text",
    [
        "x = [\n" + "    [1.5, -2.5, (3, 4)],\n" * 20_000 + "]\n",
        "x = {\n" + "    'a': f(b)[c].d + 1,\n" * 20_000 + "}\n",
        "x = a.b(c) + 1\n" * 20_000,
        "x = 1; " * 20_000,
        "# " + "(" * 5000 + "\nx = 1\n",
        "x = '" + "(" * 5000 + "'\n",
        '"""' + "(((\n" * 5000 + '"""\n',
        "if a:\n    if b:\n        pass\nelse:\n    pass\n" * 5_000,
        # Brackets of strings that never end must not count as code, whatever comes then.
        'x = """' + "(" * 5000,
    ],
)
def test_large_but_flat_files_pass(text: str) -> None:
    assert refuse(text) is None


def test_size_alone_refuses() -> None:
    assert too_large(5, 5) is None
    refusal = too_large(6_000_000, 5_000_000)
    assert refusal is not None
    assert refusal.reason == "it has 6,000,000 bytes, more than 5,000,000"


@pytest.mark.parametrize("unit", ['"', "'", '"""', "f'{", "(", ")", "\\", "#", "a.b(", "'\\", "\n ", "`$?"])
def test_the_guard_is_linear(unit: str) -> None:
    def cost(size: int) -> float:
        text = unit * (size // len(unit))
        begin = time.process_time()
        refuse(text)
        return time.process_time() - begin

    # A quadratic guard would take minutes on this.
    assert cost(1_000_000) < 10


@given(st.text(alphabet="\"'#\\\r\n()[]{},;.+ \tabfr", max_size=200))
def test_lexemes_are_in_order_and_do_not_overlap(text: str) -> None:
    position = 0
    for lexeme in lexemes(text):
        assert position <= lexeme.start < lexeme.end <= len(text)
        position = lexeme.end


def test_rows_end_where_python_ends_them() -> None:
    text = "a\r\nb\rc\nd\x0ce\u2028f\x85g"
    assert split_rows(text) == ["a", "b", "c", "d\x0ce\u2028f\x85g"]
    assert Rows(text).place(text.index("e")) == (4, 3)


@pytest.mark.parametrize(
    ("comment", "codes"),
    [
        ("# noqa", ()),
        ("# NoQA", ()),
        ("# noqa: CUD101", ("CUD101",)),
        ("# noqa:CUD101,E501", ("CUD101", "E501")),
        ("# noqa: cud101 E501", ("CUD101", "E501")),
        ("# type: ignore  # noqa: CUD101", ("CUD101",)),
        ("# noqa: CUD101 because it is measured", ("CUD101",)),
        ("# noqa: because I say so", ()),
    ],
)
def test_noqa_reads_as_in_flake8(comment: str, codes: tuple[str, ...]) -> None:
    noqa = suppressions(f"x = 1\ny = 2  {comment}\n").by_row[2]
    assert noqa.codes == codes


@pytest.mark.parametrize("comment", ["# flake8: noqa", "# cudalint: noqa", "#flake8:NOQA: CUD1"])
def test_file_level_comments(comment: str) -> None:
    found = suppressions(f"x = 1\n{comment}\n")
    assert not found.by_row
    assert [noqa.covers("CUD101") for noqa in found.whole_file] == [True]


def test_noqa_in_strings_is_text() -> None:
    found = suppressions('"""\n# noqa: CUD101\n"""\nx = "# noqa"\ny = f"{x}# noqa"  # noqa: CUD102\n')
    assert found.by_row == {5: Noqa(5, 19, ("CUD102",))}


def test_noqa_of_other_tools_covers_nothing_of_ours() -> None:
    noqa = suppressions("x = 1  # noqa: E501\n").by_row[1]
    assert not noqa.covers("CUD101")
    assert noqa.covers("E501")


def test_limits_leave_room_below_where_the_parser_falls() -> None:
    import libcst

    for text in ("x = a" + ".f()" * (MAX_CHAIN // 2 - 2), "x = " + "(" * 190 + "1" + ")" * 190):
        assert refuse(text) is None
        libcst.parse_module(text)


@pytest.mark.parametrize(
    ("text", "rows", "after"),
    [
        ("f()\n", (1,), "f()  # noqa: CUD101\n"),
        ("f()", (1,), "f()  # noqa: CUD101"),
        ("f()  # why\r\n", (1,), "f()  # why  # noqa: CUD101\r\n"),
        ("f()  # noqa: E501 as it is\n", (1,), "f()  # noqa: E501, CUD101 as it is\n"),
        ("f('# noqa: E501')\n", (1,), "f('# noqa: E501')  # noqa: CUD101\n"),
        ("f('''\n''')\n", (1, 2), "f('''\n''')  # noqa: CUD101\n"),
        ("f( \\\n)\n", (1, 2), "f( \\\n)  # noqa: CUD101\n"),
        ("f(\n)\n", (1, 2), "f(  # noqa: CUD101\n)\n"),
    ],
)
def test_a_comment_is_put_where_one_can_be(text: str, rows: tuple[int, ...], after: str) -> None:
    insertion = with_code(text, rows, "CUD101")
    assert insertion is not None
    offset, comment = insertion
    changed = text[:offset] + comment + text[offset:]
    assert changed == after
    assert any("CUD101" in one.codes for one in suppressions(changed).comments)


def test_no_comment_can_be_put_into_a_string() -> None:
    assert with_code("x = '''\nf()\n'''\n", (1, 2), "CUD101") is None


@pytest.mark.parametrize(
    "written",
    [
        pytest.param(lambda text: b"\xef\xbb\xbf" + text.encode(), id="a mark"),
        pytest.param(lambda text: text.replace("\n", "\r\n").encode(), id="CRLF"),
        pytest.param(lambda text: text.replace("\n", "\r").encode(), id="CR"),
        pytest.param(lambda text: f"\f{text}".encode(), id="a form feed"),
    ],
)
@pytest.mark.parametrize(
    "text",
    [
        'import cupy\nif __name__ == "__main__":\n    cupy.cuda.Device(1)\n    print(cupy.ones(3))\n',
        "from torch import cuda\ncuda.device(1)\nprint(cuda.memory_allocated())\nimport torch\ntorch.ones(1).cuda()\n",
    ],
)
def test_what_is_found_does_not_depend_on_how_rows_begin_and_end(
    tmp_path: Path, text: str, written: Callable[[str], bytes]
) -> None:
    found = []
    for data in (text.encode(), written(text)):
        (tmp_path / "program.py").write_bytes(data)
        found.append([(one.code, one.span.start.row) for one in Session(Config()).check([str(tmp_path)]).findings])
    assert found[0] == found[1] != []


def test_tabs_among_blanks_are_read_as_python_reads_them(tmp_path: Path) -> None:
    """What is deeper for tabs of eight blanks and of one is deeper; the tab within the text decides, too."""
    text = (
        "import multiprocessing, torch\n\ndef work(n):\n  if n:\n \t return torch.ones(n).cuda()\n\n"
        'if __name__ == "__main__":\n\ttorch.cuda.init()\n\tline = """\n\t"""\n\tif line == "\\n\\t":\n'
        '\t    multiprocessing.get_context("fork").Pool(1).map(work, [1])\n'
    )
    (tmp_path / "program.py").write_text(text, encoding="utf-8")
    (tmp_path / "refused.py").write_text("import torch\nif torch:\n        x = 1\n\ty = 2\n", encoding="utf-8")
    found = Session(Config()).check([str(tmp_path)]).findings
    places = [(Path(one.span.filename).name, one.code, one.span.start.row, one.span.start.column) for one in found]
    assert places == [("program.py", "CUD101", 12, 6), ("refused.py", "CUD901", 4, 1)]
