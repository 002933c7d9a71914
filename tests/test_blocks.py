"""Which rows of a file run when it is imported, told from its bytes."""

from __future__ import annotations

import pytest

from cudalint.project.analysis import Options, analyse
from cudalint.project.blocks import runs_at_once
from cudalint.project.imports import imported
from cudalint.text.source import SourceFile

WAITING = {
    "function": "def f():\n    import a\n",
    "header over several rows": "def f(\n    x,\n):\n    import a\n",
    "closing brackets of a type": "def f(\n    x,\n) -> dict[\n    str, int\n]:\n    if x:\n        import a\n",
    "method": "class C:\n    def f(\n        self,\n    ):\n        import a\n",
    "brackets before": "def f():\n    x = [\n        1,\n    ]\n    import a\n",
    "async": "async def f(\n    x\n):\n    import a\n",
    "example in a docstring": '"""Use it so:\n\nimport a\n"""\n',
    "example in the docstring of a class": "class C:\n    '''Use it so:\n        import a\n    '''\n",
    "example behind quotes in a comment": '# """ and \'\'\'\nX = """\nimport a\n"""\n',
}
AT_ONCE = {
    "condition": "if x:\n    import a\n",
    "condition over several rows": "if f(\n    x\n):\n    import a\n",
    "class": "class C:\n    import a\n",
    "behind a docstring": '"""What it is."""\nimport a\n',
    "behind quotes in a comment": '# """ begins a text\nimport a\n',
    "behind quotes in a text": 'X = \'"""\'\nimport a\n',
    "try after a function": "def f(\n    x\n):\n    pass\ntry:\n    import a\nexcept ImportError:\n    pass\n",
}


@pytest.mark.parametrize("text", WAITING.values(), ids=WAITING)
def test_what_stands_in_a_function_waits_for_its_call(text: str) -> None:
    assert [i.at_once for i in imported(text.encode())] == [False]


@pytest.mark.parametrize("text", AT_ONCE.values(), ids=AT_ONCE)
def test_what_stands_in_other_blocks_runs_at_once(text: str) -> None:
    assert [i.at_once for i in imported(text.encode())] == [True]


def test_what_is_for_type_checkers_is_neither() -> None:
    text = b"if TYPE_CHECKING:\n    import a\n"
    assert runs_at_once(text, text.index(b"    import"), 4) is None
    assert list(imported(text)) == []


PROGRAM = """\
import multiprocessing

import torch
from package import settings

def work(n):
    return torch.ones(n, device="cuda").sum().item()

if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(work, [1, 2]), settings)
"""
DEVICES = "import torch\n\ndef find():\n    return 'cuda' if torch.cuda.is_available() else 'cpu'\n"
ASKS = {
    "default over several rows": """\
import torch

def f(
    x,
    y="(",
    z=torch.cuda.is_available(),
):
    pass
""",
    "default of a method over several rows": """\
import torch

class C:
    def f(
        self,
        z=torch.cuda.is_available(),
    ):
        pass
""",
    "default": """\
from package.devices import find

def f(x, device=find()):
    pass
""",
    "default of a method": """\
from package.devices import find

class C:
    def f(self, device=find()):
        pass
""",
    "attribute of a class": """\
from package.devices import find

class C:
    '''Some
text.'''
    device = find()
""",
    "condition": """\
from package import devices

if devices:
    DEVICE = devices.find()
""",
    "entry of a table": """\
from package import devices

TABLE = {
    "device": devices.find(),
}
""",
}
WAITS = {
    "body of a header over several rows": """\
import torch

def f(
    x,
):
    print(
        torch.cuda.is_available(),
    )
""",
    "body": """\
from package.devices import find

def f(
    x,
    y=1,
):
    return find()
""",
    "text": """\
from package.devices import find

class C:
    '''Some
    device = find()
    '''
""",
}


def _codes(settings: str) -> list[str]:
    texts = {"main": PROGRAM, "package/__init__": "", "package/devices": DEVICES, "package/settings": settings}
    sources = [SourceFile(f"/project/{name}.py", text, text.encode()) for name, text in texts.items()]
    return [found.code for found in analyse(sources, Options()).findings]


@pytest.mark.parametrize("settings", ASKS.values(), ids=ASKS)
def test_what_a_module_asks_where_it_is_imported_counts(settings: str) -> None:
    assert "CUD101" in _codes(settings)


@pytest.mark.parametrize("settings", WAITS.values(), ids=WAITS)
def test_what_only_a_call_of_it_would_ask_does_not(settings: str) -> None:
    assert "CUD101" not in _codes(settings)
