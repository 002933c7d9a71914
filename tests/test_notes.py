"""Which findings are notes: what the code shows to be meant, or to come to nothing as it stands."""

from __future__ import annotations

import pytest

from cudalint.project.analysis import Options, analyse
from cudalint.text.source import SourceFile


def found(text: str) -> list[tuple[str, str]]:
    """The findings of a program, each with its severity."""
    source = SourceFile("/p/main.py", text, text.encode())
    return [(f.code, f.severity.value) for f in analyse([source], Options(), root="/p").findings]


POOL = """\
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor

import torch


def load():
    global MODEL
    MODEL = torch.ones(1, device="cuda")


def nothing():
    pass


def work(n):
    return torch.ones(n, device="cuda").sum().item()


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    with POOL as pool:
        print(list(pool.map(work, range(8))))
"""


@pytest.mark.parametrize(
    ("pool", "severity"),
    [
        ("context.Pool(4, initializer=load)", "note"),
        ("ProcessPoolExecutor(4, mp_context=context, initializer=load)", "note"),
        # Each task opens its context, and as many as the machine has cores may be more than its GPU holds.
        ("context.Pool(4, initializer=nothing)", "warning"),
        ("context.Pool(4)", "warning"),
        ("context.Pool(initializer=load)", "warning"),
        ("context.Pool(os.cpu_count(), initializer=load)", "warning"),
        ("ProcessPoolExecutor(4, mp_context=context)", "warning"),
    ],
)
def test_a_context_that_an_initializer_opens_for_each_of_a_named_number_of_workers(pool: str, severity: str) -> None:
    assert found(POOL.replace("POOL", pool)) == [("CUD201", severity)]
