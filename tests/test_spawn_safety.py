"""A change to spawn is safe only where nothing speaks against it: each doubt, and the program without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cudalint.config import Config
from cudalint.finding import Applicability, Fix
from cudalint.session import Session

PROGRAM = """\
import multiprocessing as mp
{imports}
import torch

{top}

def work(n{parameter}):
{body}    return torch.ones({size}, device="cuda").sum().item()


def main():
    torch.zeros(1, device="cuda")
{before}    with mp.Pool(1) as pool:
        print(pool.{call})


if __name__ == "__main__":
{guard}    main()
"""
PARTS = {
    "imports": "",
    "top": "",
    "parameter": "",
    "body": "",
    "size": "n",
    "before": "",
    "call": "map(work, [1, 2])",
    "guard": "",
}


def fix_of(tmp_path: Path, **parts: str) -> Fix:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.format(**(PARTS | parts)))
    (finding,) = Session(Config()).check([str(path)]).findings
    assert finding.code == "CUD101"
    assert finding.fix is not None
    return finding.fix


def test_a_plain_program_is_proven(tmp_path: Path) -> None:
    assert fix_of(tmp_path).applicability is Applicability.SAFE


PROVEN = {
    "a constant of the module": {"top": "SIZE = 4\n", "size": "SIZE"},
    "a partial of an importable function": {
        "imports": "from functools import partial\n",
        "parameter": ", scale",
        "call": "map(partial(work, scale=2), [1, 2])",
    },
    "an object of a class at the top": {
        "top": "class Job:\n    def __init__(self, n):\n        self.n = n\n\n",
        "size": "n.n",
        "call": "map(work, [Job(2)])",
    },
    "a dictionary that nobody changes": {"top": "SIZES = {'a': 4}\n", "size": "SIZES['a']"},
}


@pytest.mark.parametrize("parts", PROVEN.values(), ids=PROVEN)
def test_what_a_fresh_process_has_as_well_is_proven(tmp_path: Path, parts: dict[str, str]) -> None:
    fix = fix_of(tmp_path, **parts)
    assert fix.applicability is Applicability.SAFE, fix.reason


DOUBTED = {
    "a setting of the process": (
        {"imports": "import logging\n", "guard": "    logging.basicConfig()\n"},
        "basicConfig",
    ),
    "a seed": ({"before": "    torch.manual_seed(0)\n"}, "manual_seed"),
    "a global that the program changes": (
        {"top": "CONFIG = {'size': 1}\n", "size": "CONFIG['size']", "guard": "    CONFIG['size'] = 3\n"},
        "CONFIG",
    ),
    "a global that a function binds again": (
        {"top": "SIZE = 1\n\n\ndef grow():\n    global SIZE\n    SIZE = 3\n", "size": "SIZE", "guard": "    grow()\n"},
        "SIZE",
    ),
    "a list that is filled later": (
        {"top": "NAMES = []\n", "size": "len(NAMES)", "guard": "    NAMES.append('a')\n"},
        "NAMES",
    ),
    "work at the top of the module": ({"top": "print('loading')\n"}, "top of the module does work"),
    "an argument that nobody sees": (
        {"imports": "import sys\n", "call": "map(work, [int(a) for a in sys.argv])"},
        "may not pickle",
    ),
    "a file in an argument": ({"before": "    log = open('log')\n", "call": "map(work, [log])"}, "may not pickle"),
    "an object that pickles itself": (
        {
            "top": "class Job:\n    def __reduce__(self):\n        return (Job, ())\n\n",
            "size": "1",
            "call": "map(work, [Job()])",
        },
        "pickles itself",
    ),
    "a program that also runs without a GPU": (
        {"before": "    if torch.cuda.is_available():\n        print('GPU')\n"},
        "without a GPU",
    ),
}


@pytest.mark.parametrize(("parts", "reason"), DOUBTED.values(), ids=DOUBTED)
def test_what_relies_on_fork_is_not_safe(tmp_path: Path, parts: dict[str, str], reason: str) -> None:
    fix = fix_of(tmp_path, **parts)
    assert fix.applicability is Applicability.UNSAFE
    assert reason in (fix.reason or "")


REFUSED = {
    "a lambda in an argument": {"call": "map(work, [lambda: 1])", "size": "1"},
    "a dataclass with a lambda": {
        "imports": "from dataclasses import dataclass, field\n",
        "top": "@dataclass\nclass Job:\n    size: object = field(default_factory=lambda: (lambda: 1))\n\n",
        "size": "1",
        "call": "map(work, [Job()])",
    },
    "a lambda as the default of an argument that travels": {
        "top": "class Job:\n    def __init__(self, f=lambda: 1):\n        self.f = f\n\n",
        "size": "1",
        "call": "map(work, [Job()])",
    },
    "visible devices after a query of the module": {
        "imports": "import os\n",
        "top": "HAS_GPU = torch.cuda.device_count() and torch.cuda.is_initialized()\n",
        "body": '    os.environ["CUDA_VISIBLE_DEVICES"] = "1"\n',
    },
}


@pytest.mark.parametrize("parts", REFUSED.values(), ids=REFUSED)
def test_what_spawn_would_break_or_hide_is_never_safe(tmp_path: Path, parts: dict[str, str]) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.format(**(PARTS | parts)))
    fixes = [f.fix for f in Session(Config()).check([str(path)]).findings if f.fix is not None]
    assert not [fix for fix in fixes if fix.applicability is Applicability.SAFE]
