"""One question, asked twice in any of its spellings and places, has one answer."""

from __future__ import annotations

import pytest
from small_projects import findings

from cudalint.machine.questions import Either, both

HEAD = """\
import argparse
from multiprocessing import Pool
import torch
def work(n):
    return torch.ones(n, device="cuda").sum().item()
def warm():
    return torch.ones(3, device="cuda")
def launch():
    with Pool(1) as pool:
        pool.map(work, [1])
def is_gpu(args):
    return args.mode == "gpu"
def warm_if(args):
    if args.mode != "gpu":
        return
    warm()
class Runner:
    def __init__(self, args):
        self.on_gpu = args.mode == "gpu"
        if self.on_gpu:
            warm()
"""
TAIL = """\
if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode")
    parser.add_argument("--debug", action="store_true")
    parser.add_argument("--x", action="store_true")
    args = parser.parse_args()
    if args.debug:
        print(args)
"""
# Each warms up where the mode is "gpu".
FIRST = {
    "inline": 'if args.mode == "gpu":\n    warm()',
    "swapped": 'if args.mode != "gpu":\n    pass\nelse:\n    warm()',
    "helper": "if is_gpu(args):\n    warm()",
    "early return": "warm_if(args)",
    "field": "runner = Runner(args)",
    "conditional expression": 'warm() if "gpu" == args.mode else None',
    "and": 'if args.mode == "gpu" and args.mode is not None:\n    warm()',
    "match": 'match args.mode:\n    case "gpu":\n        warm()',
    "word": 'word = "many" if args.mode == "gpu" else "one"\nprint(args.debug)\nif word == "many":\n    warm()',
}
# Each launches where it is, or where it is not.
SECOND = {
    "inline": ('if args.mode != "gpu":\n    launch()', 'if args.mode == "gpu":\n    launch()'),
    "another value": ('if args.mode == "cpu":\n    launch()', 'if args.mode != "cpu":\n    launch()'),
    "membership": (
        'if args.mode in ("cpu", "none"):\n    launch()',
        'if args.mode not in ("cpu", "none"):\n    launch()',
    ),
    "helper": ("if not is_gpu(args):\n    launch()", "if is_gpu(args):\n    launch()"),
    "nothing": ("if not args.mode:\n    launch()", "if args.mode:\n    launch()"),
    "or": ('if not (args.mode == "gpu" or args.x):\n    launch()', 'if args.mode == "gpu" or args.x:\n    launch()'),
}


def _codes(first: str, second: str) -> list[str]:
    body = "\n".join(f"    {line}" for line in f"{first}\n{second}".splitlines())
    return [finding.code for finding in findings({"main.py": f"{HEAD}{TAIL}{body}\n"})]


@pytest.mark.parametrize("second", SECOND)
@pytest.mark.parametrize("first", FIRST)
def test_paths_that_exclude_each_other_stay_apart(first: str, second: str) -> None:
    apart, together = SECOND[second]
    assert _codes(FIRST[first], apart) == []
    assert _codes(FIRST[first], together) == ["CUD101"]


def test_paths_that_differ_in_what_may_be_so_or_not_are_told_nothing() -> None:
    given, first = ("flag", "--wandb"), ("is", "rank 0")
    neither = Either((given, False), (first, False))

    assert both(((given, True), (first, True)), ((neither, True),), 0) == []


def test_paths_that_differ_in_two_things_are_told_that_one_of_them_is_so() -> None:
    given, first = ("flag", "--wandb"), ("is", "rank 0")

    assert both(((given, True),), ((first, False),), 0) == [(Either((given, True), (first, False)), True)]


VARIABLE = """\
import os
from multiprocessing import Pool
import torch
def work(n):
    return torch.ones(n, device="cuda").sum().item()
def launch():
    with Pool(1) as pool:
        pool.map(work, [1])
def is_other():
    return os.environ.get("KIND", None) == "NPU"
if __name__ == "__main__":
    torch.cuda.init()
"""
# Whether the second question of a variable can be answered as it is asked, where the first one was.
DEFAULTS = {
    "it is set": ("is_other()", 'os.environ.get("KIND", "CPU") == "GPU"', False),
    "it is not that": ('os.environ.get("KIND") != "GPU"', 'os.environ.get("KIND", "CPU") == "GPU"', False),
    "then it would be the default": ('os.environ.get("KIND") != "GPU"', 'os.environ.get("KIND", "GPU") == "GPU"', True),
    "it may be the default": ('os.environ.get("KIND", "CPU") == "CPU"', 'os.environ.get("KIND", "GPU") == "GPU"', True),
    "it is asked without a default": ("is_other()", 'os.environ["KIND"] == "GPU"', False),
    "another variable": ("is_other()", 'os.environ.get("SORT", "CPU") == "GPU"', True),
}


@pytest.mark.parametrize("case", DEFAULTS)
def test_a_variable_is_the_same_whatever_is_its_default(case: str) -> None:
    first, second, is_reached = DEFAULTS[case]
    text = f"{VARIABLE}    if {first}:\n        if {second}:\n            launch()\n"
    assert ("CUD101" in [found.code for found in findings({"main.py": text})]) is is_reached


# Of Python 3.10 to 3.13, what is taken for certain, what for impossible, and what is a condition.
VERSIONS = {
    "sys.version_info.minor > 8": (True, ""),
    "sys.version_info[1] >= 7": (True, ""),
    "sys.version_info.minor != 8": (True, ""),
    "sys.version_info.minor < 8": (False, ""),
    "sys.version_info.minor == 9": (False, ""),
    "sys.version_info[1] >= 14": (False, ""),
    "sys.version_info.minor >= 12": (True, "if `sys.version_info.minor` is at least 12"),
}


@pytest.mark.parametrize("asked", VERSIONS)
def test_what_all_versions_of_python_in_range_answer_alike_is_no_condition(asked: str) -> None:
    is_reached, condition = VERSIONS[asked]
    found = findings({"main.py": f"import sys\n{VARIABLE}    if {asked}:\n        launch()\n"})
    assert ("CUD101" in [one.code for one in found]) is is_reached
    assert not is_reached or [one.condition or "" for one in found] == [condition]
