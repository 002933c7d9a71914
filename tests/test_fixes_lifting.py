"""Repairs of local functions and lambdas that are sent to fresh processes: what becomes of them, and where none is."""

from __future__ import annotations

import ast
from textwrap import dedent, indent

import pytest

from cudalint.finding import Applicability, Fix
from cudalint.fixes.edits import apply, as_changes
from cudalint.fixes.engine import repaired
from cudalint.project.analysis import Options, analyse
from cudalint.text.source import SourceFile

HEAD = """\
import multiprocessing as mp
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import torch
"""
ON_GPU = 'torch.ones(n, device="cuda").sum().item()'
MAPPED = 'with mp.get_context("spawn").Pool(1) as pool:\n    print(pool.map(work, [1]))'


def program(top: str, main: str) -> str:
    body = indent(dedent(main).strip("\n"), "    ")
    above = f"{dedent(top).strip()}\n\n\n" if top else ""
    return f'{HEAD}\n\n{above}def main(scale=2):\n{body}\n\n\nif __name__ == "__main__":\n    main()\n'


def repair(text: str, code: str = "CUD108") -> tuple[str, Fix]:
    """The text after the repair of the first finding of a code, with all that it needs."""
    analysis = analyse([SourceFile("/project/m.py", text, text.encode())], Options())
    finding = next(f for f in analysis.findings if f.code == code)
    fix = repaired(analysis, [finding])[finding]
    after = apply(text, as_changes(text, fix.edits))
    ast.parse(after)
    if fix.applicability is not Applicability.DISPLAY:
        left = analyse([SourceFile("/project/m.py", after, after.encode())], Options()).findings
        assert not [f for f in left if f.code in (code, "CUD108")]
    return after, fix


LIFTED = {
    "what a function closes over is sent along": (
        f"def work(n):\n    # on the GPU\n    return {ON_GPU} * scale\n\n{MAPPED}",
        f"\ndef work(n, *, scale):\n    # on the GPU\n    return {ON_GPU} * scale\n\n\ndef main",
        "pool.map(partial(work, scale=scale), [1])",
    ),
    "a function that calls itself": (
        f"def work(n):\n    return work(n - 1) * scale if n else {ON_GPU}\n\n{MAPPED}",
        f"\ndef work(n, *, scale):\n    return work(n - 1, scale=scale) * scale if n else {ON_GPU}\n",
        "pool.map(partial(work, scale=scale), [1])",
    ),
    "also where it is called at home": (
        f"def work(n):\n    return {ON_GPU} * scale\n\nprint(work(3), work)\n{MAPPED}",
        f"\ndef work(n, *, scale):\n    return {ON_GPU} * scale\n",
        "print(work(3, scale=scale), partial(work, scale=scale))",
    ),
    "parameters of all kinds": (
        f'def work(n, m=(0), *rest, sign=-1,):\n    """Doc,\n    too."""\n    return {ON_GPU} * scale\n\n{MAPPED}',
        '\ndef work(n, m=(0), *rest, sign=-1, scale,):\n    """Doc,\n        too."""\n',
        "partial(work, scale=scale)",
    ),
    "a variable of a loop": (
        f"for n in range(2):\n    def work():\n        print({ON_GPU})\n\n"
        '    process = mp.get_context("spawn").Process(target=work)\n    process.start()',
        f"\ndef work(*, n):\n    print({ON_GPU})\n",
        "Process(target=partial(work, n=n))",
    ),
    "a queue": (
        f'context = mp.get_context("spawn")\nresults = context.Queue()\n\n\ndef work(n):\n    results.put({ON_GPU})\n\n'
        "worker = context.Process(target=work, args=(3,))\nworker.start()\nprint(results.get())",
        f"\ndef work(n, *, results):\n    results.put({ON_GPU})\n",
        "context.Process(target=partial(work, results=results), args=(3,))",
    ),
    "a lambda where it is sent": (
        MAPPED.replace("work,", f"lambda n: {ON_GPU},"),
        f"\ndef work(n):\n    return {ON_GPU}\n\n\ndef main",
        "pool.map(work, [1])",
    ),
    "a lambda whose process is to do the work": (
        'process = mp.get_context("spawn").Process(target=lambda: print(torch.ones(2).cuda().sum()))\nprocess.start()',
        "\ndef work():\n    return print(torch.ones(2).cuda().sum())\n",
        "Process(target=work)",
    ),
    "a lambda over two rows": (
        MAPPED.replace("work,", f"lambda n: {ON_GPU}\n        * scale,"),
        f"\ndef work(n, *, scale):\n    return ({ON_GPU}\n",
        "pool.map(partial(work, scale=scale), [1])",
    ),
    "a default from around": (
        f"def work(n, k=scale):\n    return {ON_GPU} * k\n\n{MAPPED}",
        f"\ndef work(n, *, k):\n    return {ON_GPU} * k\n",
        "pool.map(partial(work, k=scale), [1])",
    ),
    "a default from around, by name": (
        f"def work(n, *, k: int = scale):\n    return {ON_GPU} * k\n\nprint(work(2, k=3))\n{MAPPED}",
        f"\ndef work(n, *, k: int):\n    return {ON_GPU} * k\n",
        "pool.map(partial(work, k=scale), [1])",
    ),
    "a lambda with a default from around": (
        MAPPED.replace("work,", f"lambda n, k=scale: {ON_GPU} * k,"),
        f"\ndef work(n, *, k):\n    return {ON_GPU} * k\n",
        "pool.map(partial(work, k=scale), [1])",
    ),
    "a lambda with a name": (
        f"# doubles\nwork = lambda n, m=1: {ON_GPU} * scale  # here\n{MAPPED}",
        f"\ndef work(n, m=1, *, scale):\n    return {ON_GPU} * scale\n\n\n"
        "def main(scale=2):\n    # doubles\n    # here\n",
        "pool.map(partial(work, scale=scale), [1])",
    ),
}


@pytest.mark.parametrize(("main", "defined", "sent"), LIFTED.values(), ids=LIFTED)
def test_what_cannot_be_found_goes_to_the_top_of_the_module(main: str, defined: str, sent: str) -> None:
    after, fix = repair(program("", main))
    assert fix.applicability is Applicability.UNSAFE
    assert fix.reason
    assert defined in after
    assert sent in after


CALLED = {
    "after what it is given": ("lambda n: embed(n, scale)", "partial(embed, scale=scale)"),
    "before it": ("lambda n: embed(scale, n)", "partial(embed, scale)"),
    "by name": ("lambda n: embed(n, scale=scale, limit=3)", "partial(embed, scale=scale, limit=3)"),
    "nothing": ("lambda n: embed(n)", "embed"),
}


@pytest.mark.parametrize(("sent", "instead"), CALLED.values(), ids=CALLED)
def test_a_lambda_that_only_calls_is_a_partial(sent: str, instead: str) -> None:
    top = f"def embed(n, scale=1, limit=0):\n    return {ON_GPU} * scale"
    before = program(top, MAPPED.replace("work", sent))
    after, _ = repair(before)
    assert after == before.replace(sent, instead)


def test_a_lambda_with_a_name_in_the_module_becomes_a_function_in_its_place() -> None:
    before = program(f"work = lambda n: {ON_GPU}  # so much", MAPPED)
    after, _ = repair(before)
    assert after == before.replace("work = lambda n: ", "def work(n):\n    return ")


REFUSED = {
    "another value later": f"def work(n):\n    return {ON_GPU} * scale\n\nscale = 3\n{MAPPED}",
    "a value that it changes": f"total = 0\n\n\ndef work(n):\n    nonlocal total\n    total += {ON_GPU}\n\n{MAPPED}",
    "a value that goes": f"def work(n):\n    return {ON_GPU} * k\n\nk = 3\n{MAPPED}\ndel k",
    "a value on one path": f"if scale:\n    k = 3\n\ndef work(n):\n    return {ON_GPU} * k\n\n{MAPPED}",
    "a decorator": f"@torch.no_grad()\ndef work(n):\n    return {ON_GPU}\n\n{MAPPED}",
    "a condition": f"if scale:\n    def work(n):\n        return {ON_GPU}\nelse:\n    work = print\n{MAPPED}",
    "two of one name": f"def work(n):\n    return n\n\ndef work(n):\n    return {ON_GPU}\n\n{MAPPED}",
    "a function that calls what its name stands for by then": (
        f"def work(n):\n    return work(n - 1) * scale if n else {ON_GPU}\n\nother = work\nwork = abs\n"
        + MAPPED.replace("work,", "other,")
    ),
    "a default made of what is around": f"def work(n, k=[scale]):\n    return {ON_GPU}\n\n{MAPPED}",
    "a default from around that more follow": f"def work(n, k=scale, m=1):\n    return {ON_GPU}\n\n{MAPPED}",
    "a default from around that is given": (
        f"def work(n, k=scale):\n    return {ON_GPU}\n\n{MAPPED.replace('.map(', '.starmap(')}"
    ),
    "any keyword": f"def work(n, **other):\n    return {ON_GPU} * scale\n\n{MAPPED}",
    "what looks around": f"def work(n):\n    return {ON_GPU}, locals()\n\n{MAPPED}",
    "another's name": f"def work(n):\n    return {ON_GPU} * scale\n\n\ndef other(work):\n    pass\n\n{MAPPED}",
    "a lambda with a comment": MAPPED.replace("work,", f"lambda n: {ON_GPU}  # twice\n        * scale,"),
}


@pytest.mark.parametrize("main", REFUSED.values(), ids=REFUSED)
def test_what_may_mean_something_else_there_stays(main: str) -> None:
    before = program("", main)
    after, fix = repair(before)
    assert (after, fix.applicability) == (before, Applicability.DISPLAY)


def test_a_name_that_the_module_has_is_not_taken() -> None:
    before = program("def work(n):\n    return n", f"def work(n):\n    return {ON_GPU}\n\n{MAPPED}")
    after, fix = repair(before)
    assert (after, fix.applicability) == (before, Applicability.DISPLAY)


FORKED = """
    print(torch.zeros(1).cuda())
    {before}
    process = mp.Process(target={target})
    process.start()
    process.join()
"""


@pytest.mark.parametrize(
    ("before", "target", "safe"),
    [
        (f"def work(n=1):\n        print({ON_GPU}, scale)\n", "work", True),
        (f"def work(n=1):\n        print({ON_GPU}, rows)\n", "work", True),
        (f"for k in range(2):\n        def work(n=1):\n            print({ON_GPU}, k)\n", "work", False),
        ("", "lambda: show(scale)", True),
        ("n = 1\n    n = 2", "lambda: show(n)", False),
        ("", "lambda: show(Settings.n)", False),
    ],
    ids=["one value", "of the module", "one value per round", "a lambda", "another value later", "an attribute"],
)
def test_what_is_read_earlier_is_safe_only_where_it_cannot_change(before: str, target: str, safe: bool) -> None:
    """A program that fails with a fork, and needs both: another start method, and a function that can be found."""
    top = f"rows = (1, 2)\n\n\nclass Settings:\n    n = 1\n\n\ndef show(n):\n    print({ON_GPU})"
    _, fix = repair(program(top, FORKED.format(before=before, target=target)), "CUD101")
    assert (fix.applicability is Applicability.SAFE) == safe, fix.reason
    assert fix.applicability is not Applicability.DISPLAY
