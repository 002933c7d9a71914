"""cudalint follows changes of programs: what keeps the meaning keeps the findings, for the rest paper CUDA decides.

A sample; `python -m metamorphic` in this folder runs every change over every fixture and over generated programs.
"""

from __future__ import annotations

import sys
from functools import cache
from itertools import islice
from pathlib import Path

import libcst as cst
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from metamorphic.judge import analysed, judged
from metamorphic.program import Program, fixtures, generated
from metamorphic.registry import ALL, IDENTITY
from metamorphic.tags import tagged, tags
from metamorphic.transformation import Transformation

EVERY, SEED, COUNT = 60, 60_000, 2
PRESERVING = [t for t in ALL.values() if t.preserving]
CHANGING = [t for t in ALL.values() if not t.preserving and t is not IDENTITY]
# Per change a fixture that it makes worse or better: what cudalint must say afterwards is what happens then.
DECISIVE = {
    "lambda": "CUD302/broken_spawn_process_args.py",
    "to-spawn": "CUD101/broken_numba_imap.py",
    "to-fork": "CUD101/ok_spawn_pool.py",
    "parent-initialises": "CUD101/ok_pool_before_cuda.py",
    "parent-asks": "CUD201/broken_fork_pool_untouched_parent.py",
    "to-cpu": "CUD301/broken_queue_put.py",
    "parent-to-cpu": "CUD103/broken_global_table.py",
    "queue-of-fork": "CUD108/ok_queue_of_the_same_context.py",
    "queue-of-spawn": "CUD108/broken_fork_queue.py",
}


@cache
def _fixtures() -> tuple[Program, ...]:
    return tuple(fixtures())


@pytest.mark.parametrize("transformation", PRESERVING, ids=lambda t: t.name)
def test_findings_stay_where_the_meaning_stays(transformation: Transformation) -> None:
    number = PRESERVING.index(transformation)
    sample = [*_fixtures()[number % EVERY :: EVERY], *generated(SEED + number * COUNT, COUNT)]
    verdicts = [v for program in sample if (v := judged(program, transformation)) is not None]
    # What applies to few fixtures is tried on the first that it applies to, wherever they stand.
    others = (v for program in _fixtures() if program not in sample and (v := judged(program, transformation)))
    verdicts.extend(islice(others, max(0, COUNT - len(verdicts))))
    assert len(verdicts) >= COUNT
    assert [f"{v.program.name}: {v.complaint}" for v in verdicts if v.complaint is not None] == []


@pytest.mark.parametrize("transformation", CHANGING, ids=lambda t: t.name)
def test_what_a_change_does_is_foretold(transformation: Transformation) -> None:
    program = next(p for p in _fixtures() if p.name == DECISIVE[transformation.name])
    verdict = judged(program, transformation)
    assert verdict is not None
    assert verdict.complaint is None, f"{verdict.complaint}\n{verdict.seen}\n{verdict.files}"


def test_a_change_of_meaning_is_noticed() -> None:
    """The comparison can fail: a finding that a change removes, adds or moves is told."""

    def without(module: cst.Module) -> dict[str, cst.Module]:
        return {"program": cst.parse_module(module.code.replace("torch.cuda.init()", "pass"))}

    program = Program("forked", _FORKED)
    assert [f.code for f in analysed({"program": _FORKED})] == ["CUD101"]
    verdict = judged(program, Transformation("innocent", preserving=True, apply=without))
    assert verdict is not None
    assert verdict.complaint == "lost CUD101 (error), new CUD201 (warning)"


def test_anchors_are_found_again() -> None:
    module = tagged(
        cst.parse_module("x = f(a)(b)\ny = g(f(a))\n"), [((1, 5), (1, 12)), ((2, 7), (2, 11)), ((2, 1), (2, 12))]
    )
    moved = cst.parse_module("first()\n").with_changes(body=[*cst.parse_module("first()\n").body, *module.body])
    assert tags(moved) == {(2, 5): 0, (3, 7): 1, (3, 1): 2}
    assert module.code == "x = f(a)(b)\ny = g(f(a))\n"


_FORKED = """\
import multiprocessing as mp
import torch

def work(n):
    return torch.ones(n).cuda().sum().item()

if __name__ == "__main__":
    torch.cuda.init()
    with mp.get_context("fork").Pool(2) as pool:
        print(pool.map(work, range(4)))
"""
