"""Which rows of a file run when it is imported, told from its bytes."""

from __future__ import annotations

import pytest

from cudalint.project.blocks import runs_at_once
from cudalint.project.imports import imported

WAITING = {
    "function": "def f():\n    import a\n",
    "header over several rows": "def f(\n    x,\n):\n    import a\n",
    "closing brackets of a type": "def f(\n    x,\n) -> dict[\n    str, int\n]:\n    if x:\n        import a\n",
    "method": "class C:\n    def f(\n        self,\n    ):\n        import a\n",
    "brackets before": "def f():\n    x = [\n        1,\n    ]\n    import a\n",
    "async": "async def f(\n    x\n):\n    import a\n",
}
AT_ONCE = {
    "condition": "if x:\n    import a\n",
    "condition over several rows": "if f(\n    x\n):\n    import a\n",
    "class": "class C:\n    import a\n",
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
