"""Paper CUDA against what was measured: every expression and every behaviour, and the runner itself."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest
from fixture_markers import header

sys.path.insert(0, str(Path(__file__).parent))

from paper.behaviour import Row, check_row
from paper.fixture import judge
from paper.plugin import Unchanged
from paper.rows import NOT_COVERED, ROWS
from paper.run import run
from paper.watch import Stillness, watched
from since_python import skip_where_otherwise

from cudalint.verify import headers, needs
from cudalint.verify.facts import measure
from cudalint.verify.facts.recorded import chosen
from cudalint.verify.paper import STUBS, Paper, machine
from cudalint.verify.surroundings import HARDWARE


@pytest.mark.parametrize("row", [pytest.param(row, id=row.id) for row in ROWS])
def test_behaviour(row: Row, tmp_path: Path, unchanged: Unchanged) -> None:
    """A tiny program ends as it did on hardware."""
    skip_where_otherwise(row.id)
    if not unchanged({"program.py": row.program}, ("paper.behaviour",), asdict(row)):
        assert check_row(row, tmp_path / "program.py") == []


@pytest.mark.parametrize("framework", ["torch", "cupy", "numba", "jax", "tensorflow", "libraries"])
def test_expressions(framework: str, unchanged: Unchanged) -> None:
    """Every measured expression poisons, initialises and fails as it did on hardware."""
    expressions = {one.name: repr(one) for one in chosen([framework])}
    if unchanged(expressions, ("cudalint.verify.facts.recorded", "cudalint.verify.facts", "cudalint.verify.paper")):
        return
    measurement = measure(machine(2), chosen([framework]), surroundings=Paper(2), environment={"PAPER_SLOWNESS": "0"})
    assert [(one.expression.text, one.why_not) for one in measurement.expressions if one.why_not] == []
    assert [(one.expression.text, one.differences) for one in measurement.expressions if one.differences] == []


def test_rows_have_names_of_their_own() -> None:
    """Ids are unique, and every omission has a reason."""
    assert len({row.id for row in ROWS}) == len(ROWS)
    assert all(NOT_COVERED.values())


def _run(tmp_path: Path, text: str, limit: float = 10.0) -> list[str]:
    program = tmp_path / "program.py"
    program.write_text(text)
    return judge(header(text), run(program, limit=limit))


def _header(*lines: str) -> str:
    table = "".join(f"# {line}\n" for line in lines)
    return f"# /// script\n# dependencies = []\n#\n# [tool.cudalint]\n{table}# ///\n"


def test_unknown_names_are_refused(tmp_path: Path) -> None:
    """A gap is an error, and is seen even where the program swallows it."""
    swallow = "try:\n    torch.fancy_thing(1)\nexcept Exception as e:\n    print(e)\n"
    text = _header('outcome = "ok"') + "import torch\n" + swallow
    assert _run(tmp_path, text) == ["paper CUDA does not know torch.fancy_thing"]


def test_judge_keeps_a_true_header(tmp_path: Path) -> None:
    """A header that tells the truth draws no complaint."""
    text = _header('outcome = "cost"', 'measure = "contexts >= 1"') + (
        "import torch\ntorch.ones(1).cuda()\nprint('measured: contexts = 1')\n"
    )
    assert _run(tmp_path, text) == []


def test_judge_finds_a_false_header(tmp_path: Path) -> None:
    """Outcome, message and measure are all compared."""
    text = _header('outcome = "crash"', 'message = "no such"', 'measure = "n == 2"') + "print('measured: n = 1')\n"
    complaints = "\n".join(_run(tmp_path, text))
    assert "wanted crash, observed ok" in complaints
    assert "no message 'no such'" in complaints
    assert "measured n = 1, which is not == 2" in complaints


def test_children_that_were_told_to_end_do_not_count(tmp_path: Path) -> None:
    """terminate() is no death; exit 3 is one; nobody survives the run."""
    program = tmp_path / "program.py"
    program.write_text(
        "import multiprocessing as mp, time, sys\n"
        "if __name__ == '__main__':\n"
        "    p = mp.Process(target=time.sleep, args=(60,)); p.start(); p.terminate(); p.join()\n"
        "    q = mp.Process(target=sys.exit, args=(int(sys.argv[1]),)); q.start(); q.join()\n"
    )
    assert run(program, args=["0"]).outcome == "ok"
    assert list(run(program, args=["3"]).dead.values()) == [3]


def test_programs_start_fast(tmp_path: Path) -> None:
    """Importing torch costs little more than NumPy: hundreds of programs run in CI. Itself it has 2,000 modules."""
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, numpy\nbefore = len(sys.modules)\nimport torch\ntorch.ones(1).cuda()\n"
        "print(len(sys.modules) - before)\n"
    )
    assert 10 < int(run(program).stdout) < 80


REDIRECTED = """\
import importlib.abc
import importlib.util
import sys


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != "numba.cuda" or path[0].endswith("numba_cuda/numba"):
            return None
        [home] = importlib.util.find_spec("numba_cuda").submodule_search_locations
        for finder in sys.meta_path:
            spec = finder.find_spec(name, [home + "/numba"], target)
            if spec is not None:
                return spec
        return None


sys.meta_path.insert(0, Finder())
from numba import cuda

print(cuda.is_available())
"""


def test_an_installed_numba_cuda_does_not_take_the_place_of_the_stub(tmp_path: Path) -> None:
    assert _run(tmp_path, _header('outcome = "ok"') + REDIRECTED) == []


def test_stillness_is_counted_by_looks_and_not_by_time() -> None:
    """Whoever runs, or waits for a processor, has moved; so has one that used some, or that is new or gone."""
    still = Stillness(3)
    moves = [{1: 4}, {1: 4, 2: 0}, {1: 4, 2: None}, {1: 4, 2: None}, {1: 4, 2: 1}, {1: 5, 2: 1}, {1: 5}]
    assert [still.lasts(work) for work in moves for _ in range(2)] == [False] * 14
    assert [still.lasts({1: 5}) for _ in range(2)] == [False, True]
    assert not Stillness(2).lasts({})


BUSY_ELSEWHERE = """\
import threading, time

def work():
    until = time.thread_time() + 0.6
    while time.thread_time() < until:
        pass

thread = threading.Thread(target=work)
thread.start()
thread.join()
print("done")
"""


NOBODY_WRITES = "import os\nos.read(os.pipe()[0], 1)\n"


@pytest.mark.parametrize(("text", "outcome"), [(BUSY_ELSEWHERE, "ok"), (NOBODY_WRITES, "hang")], ids=("busy", "still"))
def test_who_waits_for_a_thread_that_works_is_not_still(tmp_path: Path, text: str, outcome: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(text)
    assert watched(program, 0.3, lambda path: run(path, limit=60)).outcome == outcome


def imported(package: str) -> Iterator[str]:
    """The packages that a stub imports, itself or by another stub."""
    seen, waiting = {package}, [package]
    while waiting:
        for file in (STUBS / waiting.pop()).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                if isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
                    names = [node.module]
                new = {name.partition(".")[0] for name in names} - seen
                seen |= new
                waiting += new
    yield from seen


@pytest.mark.parametrize("package", sorted(path.name for path in STUBS.iterdir() if path.is_dir()))
def test_a_program_does_not_run_where_what_its_stub_rests_on_is_not_installed(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would end by an error of its own, which refutes nothing."""
    own = {path.stem for path in STUBS.iterdir()} | sys.stdlib_module_names | {"numpy"}
    wanted = set(imported(package)) - own
    program = tmp_path / "ok.py"
    rows = ["/// script", f'dependencies = ["{package}"]', "[tool.cudalint]", 'outcome = "ok"', "///"]
    program.write_text("".join(f"# {row}\n" for row in rows), encoding="utf-8")
    (found,) = headers.find([program])
    assert needs.obstacle(found, 1, Paper(1)) is None
    monkeypatch.setattr(type(HARDWARE), "has_module", lambda self, name: False)
    said = needs.obstacle(found, 1, Paper(1))
    assert said == (f"{wanted.pop()} is not installed" if wanted else None)
