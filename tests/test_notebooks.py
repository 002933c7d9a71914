"""Notebooks: read as programs in the order of their cells, reported by cell, repaired without touching the rest."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from conftest import FORKED, Run
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from notebook_files import cases, marked, notebook, unmarked

from cudalint.config import Config, load
from cudalint.finding import Edit, Position, Span
from cudalint.fixing.rounds import fix
from cudalint.report.places import located
from cudalint.report.render import OutputFormat
from cudalint.session import Session
from cudalint.text.decode import Refusal
from cudalint.text.lines import Rows
from cudalint.text.magics import program_of
from cudalint.text.notebook import read

# The finding stands in cell 4 and leads through cells 2 and 3; the first one is no code.
CELLS = (
    ("markdown", "# Training\n\nimport torch"),
    "import multiprocessing\n\nimport torch\ntorch.zeros(1, device='cuda')",
    "def work(n):\n    return torch.ones(n, device='cuda').sum().item()",
    "pool = multiprocessing.get_context('fork').Pool(1)\nprint(pool.map(work, [1, 2, 3]))",
)


@pytest.mark.parametrize("name", cases())
def test_traps_of_notebooks_are_told_from_their_look_alikes(name: str, tmp_path: Path) -> None:
    cells = cases()[name]
    (tmp_path / "pyproject.toml").touch()
    path = tmp_path / "a.ipynb"
    path.write_text(notebook(*map(unmarked, cells)), encoding="utf-8")
    assert bool(marked(cells)) == name.startswith("broken")
    report = Session(load([str(path)])).check([str(path)])
    places = [(located(report, one.span), one.code) for one in report.findings]
    assert [(place.cell, place.start.row, code) for place, code in places] == marked(cells)
    assert {place.path for place, _ in places} <= {str(path)}


def test_findings_are_shown_by_cell_in_all_formats(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_text(notebook(*CELLS))
    full = run("check", ".").stdout
    assert "--> a.ipynb:cell 4:2:7 (cuda-in-forked-worker)" in full
    assert "::: a.ipynb:cell 2:4:1 (cause, in main process)" in full
    assert "4 | torch.zeros(1, device='cuda')" in full
    assert run("check", "--output-format", "concise", "-q", ".").stdout.startswith("a.ipynb:cell 4:2:7: CUD101 ")
    (found,) = json.loads(run("check", "--output-format", "json", ".").stdout)
    assert (found["cell"], found["location"]) == (4, {"row": 2, "column": 7})
    assert [step["cell"] for step in found["trace"]] == [2, 4, 4, 3]
    # What knows files only is told the row of the file.
    line = next(i for i, row in enumerate(notebook(*CELLS).split("\n"), 1) if "pool.map" in row)
    github = run("check", "--output-format", "github", ".").stdout
    assert github.startswith(
        f"::error title=cudalint (CUD101),file=a.ipynb,line={line},endLine={line}::a.ipynb:cell 4:2:7"
    )
    (run_,) = json.loads(run("check", "--output-format", "sarif", ".").stdout)["runs"]
    (place,) = run_["results"][0]["locations"]
    assert place["physicalLocation"]["region"] == {"startLine": line, "endLine": line}
    assert place["logicalLocations"] == [{"name": "cell 4", "fullyQualifiedName": "cell 4:2:7"}]
    (issue,) = json.loads(run("check", "--output-format", "gitlab", ".").stdout)
    assert issue["location"]["lines"] == {"begin": line, "end": line}
    assert issue["description"].startswith("CUD101: cell 4:2:7: ")
    (told,) = json.loads(run("check", "--output-format", "rdjson", ".").stdout)["diagnostics"]
    assert told["location"]["range"] == {"start": {"line": line}, "end": {"line": line}}
    assert [one["message"].partition(": ")[0] for one in (told, *told["relatedLocations"])] == [
        "cell 4:2:7", "cell 2:4:1", "cell 4:2:7", "cell 4:2:7", "cell 3:2:12"
    ]  # fmt: skip
    for output_format in set(OutputFormat) - {OutputFormat.JSON, OutputFormat.JSON_LINES}:
        assert "cell 4:2:7" in run("check", "--output-format", output_format.value, ".").stdout, output_format


def test_a_module_that_a_cell_writes_is_shown_in_that_cell(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_text(notebook("%%writefile job.py\n" + FORKED, "import job"))
    assert "--> a.ipynb:cell 1:13:11 (cuda-in-forked-worker)" in run("check", ".").stdout
    done = run("check", "--fix", ".")
    assert "1 repair made. All checks passed!" in done.stdout
    assert 'get_context(\\"spawn\\")' in (tmp_path / "a.ipynb").read_text()
    assert not (tmp_path / "job.py").exists()


def test_a_module_on_the_disk_counts_more_than_the_cell_that_wrote_it(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_text(notebook("%%writefile job.py\n" + FORKED, "import job"))
    (tmp_path / "job.py").write_text("x = 1\n")
    assert run("check", ".").returncode == 0


def test_comments_silence_and_unused_ones_are_reported(run: Run, tmp_path: Path) -> None:
    silenced = (*CELLS[:3], CELLS[3].replace("3]))", "3]))  # noqa: CUD101"), "x = 1  # noqa: CUD101")
    (tmp_path / "a.ipynb").write_text(notebook(*silenced))
    (found,) = json.loads(run("check", "--output-format", "json", ".").stdout)
    assert (found["code"], found["trace"][0]["cell"]) == ("CUD902", 5)
    run("check", "--fix", ".")
    assert (tmp_path / "a.ipynb").read_text() == notebook(*silenced[:4], "x = 1")


# A launcher that works where the file has it, and does not behind the cell below it.
AGAIN = (
    ("markdown", "# Training"),
    "import multiprocessing, os\n\nimport torch\nos.environ['CUDA_VISIBLE_DEVICES'] = '0'",
    "def work(n):\n    return torch.ones(n, device='cuda').sum().item()",
    "pool = multiprocessing.get_context('fork').Pool(1)\nprint(pool.map(work, [1, 2, 3]))",
    "model = torch.nn.Linear(2, 2).cuda()",
)


def found_in(run: Run, *arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run("check", "--output-format", "json", *arguments, ".").stdout)
    return found


@pytest.mark.parametrize("counts", [(None, 1, 2, 5, 4), (None, 1, 2, 4, 3), (None, 9, 8, 7, 1)])
def test_a_cell_that_was_last_run_after_one_below_it_is_judged_there_too(
    counts: tuple[int | None, ...], run: Run, tmp_path: Path
) -> None:
    (tmp_path / "a.ipynb").write_text(notebook(*AGAIN, counts=counts))
    (found,) = found_in(run)
    assert (found["code"], found["severity"], found["cell"]) == ("CUD101", "note", 4)
    assert found["location"] == {"row": 2, "column": 7}
    assert found["condition"] == "if cell 4 is run after cells below it, as its execution count says it last was"
    assert [step["cell"] for step in found["trace"]] == [5, 4, 4, 3]
    assert found["fix"] is None
    # From the top down it works, which is all that has to.
    assert run("check", ".").returncode == 0
    assert run("check", "--fix", "--unsafe-fixes", ".").returncode == 0
    assert (tmp_path / "a.ipynb").read_text() == notebook(*AGAIN, counts=counts)


@pytest.mark.parametrize("counts", [(), (None, 1, 2, 3, 4), (None, 7, 8, None, 9), (None, 5, 2, 3, 4), (None, 3, 4, 5)])
def test_cells_that_were_run_in_order_or_whose_order_is_no_matter_have_no_note(
    counts: tuple[int | None, ...], run: Run, tmp_path: Path
) -> None:
    (tmp_path / "a.ipynb").write_text(notebook(*AGAIN, counts=(*counts, None, None, None, None, None)[:5]))
    assert found_in(run) == []


# What notebooks are full of, and what may run again behind all the rest.
HARMLESS = (
    "import os, torch, torch.distributed as dist, torch.multiprocessing as mp\n"
    "os.environ['CUDA_VISIBLE_DEVICES'] = '0'\nos.environ['MASTER_ADDR'] = 'localhost'\ntorch.manual_seed(0)",
    "try:\n    mp.set_start_method('spawn', force=True)\nexcept RuntimeError:\n    pass",
    "torch.cuda.set_device(0)\ndevice = torch.device('cuda' if torch.cuda.is_available() else 'cpu')",
    "model = torch.nn.Linear(2, 2).to(device)",
    "data = torch.utils.data.TensorDataset(torch.zeros(8, 2))\n"
    "loader = torch.utils.data.DataLoader(data, num_workers=2, pin_memory=True)",
    "for (x,) in loader:\n    model(x.to(device)).sum().backward()",
    "dist.init_process_group('nccl', rank=0, world_size=1)\ndist.barrier()\ndist.destroy_process_group()",
    "del model\ntorch.cuda.empty_cache()",
)


def test_usual_cells_may_be_run_again(run: Run, tmp_path: Path) -> None:
    for late in range(len(HARMLESS)):
        counts = [99 if i == late else i + 1 for i in range(len(HARMLESS))]
        (tmp_path / f"late{late}.ipynb").write_text(notebook(*HARMLESS, counts=counts))
    (tmp_path / "all.ipynb").write_text(notebook(*HARMLESS, counts=range(len(HARMLESS), 0, -1)))
    assert found_in(run) == []


def test_what_is_wrong_in_the_order_of_the_file_is_said_once(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_text(notebook(*CELLS, "x = 1", counts=(None, 1, 2, 5, 4)))
    (found,) = found_in(run)
    assert (found["severity"], found["condition"]) == ("error", None)
    assert found["fix"]["applicability"] == "display"
    # A fresh process has no function of a cell.
    assert "put what they run in a module and start them by spawn" in found["fix"]["message"]


def test_a_note_on_a_cell_that_was_run_again_is_silenced_where_the_cell_is(run: Run, tmp_path: Path) -> None:
    cells = (*AGAIN[:3], AGAIN[3].replace("3]))", "3]))  # noqa: CUD101"), AGAIN[4])
    (tmp_path / "a.ipynb").write_text(notebook(*cells, counts=(None, 1, 2, 4, 3)))
    assert found_in(run) == []


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not valid JSON: Expecting value at line 1 column 1"),
        (b'{"cells": [}', "not valid JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[]", "it holds no cells"),
        (b'{"cells": 3}', "it holds no cells"),
        (b'{"worksheets": [], "nbformat": 3}', "notebooks before format 4 are not read"),
        (b'{"cells": [], "nbformat": 3}', "notebooks before format 4 are not read"),
        (b'{"cells": [{"cell_type": "code", "source": 3}]}', "it is no notebook: the source of cell 1 is no text"),
        (
            b'{"cells": [{"cell_type": "code", "source": ["x", null]}]}',
            "it is no notebook: the source of cell 1 is no text",
        ),
        (
            b'{"cells": [{"cell_type": "code", "source": "x = 1 # \\ud800"}]}',
            "analyse this file: cell 1 holds half of a character (\\ud800), which",
        ),
        (b'{"x": ' + b"9" * 5000 + b"}", "a number that is too long"),
        (b"\xff", "byte 1 is not valid utf-8"),
    ],
)
def test_what_is_no_notebook_is_reported_and_costs_no_other_file(
    data: bytes, reason: str, run: Run, tmp_path: Path, forked: str
) -> None:
    (tmp_path / "a.ipynb").write_bytes(data)
    (tmp_path / "b.py").write_text(forked)
    done = run("check", "--output-format", "concise", "--fix", "--fail-on", "error", ".")
    assert done.stdout.startswith("a.ipynb:1:1: CUD901 cannot analyse this file: ")
    assert reason in done.stdout
    assert "1 repair made" in done.stdout
    assert (tmp_path / "a.ipynb").read_bytes() == data


@pytest.mark.parametrize("data", [b'{"cells": []}', b'{"cells": [3, {"cell_type": "code"}, {"source": []}]}'])
def test_a_notebook_without_code_is_clean(data: bytes, run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_bytes(data)
    assert run("check", "a.ipynb").stdout == "All checks passed!\n"


def test_comments_that_silence_go_into_cells(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    module = "%%writefile job.py\n" + FORKED
    path.write_text(notebook(*CELLS, module, "import job"), encoding="utf-8")
    done = run("check", "--add-noqa=known", ".")
    assert (done.returncode, done.stderr) == (0, "Silenced 2 findings.\n")
    cells = [
        (*CELLS[:3], CELLS[3].replace("3]))", "3]))  # noqa: CUD101  # known")),
        (module.replace("3]))", "3]))  # noqa: CUD101  # known"), "import job"),
    ]
    assert path.read_text(encoding="utf-8") == notebook(*cells[0], *cells[1])
    assert run("check", ".").stdout == "All checks passed!\n"


def test_a_line_that_is_no_python_takes_no_comment(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    path.write_text(notebook("import torch\ntorch.cuda.init()", "%env CUDA_VISIBLE_DEVICES=1"), encoding="utf-8")
    before = path.read_bytes()
    done = run("check", "--add-noqa", ".")
    assert done.returncode == 1
    assert "CUD202 is left: no row of its call can hold a comment" in done.stderr
    assert path.read_bytes() == before


def test_a_notebook_in_another_language_is_not_skipped_in_silence(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_text(notebook("x <- 1", language="R"))
    done = run("check", ".")
    assert (done.returncode, done.stdout) == (0, "Nothing was checked.\n")
    assert "a.ipynb: not checked: its cells are r, not Python" in done.stderr


@pytest.mark.parametrize(("language", "expected"), [("sql", 0), ("python", 1), (3, 1)])
def test_a_cell_that_an_editor_holds_in_another_language_is_no_python(
    language: object, expected: int, run: Run, tmp_path: Path
) -> None:
    cells = [{"cell_type": "code", "metadata": {"vscode": {"languageId": language}}, "source": "select (\n"}]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells, "nbformat": 4}), encoding="utf-8")
    assert run("check", ".").returncode == expected


def test_what_is_no_python_is_shown_in_its_cell(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_text(notebook("import torch", "x = 1\ndef f(:\n    pass"))
    assert "a.ipynb:cell 2:2:7: CUD901 " in run("check", "--output-format", "concise", ".").stdout


def test_checkpoints_are_not_read_and_standard_input_may_be_a_notebook(run: Run, tmp_path: Path) -> None:
    (tmp_path / ".ipynb_checkpoints").mkdir()
    (tmp_path / ".ipynb_checkpoints" / "a.ipynb").write_text("{")
    assert run("check", ".").returncode == 0
    text = notebook(*CELLS)
    done = run("check", "--stdin-filename", "a.ipynb", "--output-format", "concise", "-", stdin=text)
    assert "a.ipynb:cell 4:2:7: CUD101" in done.stdout


def test_explain_answers_for_a_line_of_a_cell(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_text(notebook(*CELLS))
    assert "the parent used CUDA before the fork" in run("explain", "a.ipynb:cell 3:2").stdout
    assert "CUDA: untouched in this process" in run("explain", "a.ipynb:2:4").stdout
    assert "expected a.ipynb:CELL:LINE" in run("explain", "a.ipynb:4").stderr
    assert "there is no line 9 in cell 4" in run("explain", "a.ipynb:4:9").stderr


# -- what a repair leaves alone ---------------------------------------------------------------------------

ODD = (
    '\ufeff{ "metadata" :{"z": 1.0e+01, "a":"\\u00e9"},\r\n'
    '"cells":[ {"outputs":[{"text":"\\/ 12\\t"}],"source" :"%%writefile work\\u0065rs.py\\nimport torch  # \\/\\n'
    'def work(n):\\n    return torch.ones(n, device=\\"cuda\\").sum().item()", "cell_type":"code"  },\r\n'
    '\t{"cell_type":"markdown","source":["m.get_context(\\"fork\\")"]},\r\n'
    '\t{"cell_type":"code","source":[\r\n\t\t"import multiprocessing as m, torch\\nfrom workers import work  #",'
    '"\\u00e9\\ntorch.cuda.init()  # \\ud83d\\udc0d \\/\\n"  , '
    '"p = m.get_context(\\u0022fork\\u0022)"  ,  ".Pool(1)  # \\u00e9\\n",'
    '"p.map(work, [1])"\r\n ] }],"nbformat_minor":5,"nbformat":4, "cells2": 1}'
)


def test_a_repair_keeps_all_else_of_the_file(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    path.write_bytes(ODD.encode())
    done = run("check", "--fix", "--unsafe-fixes", ".")
    assert "1 repair made" in done.stdout, done.stdout
    changed = path.read_bytes().decode()
    assert changed == ODD.replace("\\u0022fork", "\\u0022spawn")


LETTERS = st.text(alphabet='ab\n"\\é\u2028\N{SNAKE}\t', max_size=8)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)  # other tests may have the processor
@given(pieces=st.lists(LETTERS, max_size=4), is_list=st.booleans(), content=LETTERS, data=st.data())
def test_an_edit_says_in_json_what_it_says_in_text(
    pieces: list[str], is_list: bool, content: str, data: st.DataObject
) -> None:
    text = "".join(pieces)
    source: object = pieces if is_list else text
    cell = {"cell_type": "code", "source": source}
    document = json.dumps({"cells": [{"cell_type": "markdown", "source": pieces}, cell, cell]}, indent=2)
    found = read("/n.ipynb", document.encode())
    assert not isinstance(found, Refusal)
    program = found.sources()[0]
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    # The end of a cell's last row, if that is said to end, is where the next cell begins.
    assume(text and not (start == len(text) and text.endswith("\n")))
    rows = Rows(text)
    span = Span("/n.ipynb", Position(*rows.place(start)), Position(*rows.place(end)))
    changed = json.loads(found.changed(program, [Edit(span, content)]))
    first, second, third = changed["cells"]
    assert (first["source"], third["source"]) == (pieces, source)
    assert "".join(second["source"]) == text[:start] + content + text[end:]


def test_a_repair_in_a_source_that_is_one_string_spells_only_the_rest_anew(run: Run, tmp_path: Path) -> None:
    source = '"# \\u00e9 \\/\\nimport job\\ntorch.cuda.init()  # noqa: CUD101\\nx = \\u0022\\u00e9\\u0022"'
    text = f'{{"cells": [{{"cell_type": "code", "source": {source}}}]}}'
    (tmp_path / "a.ipynb").write_text(text)
    assert "1 repair made" in run("check", "--fix", ".").stdout
    assert (tmp_path / "a.ipynb").read_text() == text.replace("  # noqa: CUD101", "")


@pytest.mark.parametrize(
    ("cell", "after"),
    [
        ("%%time\nf()", "%%time\nimport m\nf()"),
        ("\n%%time\nf()", "\n%%time\nimport m\nf()"),
        ("%matplotlib inline", "import m\n%matplotlib inline"),
        ("%%capture", "%%capture\nimport m"),
    ],
)
def test_what_says_how_a_cell_runs_stays_its_first_line(cell: str, after: str) -> None:
    found = read("/n.ipynb", notebook(cell).encode())
    assert not isinstance(found, Refusal)
    edit = Edit(Span("/n.ipynb", Position(1, 1), Position(1, 1)), "import m\n")
    assert found.changed(found.sources()[0], [edit]) == notebook(after)


def test_a_patch_is_one_of_the_file(run: Run, tmp_path: Path) -> None:
    module = "%%writefile workers.py\nimport torch\ndef work(n):\n    return torch.ones(n, device='cuda').sum().item()"
    last = "import torch\nfrom workers import work\n" + CELLS[3]
    first = "import multiprocessing, torch\ntorch.cuda.init()"
    (tmp_path / "a.ipynb").write_text(notebook(module, first, last))
    patch = run("check", "--diff", "--unsafe-fixes", ".").stdout
    assert "-    \"pool = multiprocessing.get_context('fork').Pool(1)\\n\",\n" in patch
    assert "+    \"pool = multiprocessing.get_context('spawn').Pool(1)\\n\",\n" in patch
    assert "workers.py" not in patch.replace("%%writefile workers.py", "")


def test_spawn_is_no_repair_where_the_worker_is_a_function_of_a_cell(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_text(notebook(*CELLS))
    assert run("check", "--diff", "--unsafe-fixes", ".").stdout == ""


def test_results_are_moved_by_the_kernel_where_the_worker_only_loads(run: Run, tmp_path: Path) -> None:
    loads = "def work(n):\n    return torch.ones(n).cuda()"
    (tmp_path / "a.ipynb").write_text(notebook(*CELLS[:2], loads, CELLS[3]))
    patch = run("check", "--diff", "--unsafe-fixes", ".").stdout
    assert '+    "    return torch.ones(n)"' in patch
    assert "print([result.cuda() for result in pool.map(work, [1, 2, 3])])" in patch


REPAIRED = (
    "CUD101/broken_checkpoint_in_worker", "CUD103/broken_background_checkpoint", "CUD105/broken_wrong_library_datasets",
    "CUD107/broken_daemon_attribute", "CUD202/broken_after_is_available", "CUD204/broken_evaluator",
    "CUD205/broken_prefetch_thread", "CUD301/broken_apply_async_keyword", "CUD304/broken_helper_loop",
    "CUD402/broken_encoder_in_dataset", "CUD403/broken_collate", "CUD404/broken_computed_label",
)  # fmt: skip


@pytest.mark.parametrize("name", REPAIRED)
def test_a_second_run_changes_nothing(name: str, tmp_path: Path) -> None:
    """The same programs as cells: what is repaired in some of them stays so, and is Python."""
    cells = (Path(__file__).parent.parent / "fixtures" / f"{name}.py").read_text(encoding="utf-8").split("\n\n\n")
    path = tmp_path / "a.ipynb"
    path.write_text(notebook(*cells), encoding="utf-8")
    (change,) = fix(Session(Config()), [str(path)], unsafe=True).changes
    path.write_bytes(change.after)
    for cell in json.loads(change.after)["cells"]:
        ast.parse("".join(cell["source"]))
    assert not fix(Session(Config()), [str(path)], unsafe=True).changes


COMMON = (
    "import multiprocessing\nimport torch\n\n\ndef work(n):\n    return torch.ones(n, device='cuda').sum().item()\n"
)
POOL = "with multiprocessing.get_context({!r}).Pool(1) as pool:\n    print(pool.map(work, [1, 2, 3]))\n"


@pytest.mark.parametrize(
    ("cells", "code"),
    [
        (("%run common.py\n", "torch.cuda.init()\n", POOL.format("fork")), "CUD101"),
        (("%run common.py\n", POOL.format("fork")), None),
        (("%run common.py\n", POOL.format("spawn")), "CUD108"),
        (("from common import *\n", POOL.format("spawn")), None),
    ],
)
def test_what_a_program_defines_that_a_magic_runs_is_of_the_kernel(
    cells: tuple[str, ...], code: str | None, run: Run, tmp_path: Path
) -> None:
    """No fresh process finds it, so that spawn is no repair."""
    (tmp_path / "a.ipynb").write_text(notebook(*cells))
    (tmp_path / "common.py").write_text(COMMON)
    found = json.loads(run("check", "--output-format", "json", ".").stdout)
    assert [one["code"] for one in found] == ([] if code is None else [code])
    assert run("check", "--diff", "--unsafe-fixes", ".").stdout == ""


# -- magics -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "program"),
    [
        ("%matplotlib inline\nx = 1\n", "pass\nx = 1\n"),
        ("for i in r:\n    !ls {i}\n    ?i\n", "for i in r:\n    pass\n    pass\n"),
        ("torch?\ntorch.cuda??\nx = 1 if y else 2\n", "pass\npass\nx = 1 if y else 2\n"),
        ("?\n??\n  ? \nx = 1\n", "pass\npass\n  pass\nx = 1\n"),
        ("x = (a\n     % b)\ny = '''\n!ls\n'''\n", "x = (a\n     % b)\ny = '''\n!ls\n'''\n"),
        ("x = a \\\n  % b\n", "x = a \\\n  % b\n"),
        ("!ls \\\n  -l\nx = 1\n", "pass\n\nx = 1\n"),
        ("!echo '''\nx = 1\n", "pass\nx = 1\n"),
        ("files = !ls\nn = %sql select\nm = a != b\n", "files = get_ipython()\nn = get_ipython()\nm = a != b\n"),
        ("pip install 'x>=1'\n", "pass\n"),
        ("cd ..", "pass"),
        ("cat = 1\n", "cat = 1\n"),
        ("ls * 2\n", "ls * 2\n"),
        ("man(1)\n", "man(1)\n"),
        ("%time x = f()\n", "if 1: x = f()\n"),
        ("if x:\n  %time for y in x: f(y)\n", "if x:\n     \f  for y in x: f(y)\n"),
        ("x, y = %time f()\nz = %timeit -o f()\n", "x, y =       f()\nz = get_ipython()\n"),
        ("%run lib/common.py -v\n%run -m a.b\n", "from lib.common import *\nfrom a.b import *\n"),
        ("%run -i ./common\n%run setup.ipynb\n", "from common import *\nfrom setup import *\n"),
        ("%run ../x.py\nif x:\n  %run x.py\n%run my-x.py\n%run class.py\n", "pass\nif x:\n  pass\npass\npass\n"),
        ("%timeit -n 1 -r2 -q f()\n", f"if 1:{' ' * 15}f()\n"),
        ("%memit -r 1 f()\n%prun f()\n", f"if 1:{' ' * 7}f()\nif 1: f()\n"),
        ("%timeit\n%prun -l 3 f()\n%time !ls\n%timeit -s x\n", "pass\npass\npass\npass\n"),
        ("%env A=b c\r\n", "import os; os.environ['A'] = 'b c'\r\n"),
        ("%env A=$B\n%env\n%env A\n", "pass\npass\npass\n"),
        ("%%time\nx = 1\n", "pass\nx = 1\n"),
        ("if x:\n    pass\n\n# %%\n@f\ndef g(): pass\n", "if x:\n    pass\n\n# %%\n@f\ndef g(): pass\n"),
    ],
)
def test_lines_that_are_no_python_become_statements_in_their_place(cell: str, program: str) -> None:
    assert program_of(cell) == program
    assert len(program_of(cell).split("\n")) == len(cell.split("\n"))


def test_a_cell_may_append_to_a_module_or_write_it_again() -> None:
    text = notebook(
        "%%writefile a.py\nx = 1", "%%writefile -a 'a.py'\ny = 2", "%%file ~/b.py\nz", "%%writefile c.txt\nz"
    )
    found = read("/p/n.ipynb", text.encode())
    assert not isinstance(found, Refusal)
    assert [(one.path, one.text) for one in found.sources()] == [("/p/n.ipynb", ""), ("/p/a.py", "x = 1\ny = 2\n")]
    again = read("/p/n.ipynb", notebook("%%writefile a.py\nx = 1", "%%writefile a.py\ny = 2").encode())
    assert not isinstance(again, Refusal)
    assert again.sources()[1].text == "y = 2\n"
