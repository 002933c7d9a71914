"""Functions that nobody calls in sight: an error where every caller would meet it, a warning where one may avert it."""

from __future__ import annotations

import pytest

from cudalint.finding import Severity
from cudalint.project.analysis import Options, analyse
from cudalint.text.source import SourceFile

READS = """\
import multiprocessing
import torch

def work(data):
    print(data.sum().item())
"""
LOADS = """\
import torch
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __init__(self, rows):
        self.rows = rows
    def __len__(self):
        return 8
    def __getitem__(self, i):
        return self.rows[i]
"""
FORKED_FROM_OWN = """
def run():
    data = torch.ones(4, device="cuda")
    process = multiprocessing.get_context("fork").Process(target=work, args=(data,))
    process.start()
    process.join()
"""
FORKED_AS_SETTLED = """
def run():
    data = torch.ones(4, device="cuda")
    process = multiprocessing.Process(target=work, args=(data,))
    process.start()
    process.join()
"""
FORKED_FROM_MODULE = """
DATA = torch.ones(4, device="cuda")

def run():
    process = multiprocessing.Process(target=work, args=(DATA,))
    process.start()
    process.join()
"""
LOADED_BY_FORK = """
def run():
    rows = torch.ones(8, device="cuda")
    for row in DataLoader(Rows(rows), num_workers=2, multiprocessing_context="fork"):
        print(row)
"""
LOADED_AS_SETTLED = """
def run():
    rows = torch.ones(8, device="cuda")
    for row in DataLoader(Rows(rows), num_workers=2):
        print(row)
"""
OF_ITS_CALLER = """
def run(device):
    data = torch.ones(4, device=device)
    process = multiprocessing.get_context("fork").Process(target=work, args=(data,))
    process.start()
    process.join()
"""
ENGINE = """\
import torch

HAS_CUDA = torch.cuda.is_available()

from vllm import LLM

def load(model, **kwargs):
    return LLM(model=model, **kwargs)
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(READS + FORKED_FROM_OWN, [("CUD103", Severity.ERROR)], id="fork is chosen"),
        pytest.param(READS + FORKED_AS_SETTLED, [("CUD103", Severity.WARNING)], id="a caller may choose spawn"),
        pytest.param(READS + FORKED_FROM_MODULE, [("CUD103", Severity.ERROR)], id="its module used CUDA"),
        pytest.param(LOADS + LOADED_BY_FORK, [("CUD402", Severity.ERROR)], id="a loader, fork is chosen"),
        pytest.param(
            LOADS + LOADED_AS_SETTLED, [("CUD402", Severity.WARNING)], id="a loader, a caller may choose spawn"
        ),
        pytest.param(ENGINE, [("CUD104", Severity.WARNING)], id="an engine spawns where a caller initialised CUDA"),
        pytest.param(READS + OF_ITS_CALLER, [], id="a caller may choose the CPU"),
    ],
)
def test_an_error_is_what_every_caller_meets(text: str, expected: list[tuple[str, Severity]]) -> None:
    found = analyse([SourceFile("jobs.py", text, text.encode())], Options()).findings
    assert [(one.code, one.severity) for one in found] == expected


ON_THE_CPU = """\
import multiprocessing
import torch

use_gpu = torch.cuda.is_available()

def work(model):
    print(model.cuda() if use_gpu else model)

class Jobs:
    def start(self):
        multiprocessing.Process(target=work, args=(torch.nn.Linear(1, 1),)).start()

def other():
    pass

def main(flag=False):
    {}

if __name__ == "__main__":
    main()
"""
FUNCTION = ON_THE_CPU.replace("class Jobs:\n    def start(self):\n    ", "def start():\n")


@pytest.mark.parametrize(
    ("text", "main", "expected"),
    [
        pytest.param(FUNCTION, "if use_gpu:\n        other()\n    else:\n        start()", [], id="not taken"),
        pytest.param(FUNCTION, "if not use_gpu:\n        return start()", [], id="not taken to return"),
        pytest.param(ON_THE_CPU, "jobs = Jobs()\n    if not use_gpu:\n        jobs.start()", [], id="a method"),
        pytest.param(FUNCTION, "if not use_gpu:\n        other()", ["CUD101"], id="what is not taken calls another"),
        pytest.param(FUNCTION, "if flag:\n        start()", ["CUD101"], id="a caller may say otherwise"),
    ],
)
def test_what_is_called_only_where_the_program_never_goes_has_a_caller(
    text: str, main: str, expected: list[str]
) -> None:
    text = text.format(main)
    found = analyse([SourceFile("jobs.py", text, text.encode())], Options()).findings
    assert [one.code for one in found] == expected


OPTIONAL = """\
import multiprocessing
import torch

def work(n):
    return torch.ones(n, device="cuda").sum().item()

{}
"""
FORKS = """\
def run(items, {option}):
    torch.zeros(1, device="cuda")
    if {test}:
        return [work(item) for item in items]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return pool.map(work, items)
"""
OF_ITS_CLASS = """\
class Job:
    def __init__(self, {option}):
        self.{name} = {name}

    def run(self, items):
        torch.zeros(1, device="cuda")
        if {test}:
            return [work(item) for item in items]
        with multiprocessing.get_context("fork").Pool(2) as pool:
            return pool.map(work, items)
"""


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        pytest.param(FORKS.format(option="workers=1", test="workers == 1"), "if `workers` is not 1", id="a number"),
        pytest.param(FORKS.format(option="*, fast=False", test="not fast"), "if `fast` is true", id="a switch"),
        pytest.param(FORKS.format(option="n: Optional[int] = None", test="not n"), "if `n` is true", id="or None"),
        pytest.param(FORKS.format(option="n: int | None = None", test="not n"), "if `n` is true", id="or None, newer"),
        pytest.param(FORKS.format(option="n: str | None = None", test="not n"), None, id="or None, a text"),
        pytest.param(FORKS.format(option="n=0, /", test="n == 0"), None, id="by its place alone"),
        pytest.param(FORKS.format(option="device='cpu'", test="device == 'cpu'"), None, id="no number and no switch"),
        pytest.param(
            OF_ITS_CLASS.format(option="workers=1", name="workers", test="self.workers < 2"),
            "if `workers` is at least 2",
            id="an option of its class",
        ),
    ],
)
def test_who_calls_what_starts_nothing_by_itself_gives_its_options(text: str, condition: str | None) -> None:
    text = OPTIONAL.format(text)
    found = analyse([SourceFile("jobs.py", text, text.encode())], Options()).findings
    assert [(one.code, one.severity, one.condition) for one in found] == (
        [] if condition is None else [("CUD102", Severity.WARNING, condition)]
    )


def test_who_calls_what_starts_something_by_itself_need_give_it_nothing() -> None:
    text = OPTIONAL.format(FORKS.format(option="workers=2", test="workers < 2"))
    found = analyse([SourceFile("jobs.py", text, text.encode())], Options()).findings
    assert [(one.code, one.severity, one.condition) for one in found] == [("CUD101", Severity.ERROR, None)]


PUT_ASIDE = """\
import importlib.util
import inspect
import multiprocessing
import torch

def requires(name):
    def given(decorated):
        if inspect.isclass(decorated):
            class Missing:
                def __init__(self, *args):
                    raise ImportError(name)
            return decorated if importlib.util.find_spec(name) else Missing
        return decorated
    return given

def one(n):
    return torch.ones(n, device="cuda").sum().item()

@requires("spacy")
class Scores:
    def all(self, items):
        torch.zeros(1, device="cuda")
        return multiprocessing.get_context("fork").Pool(2).map(one, items)
"""


def test_a_class_that_a_decorator_may_put_another_in_the_place_of_is_looked_at() -> None:
    found = analyse([SourceFile("scores.py", PUT_ASIDE, PUT_ASIDE.encode())], Options()).findings
    assert [one.code for one in found] == ["CUD101"]


PREPARES = """\
import multiprocessing
import torch

def work(n):
    return torch.ones(n, device="cuda")

class Trainer:
    def prepare(self, kind=None):
        if kind == "first":
            self._first()
        if kind == "second":
            self._second()

    def _first(self):
        multiprocessing.Pool(2).map(work, [1])

    def _second(self):
        multiprocessing.Pool(2).map(work, [1])
"""


def test_a_method_that_may_lead_to_several_launchers_runs_once() -> None:
    text = "import trainer\nif __name__ == '__main__':\n    print(trainer.Trainer)\n"
    files = {"main.py": text, "trainer.py": PREPARES}
    found = analyse([SourceFile(name, text, text.encode()) for name, text in files.items()], Options())
    assert [finding.code for finding in found.findings] == ["CUD102", "CUD102"]
    # The program, the method, and each of the launchers by itself.
    assert found.work.entries == 4
