"""``cudalint --verify a.ipynb``: cells run in one interpreter as in a kernel, and places are those of cells."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
from command_line import call
from conftest import Run, environment
from notebook_files import FOLDER, cases, notebook

from cudalint.config import load
from cudalint.session import Session
from cudalint.verify import notebooks
from cudalint.verify.program import script, try_out
from cudalint.verify.runner import Runner


def _runner() -> ModuleType:
    spec = importlib.util.spec_from_file_location("notebooks_run", FOLDER / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RUN = _runner()
# The others run on hardware, by the same program.
SAMPLE = (
    "broken: CUDA in an early cell, a fork in a later one",
    "broken: a spawned process looks for a function of a cell",
    "ok: loky takes functions of cells along",
    "ok: a notebook launcher in a fresh kernel",
    "broken: autoreload brings no process back to where it was before its imports",
)


@pytest.mark.parametrize("name", SAMPLE)
def test_traps_come_true_and_their_look_alikes_do_not(name: str) -> None:
    cells = cases()[name]
    assert RUN.differs(name, cells, RUN.seen(cells, on_paper=True)) is None


def test_what_a_run_saw_is_kept_as_evidence(tmp_path: Path) -> None:
    name, other = SAMPLE[1], SAMPLE[2]
    cells = cases()[name]
    told = RUN.seen(cells, on_paper=True)
    place = RUN.this_place()
    results = {name: RUN.entry(name, cells, told)}
    RUN.save(tmp_path, place, results)
    # Another run adds to it, and what did not run takes nothing away.
    later = {name: RUN.not_run(name, cells, "no torch"), other: RUN.not_run(other, cases()[other], "no joblib")}
    RUN.save(tmp_path, place, later)
    (path,) = tmp_path.iterdir()
    kept = json.loads(path.read_text("utf-8"))
    assert kept["machine"]["python"] == place.python
    assert kept["fixtures"][name] == results[name]
    assert (kept["fixtures"][name]["verdict"], kept["fixtures"][name]["run"]["end"]) == ("confirmed", "child-death (1)")
    (finding,) = kept["fixtures"][name]["findings"]
    assert finding["finding"].startswith("CUD108@cell 2:4:")
    assert kept["fixtures"][other]["reasons"] == ["no joblib"]
    # A notebook that did otherwise than it says is refuted, with what was expected.
    refuted = RUN.entry(name, [cells[0], cells[1].replace("CUD108", "CUD101")], told)
    assert (refuted["verdict"], "CUD101" in refuted["reasons"][0]) == ("refuted", True)


def test_evidence_is_of_the_notebooks_as_they_are() -> None:
    known = cases()
    for path in (FOLDER.parent.parent / "docs" / "evidence" / "notebooks").glob("*.json"):
        kept = json.loads(path.read_text("utf-8"))["fixtures"]
        assert kept.keys() <= known.keys(), path
        changed = [name for name, one in kept.items() if one["sha256"] != RUN.digest(known[name])]
        assert not changed, f"{path}: run tests/notebooks/run.py --out docs/evidence/notebooks again: {changed}"


def test_cells_run_once_and_are_predicted_so(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    cells = (
        "import multiprocessing, torch",
        "def work(n):\n    return torch.ones(n, device='cuda').sum().item()",
        "print(multiprocessing.get_context('fork').Pool(1).map(work, [1]))",
        "torch.cuda.init()",
    )
    path = tmp_path / "a.ipynb"
    path.write_text(notebook(*cells, counts=(1, 2, 4, 3)), "utf-8")
    (predicted,) = Session(load([str(path)])).check([str(path)]).findings
    assert predicted.condition is not None
    given = ("--verify", "--paper", "--output-format", "json", "a.ipynb")
    told = json.loads(call(given, tmp_path, environment()).stdout)
    assert (told["end"], told["findings"], told["unpredicted"]) == ("ok", [], [])


FACTS = (
    "import asyncio, multiprocessing as mp, os, sys, threading\nown = sys.modules['__main__']",
    "print(__name__, hasattr(own, '__file__'), own.__spec__, os.path.basename(sys.argv[0]), sys.argv[1], os.getcwd())",
    "print(threading.active_count() > 1, threading.current_thread() is threading.main_thread())",
    "await asyncio.sleep(0)\nprint(asyncio.get_running_loop().is_running())",
    "words = !echo from a shell\nprint(words)\n%time y = 41 + 1\nprint(y)",
    "def f():\n    print('in a child', flush=True)\n\n\ndef code(method):\n"
    "    p = mp.get_context(method).Process(target=f)\n    p.start()\n    p.join()\n    return p.exitcode",
    "print(code('spawn'))\nprint(code('fork'))",
    "import pickle\nprint(pickle.loads(pickle.dumps(f)) is f, __import__('__main__') is own)",
    "1 / 0",
    "print('not any more')",
)


def _in_a_kernel(cells: tuple[str, ...], folder: Path) -> list[str]:
    """What cells print in a real one, up to the first that fails."""
    from jupyter_client.manager import start_new_kernel

    printed: list[str] = []

    def hear(message: dict[str, dict[str, str]]) -> None:
        if message["header"]["msg_type"] == "stream" and message["content"]["name"] == "stdout":
            printed.append(message["content"]["text"])

    manager, client = start_new_kernel(cwd=str(folder))
    try:
        for cell in cells:
            if client.execute_interactive(cell, output_hook=hear, timeout=60)["content"]["status"] != "ok":
                break
    finally:
        manager.shutdown_kernel(now=True)
    return "".join(printed).splitlines()


@pytest.mark.filterwarnings("ignore")  # of the kernel's client
def test_what_cells_see_is_what_they_see_in_a_kernel(tmp_path: Path) -> None:
    pytest.importorskip("ipykernel")
    (tmp_path / "a.ipynb").write_text(notebook(*FACTS), encoding="utf-8")
    told = try_out(script(str(tmp_path / "a.ipynb"), []), Runner(), 60.0)
    assert told.seen.said == "ZeroDivisionError: division by zero"
    known = _in_a_kernel(FACTS, tmp_path)
    timed = ("CPU times", "Wall time")
    expected = [row for row in known if not row.startswith(timed)]
    assert expected[0] == f"__main__ False None ipykernel_launcher.py -f {tmp_path}"
    assert [row for row in told.printed if not row.startswith(timed)] == expected


def test_without_ipython_what_only_it_can_do_is_left_out_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "IPython", None)
    cells = ("%load_ext autoreload\n!ls\n%env A=b\nfiles = !ls", "import os\nprint(os.environ['A'])", "%%bash\nls")
    (tmp_path / "a.ipynb").write_text(notebook(*cells), encoding="utf-8")
    told = try_out(script(str(tmp_path / "a.ipynb"), []), Runner(), 60.0)
    assert (told.seen.code, told.printed) == (0, ("b",))
    assert told.left_out == (
        "cell 1:1: %load_ext autoreload",
        "cell 1:2: !ls",
        "cell 1:4: files = !ls",
        "cell 3: %%bash",
    )


def test_the_table_names_cells_and_shows_their_lines(tmp_path: Path) -> None:
    cells = ("# Only this\nimport torch, multiprocessing", "torch.cuda.init()", *cases()[SAMPLE[0]][2:])
    text = notebook(*(cell.replace("  # <- CUD101", "") for cell in cells))
    (tmp_path / "a.ipynb").write_text(text, encoding="utf-8")
    done = call(("--verify", "--paper", "a.ipynb"), tmp_path, environment())
    assert "a.ipynb:cell 4:2:11: CUD101 confirmed: " in done.stdout
    assert "    a.ipynb:cell 2:1 in <module>: torch.cuda.init()\n" in done.stdout
    assert "    a.ipynb:cell 3:2 in work: return torch.ones(" in done.stdout


def test_repairs_of_a_notebook_are_run_and_nothing_of_the_users_is_written(tmp_path: Path) -> None:
    module = (
        "%%writefile workers.py\nimport torch\n\ndef work(n):\n    return torch.ones(n, device='cuda').sum().item()"
    )
    use = "import multiprocessing\nimport torch\nfrom workers import work\ntorch.cuda.init()"
    launch = "print(multiprocessing.get_context('fork').Pool(1).map(work, [1]))"
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").touch()
    (folder / "a.ipynb").write_text(notebook(module, use, launch), encoding="utf-8")
    before = (folder / "a.ipynb").read_bytes()
    done = call(("--verify", "--paper", "--fixes", "a.ipynb"), folder, environment())
    assert "for CUD101 in cell 3:1\n    repaired: ok" in done.stdout
    assert sorted(path.name for path in folder.iterdir()) == ["a.ipynb", "pyproject.toml"]
    # A module that another notebook wrote, by way of a link in the copy.
    (folder / "workers.py").write_text("x = 1\n")
    (folder / "a.ipynb").write_text(notebook(module.replace("workers", "other"), use, launch), encoding="utf-8")
    (folder / "other.py").write_text("kept = True\n")
    call(("--verify", "--paper", "--fixes", "a.ipynb"), folder, environment())
    assert (folder / "other.py").read_text() == "kept = True\n"
    assert before != (folder / "a.ipynb").read_bytes()


@pytest.mark.parametrize(
    ("text", "more", "words"),
    [
        (notebook("x <- 1", language="R"), (), "a.ipynb cannot be run: its cells are r, not Python"),
        ("{", (), "a.ipynb cannot be run: it is no notebook: not valid JSON"),
        (notebook("x = 1"), ("--", "3"), "a.ipynb is a notebook, which takes no arguments"),
    ],
)
def test_what_cannot_be_run_is_one_line(run: Run, tmp_path: Path, text: str, more: tuple[str, ...], words: str) -> None:
    (tmp_path / "a.ipynb").write_text(text, encoding="utf-8")
    done = run("--verify", "--paper", "a.ipynb", *more)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_plan_holds_each_cell_in_its_rows(tmp_path: Path) -> None:
    cells = ("import a\r\n\r\nx = 1", ("markdown", "# text"), "%%writefile -a m.py\ny = 2", "%%time\nz = 3")
    (tmp_path / "a.ipynb").write_text(notebook(*cells), encoding="utf-8")
    made = json.loads(notebooks.plan(tmp_path / "a.ipynb").text)["cells"]
    assert [(one.get("first"), one.get("source")) for one in made] == [
        (1, ["import a\r\n", "\r\n", "x = 1\n"]),
        (None, None),
        (4, ["pass\n", "z = 3\n"]),
    ]
    assert (made[1]["writes"], made[1]["appends"], made[1]["text"]) == ("m.py", True, "y = 2\n")
