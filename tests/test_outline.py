"""Functions of a file lowered one by one are what they are when the file is lowered whole, and stand where they do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import cudalint
from cudalint.finding import Position
from cudalint.ir import nodes as ir
from cudalint.ir.bodies import Postponed
from cudalint.ir.lower import lower
from cudalint.ir.outline import outline
from cudalint.ir.positions import all_spans, spans
from cudalint.ir.stored import Unparsable, lowered
from cudalint.ir.walk import functions, mentions
from cudalint.project.analysis import Options, analyse
from cudalint.structs import Struct
from cudalint.text.source import SourceFile

ODD = {
    "plain": "def f(a, b=1):\n    return a + b\n\nx = f(1)\n",
    "methods": (
        "class A:\n    x = 1\n\n    def f(self):\n        return 1\n\n    y = 2\n\n"
        "    class B:\n        def g(self): pass\n"
    ),
    "one row": "def f(): return 1\ndef g():\n    return 2\n",
    "a header of several rows": "def f(\n    a,\n    b,\n):\n    return a\n",
    "continued header": "def f(): \\\n    return 1\n\ndef g():\n    return 2\n",
    "comments around": "def f():  # one\n    # two\n    return 1\n    # three\n# four\nx = 1\n",
    "decorated inside": "def f():\n    @d(\n        1)\n    def g(): return 1\n    return g\n",
    "async": "async def f():\n    async with a as b:\n        return [x async for x in await b]\n",
    "generator": "def f():\n    yield 1\n\ndef g():\n    return (yield from f())\n",
    "conditional": (
        "if a:\n    def f():\n        return 1\nelif b:\n    def f():\n        return 2\n"
        "else:\n    def f():\n        return 3\n"
    ),
    "try": (
        "try:\n    def f():\n        return 1\nexcept A:\n    def f():\n        return 2\n"
        "else:\n    def g():\n        return 3\nfinally:\n    def h():\n        return 4\n"
    ),
    "match": (
        "match a:\n    case 1:\n        def f():\n            return 1\n    case _:\n"
        "        def f():\n            return 2\n"
    ),
    "loops": (
        "for i in a:\n    def f():\n        return i\nelse:\n    def f():\n        return 0\n"
        "while a:\n    def g():\n        global i\n        i = 1\n"
    ),
    "no end of line": "def f():\n    return 1",
    "carriage returns": "def f():\r\n    return 1\r\n\r\ndef g():\r\n    x = 2\r\n    return x\r\n",
    "bare carriage returns": "def f():\r    return 1\r\rdef g():\r    return 2\r",
    "tabs": "class A:\n\tdef f(self):\n\t\treturn 1\n\tdef g(self):\n\t\treturn 2\n",
    "form feeds": "def f():\n    return 1\n\x0c\ndef g():\n    return 2\n",
    "strings with rows": 'def f():\n    """One.\n\ndef no(): pass\n    """\n    return """\n  a\n"""\n\nx = 1\n',
    "semicolons": "def f():\n    a = 1; b = 2\n    return a; pass\nx = 1; y = 2\n",
    "letters of two bytes": "def f():\n    é = 1\n    return é\n\ndef g(ü=1):\n    return 'ß', ü\n",
    "nested": (
        "def f():\n    def g():\n        def h():\n            return 1\n        return h\n"
        "    class C:\n        def m(self):\n            return super().m()\n    return g, C\n"
    ),
    "lambdas": "f = lambda x: (yield x)\n\ndef g(k=lambda: 1):\n    return lambda y: y + k()\n",
}


def flat(node: Any) -> Any:
    """A form as plain values; nodes themselves compare by identity."""
    if isinstance(node, Postponed):
        return flat(node.code())
    if isinstance(node, tuple):
        return tuple(map(flat, node))
    if isinstance(node, Struct):
        return (type(node).__name__, *(flat(getattr(node, name)) for name in node.__struct_fields__))
    return repr(node) if isinstance(node, float | complex) else node


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_functions_lowered_one_by_one_are_those_of_the_whole(text: str) -> None:
    form = lowered(text, "a.py", "a")
    assert not isinstance(form.module, Unparsable)
    assert form.bodies is not None
    assert flat(form.module) == flat(lower(text, "a.py", "a"))
    assert form.bodies.fresh.keys() == set(range(len(form.bodies.outline.pieces)))


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_they_stand_where_they_stand_in_the_whole(text: str) -> None:
    every = all_spans(text, "a.py", "a")
    assert spans(text, "a.py", "a", every) == every
    assert {o: spans(text, "a.py", "a", [o]) for o in every} == {o: {o: every[o]} for o in every}


def test_own_code_is_lowered_alike() -> None:
    package = Path(cudalint.__file__).parent
    for path in sorted([*package.glob("machine/*.py"), *package.glob("ir/*.py"), *package.glob("fixes/*.py")])[::3]:
        text = path.read_text(encoding="utf-8")
        form = lowered(text, "a.py", "a")
        assert form.bodies is not None, path
        assert flat(form.module) == flat(lower(text, "a.py", "a")), path


def test_a_body_is_parsed_when_it_is_asked_for() -> None:
    form = lowered("def f():\n    x = 1\n    return x\n\ndef g():\n    return 2  # Pool\n", "a.py", "a")
    assert isinstance(form.module, ir.Module)
    assert form.bodies is not None
    first, second = functions(form.module.body)
    steps = [
        lambda: first.mentions({"Pool"}),
        lambda: second.mentions({"Pool"}),
        lambda: len(first.body) == 2,
    ]
    assert [(step(), list(form.bodies.fresh)) for step in steps] == [(False, []), (False, [1]), (True, [1, 0])]


def test_words_are_those_of_code_and_not_of_comments() -> None:
    form = lowered("x = Pool\n\ndef f():\n    return Process  # DataLoader\n", "a.py", "a")
    assert isinstance(form.module, ir.Module)
    found = [mentions(form.module, {word}) for word in ("Pool", "Process", "DataLoader")]
    assert found == [True, True, False]


@pytest.mark.parametrize("text", ["def f(:\n", "def f():\n    return 1 +\n", "\x00", "x = 1\n  y = 2\n"])
def test_what_is_no_python_has_no_outline(text: str) -> None:
    assert outline(text) is None
    assert isinstance(lowered(text, "a.py", "a").module, Unparsable)


def test_an_error_in_a_function_is_told_although_nothing_enters_it() -> None:
    text = "import torch\nfrom multiprocessing import Pool\n\n\ndef f():\n    return 1 +\n"
    found = analyse([SourceFile("/p/a.py", text, text.encode())], Options()).findings
    assert [(f.code, f.span.start.row) for f in found] == [("CUD901", 6)]


def test_a_span_that_ends_in_a_body_is_that_of_the_whole() -> None:
    text = "def f():\n    x = 1\n    return x  # end\n"
    assert spans(text, "a.py", "a", [0])[0].end == Position(3, 13)
