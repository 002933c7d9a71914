"""A project of twenty files: its worker reaches CUDA through five calls in four modules, and each link matters."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
from small_projects import findings, hops, sources

from cudalint import config
from cudalint.finding import Finding, Severity
from cudalint.policy.selection import Layer, Selection
from cudalint.project.analysis import Options, analyse
from cudalint.session import Session
from cudalint.structs import replace

MAIN = """\
import multiprocessing

from shop.engine import gpu
from shop.serving.worker import answer


def main():
    gpu.warm_up()
    with multiprocessing.Pool(2) as pool:
        print(pool.map(answer, [1, 2, 3]))


if __name__ == "__main__":
    main()
"""
CHAIN = {
    "main.py": MAIN,
    "shop/__init__.py": "",
    "shop/serving/__init__.py": "",
    "shop/serving/worker.py": "from ..catalogue import rank\n\n\ndef answer(request):\n    return rank.best(request)\n",
    "shop/catalogue/__init__.py": "from .rank import best\n",
    "shop/catalogue/rank.py": (
        "from .score import score_all\n\n\ndef best(request):\n    return max(score_all([request]))\n"
    ),
    "shop/catalogue/score.py": (
        "from shop import engine\n\n\ndef score_all(items):\n    return [engine.evaluate(item) for item in items]\n"
    ),
    "shop/engine/__init__.py": "from .gpu import evaluate, warm_up\n",
    "shop/engine/gpu.py": """\
import torch


def warm_up():
    torch.zeros(1, device="cuda")


def evaluate(item):
    return _tensor(item).exp().item()


def _tensor(item):
    return torch.tensor(float(item), device="cuda")
""",
}
OTHERS = {
    f"shop/other/part{i}.py": (
        f"import torch\n\nfrom shop.other import part{(i + 1) % 10}\n\n\ndef step{i}(n):\n"
        f"    return part{(i + 1) % 10}.step{(i + 1) % 10}(torch.ones(n).sum().item())\n"
    )
    for i in range(10)
}
PROJECT = {**CHAIN, "shop/other/__init__.py": "", **OTHERS}
WAY = [
    "step main.py:14",
    "step main.py:8",
    "cause shop/engine/gpu.py:5",
    "step main.py:14",
    "launch main.py:10",
    "step main.py:10",
    "step shop/serving/worker.py:5",
    "step shop/catalogue/rank.py:5",
    "step shop/catalogue/score.py:5",
    "step shop/engine/gpu.py:9",
    "effect shop/engine/gpu.py:13",
]
# Each link of the chain, and what stands there instead.
LINKS = {
    "main no longer warms up": ("main.py", "    gpu.warm_up()\n", ""),
    "main is not called": ("main.py", "\n    main()", "\n    pass"),
    "the pool spawns": ("main.py", "multiprocessing.Pool", 'multiprocessing.get_context("spawn").Pool'),
    "another worker": ("main.py", "pool.map(answer,", "pool.map(abs,"),
    "the worker calls nobody": ("shop/serving/worker.py", "rank.best(request)", "request"),
    "best does not score": ("shop/catalogue/rank.py", "score_all([request])", "[request]"),
    "score_all asks nobody": ("shop/catalogue/score.py", "engine.evaluate(item)", "item"),
    "evaluate makes no tensor": ("shop/engine/gpu.py", "_tensor(item).exp().item()", "item"),
    "the tensor is on the CPU": ("shop/engine/gpu.py", 'float(item), device="cuda"', "float(item)"),
    "warming up is on the CPU": ("shop/engine/gpu.py", 'zeros(1, device="cuda")', "zeros(1)"),
}


def test_the_worker_is_found_with_the_whole_way() -> None:
    assert len(PROJECT) == 20
    (found,) = findings(PROJECT)
    assert (found.code, found.severity) == ("CUD101", Severity.ERROR)
    assert hops(found) == WAY


@pytest.mark.parametrize("link", LINKS)
def test_without_one_link_there_is_no_error(link: str) -> None:
    path, before, after = LINKS[link]
    assert before in PROJECT[path]
    changed = {**PROJECT, path: PROJECT[path].replace(before, after)}
    assert [f.code for f in findings(changed) if f.severity is Severity.ERROR] == []


def test_the_order_of_files_changes_nothing() -> None:
    given = sources(PROJECT)
    first = analyse(given, Options()).findings
    for seed in range(5):
        random.Random(seed).shuffle(given)
        assert analyse(given, Options()).findings == first


def _printed(folder: Path, *paths: str) -> bytes:
    command = [sys.executable, "-m", "cudalint", "check", "--output-format", "json", *paths]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    assert done.returncode == 1, done.stderr
    return done.stdout


def _found(*paths: Path, select: str | None = None) -> tuple[Finding, ...]:
    chosen = config.load([str(paths[0])])
    if select is not None:
        chosen = replace(chosen, selection=Selection((Layer(select=(select,)),)))
    return Session(chosen).check([str(path) for path in paths]).findings


def test_runs_print_the_same_and_selection_hides_but_does_not_change(tmp_path: Path) -> None:
    for path, text in PROJECT.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text("[tool.cudalint]\n", encoding="utf-8")
    assert _printed(tmp_path, "main.py", "shop") == _printed(tmp_path, "shop", "main.py")
    whole = _found(tmp_path)
    assert [f.code for f in whole] == ["CUD101"]
    assert _found(tmp_path, select="CUD101") == whole
    assert _found(tmp_path, select="CUD102") == ()
    # A step of the trace lies in this file.
    assert _found(tmp_path / "shop" / "engine" / "gpu.py") == whole
