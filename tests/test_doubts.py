"""Of what is not certain a finding says why: one program for each reason."""

from __future__ import annotations

import pytest
from small_projects import cases, files, findings

from cudalint.machine.outcome import Doubt

PROGRAMS = {
    Doubt.CALLER: ("callers.txt", "no caller: 102"),
    Doubt.METHOD: ("objects.txt", "a start method that a file may change is not certain"),
    Doubt.MISSING: ("imports.txt", "a function of another package that stands in for it"),
    Doubt.DEFINED: ("false_alarms.txt", "what a package that is not seen may bind by a star"),
    Doubt.USES: ("given.txt", "unknown classes that are given a GPU"),
    Doubt.STARTS: ("unfamiliar.txt", "a function that nobody models and that may fork"),
    Doubt.WRITTEN: (
        "choices.txt",
        "a forked worker asks for an array that the program made before where it was not there",
    ),
    Doubt.TYPE: ("choices.txt", "singledispatch of something whose type the code does not show"),
    Doubt.BUILT: ("reports.txt", "dlib's networks in the parent and in the child: davisking/dlib#617"),
    Doubt.DEVICE: ("objects.txt", "as by an operator"),
}


@pytest.mark.parametrize("doubt", PROGRAMS, ids=lambda doubt: doubt.name)
def test_a_finding_says_why_it_is_not_certain(doubt: Doubt) -> None:
    file, name = PROGRAMS[doubt]
    said = [one.message for one in findings(files(cases(file)[name])) if one.code == "CUD102"]
    assert said
    assert [message for message in said if not message.endswith(f" may fork after CUDA was used: {doubt.value}")] == []


@pytest.mark.parametrize(
    ("doubt", "condition"),
    [
        (Doubt.USES, "if `Detector()` uses the GPU that it is given and `Embedder()` uses the GPU that it is given"),
        (Doubt.STARTS, "if `go()` runs what it is given in forked processes"),
        (Doubt.TYPE, "if `total()` is given a Tensor"),
        (Doubt.BUILT, "if `dlib` was built with CUDA"),
    ],
    ids=lambda one: getattr(one, "name", None),
)
def test_what_would_settle_it_is_the_condition(doubt: Doubt, condition: str) -> None:
    file, name = PROGRAMS[doubt]
    assert {one.condition for one in findings(files(cases(file)[name])) if one.code == "CUD102"} == {condition}


MANY = """\
import multiprocessing as mp
import os
import sys

import torch

try:
    import fancy
except ImportError:
    torch.cuda.init()

{questions}

def work(n):
    return torch.ones(n, device="cuda")


if __name__ == "__main__":
    mp.get_context("fork").Pool(2).map(work, [1])
"""


def test_what_a_cause_needs_is_said_also_where_its_path_no_longer_asks() -> None:
    """Each of the questions leads to processes of its own: the first one is given up, and the cause remembers it."""
    questions = "".join(f'if sys.argv[{i}] == "on{i}":\n    os.environ["CUDA_{i}"] = "1"\n' for i in range(1, 5))
    (found,) = [one for one in findings({"main.py": MANY.format(questions=questions)}) if one.code == "CUD102"]
    assert found.message.endswith(Doubt.MISSING.value)
    assert found.condition == "if fancy is not installed"
