"""Code that only calls code of the project matters as much as what it calls, on whatever way it gets there."""

from __future__ import annotations

import pytest

from cudalint.project.analysis import Options, analyse
from cudalint.text.source import SourceFile

_ARITHMETIC = "\n".join(f"    n{i} = n{i - 1} * 2 + {i} - (n{i - 1} + 1)" for i in range(1, 12))
_LAUNCH = """\
import multiprocessing as mp

import torch


def work(x):
    return torch.ones(1).cuda().sum().item() * x


def go_on(count):
    {parent}
    with mp.get_context("fork").Pool(2) as pool:
        print(pool.map(work, list(range(count + 3))))


class Runner:
    def go_on_with(self, count):
        go_on(count)


WAYS = {{"plain": go_on}}
"""
_START = f"""\
{{imports}}


def begin(n0):
{_ARITHMETIC}
    {{call}}


if __name__ == "__main__":
    begin(1)
"""


def _codes(imports: str, call: str, parent: str = "torch.cuda.init()") -> list[str]:
    texts = {"main": _START.format(imports=imports, call=call), "launch": _LAUNCH.format(parent=parent)}
    texts["between"] = "from launch import WAYS, go_on as proceed, Runner\n"
    sources = [SourceFile(f"/project/{name}.py", text, text.encode()) for name, text in texts.items()]
    return [f.code for f in analyse(sources, Options()).findings]


_WAYS = [
    ("from launch import go_on", "go_on(n1)"),
    ("from launch import go_on as proceed", "proceed(n1)"),
    ("from between import proceed", "proceed(n1)"),
    ("import launch", "launch.go_on(n1)"),
    ("import launch as other", "other.go_on(n1)"),
    ("from between import *", "proceed(n1)"),
    ("from launch import Runner", "Runner().go_on_with(n1)"),
    ("from between import Runner as R", "R().go_on_with(n1)"),
    ("import launch", 'launch.WAYS["plain"](n1)'),
    ("import launch\n\n\ndef again(n):\n    launch.go_on(n)", "again(n1)"),
]


@pytest.mark.parametrize(("imports", "call"), _WAYS)
def test_a_long_function_that_only_calls_the_project_is_run(imports: str, call: str) -> None:
    assert _codes(imports, call) == ["CUD101"]
    assert _codes(imports, call, "pass") == ["CUD201"]


def test_functions_at_the_same_place_of_several_modules_are_no_recursion() -> None:
    texts = {
        f"part{i}": f"from part{i + 1} import step{i + 1}\n\n\ndef step{i}(n):\n    step{i + 1}(n)\n" for i in range(6)
    }
    texts["part6"] = _LAUNCH.format(parent="torch.cuda.init()").replace("go_on(", "step6(")
    texts["part6"] = texts["part6"].replace('"plain": go_on', "")
    texts["main"] = 'from part0 import step0\n\nif __name__ == "__main__":\n    step0(2)\n'
    sources = [SourceFile(f"/project/{name}.py", text, text.encode()) for name, text in texts.items()]
    assert [f.code for f in analyse(sources, Options()).findings] == ["CUD101"]
