"""``cudalint map``: the processes of a program, told and drawn."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from command_line import call
from notebook_files import notebook

from cudalint import config
from cudalint.machine.mapping import Mapper
from cudalint.machine.started import Deed
from cudalint.models.library import load
from cudalint.project.analysis import Options, hosts
from cudalint.project.assembling import program
from cudalint.project.machines import Inquiry
from cudalint.project.process_map import Begins, Launch, ProcessMap, ProcessNode
from cudalint.project.running import Runner
from cudalint.report.maps.formats import MapFormat, render
from cudalint.session import Session
from cudalint.text.decode import decode
from cudalint.text.source import SourceFile

Run = Callable[..., "subprocess.CompletedProcess[str]"]
FIXTURES = Path(__file__).parent.parent / "fixtures"

FORKED = """\
import multiprocessing
import os

import torch

os.environ["OMP_NUM_THREADS"] = "2"
model = torch.nn.Linear(8, 8).cuda()


def prepare(seed):
    torch.manual_seed(seed)


def work(row, scale):
    return (torch.ones(row, device="cuda") * scale).sum().item()


if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(4, prepare, (7,)) as pool:
        print(pool.starmap(work, [(1, 0.5), (2, 0.5)]))
"""
TOLD = """\
python train.py
│ cuda     .cuda() initialises CUDA  line 7
│ gpu      .cuda() opens a context on GPU 0  line 7
└─ Pool.starmap: 4 processes by fork  line 19
     after    .cuda() initialises CUDA  line 7
     prepares prepare()  line 10
     runs     work()  line 14
     inherits seed: 7
     inherits model: torch.nn.Module on cuda:0  line 7
     is sent  row: another one for each task
     is sent  scale: 0.5
     variable OMP_NUM_THREADS=2
     error    CUD101 torch.ones() in a worker that Pool.starmap forked after CUDA was used: CUDA cannot be \
re-initialised there  line 20
     where    torch.ones() needs CUDA here  line 15

"""


def mapped(*paths: Path) -> ProcessMap:
    named = [str(path) for path in paths]
    return Session(config.load(named)).map(named)


def drawn(folder: Path, text: str, name: str = "train.py") -> ProcessNode:
    """The first process of a program."""
    (folder / name).write_text(text, encoding="utf-8")
    (tree,) = mapped(folder / name).trees
    return tree.process


def launched(node: ProcessNode) -> list[Launch]:
    return [child.launch for child in node.children if child.launch is not None]


def test_a_tree_for_the_terminal(run: Run, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(FORKED, encoding="utf-8")
    done = run("map", "train.py")
    assert (done.returncode, done.stdout, done.stderr) == (0, TOLD, "")


def test_the_document_shows_what_is_printed(run: Run, tmp_path: Path) -> None:
    root = FIXTURES.parent
    (text, *_) = re.findall(r"```python\n(.*?)```", (root / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    page = (root / "docs" / "map.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"\$ cudalint map train.py\n(.*?)```", page, re.DOTALL)
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    assert run("map", "train.py").stdout == shown + "\n"


def test_what_starts_nothing_says_so(run: Run, tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text("x = 1\n", encoding="utf-8")
    assert run("map", "plain.py").stdout == "No process is started here, so there is nothing to draw.\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["map", "missing.py"], "no such file or directory: missing.py"),
        (
            ["map", "--output-format", "htm"],
            "unknown output format 'htm': expected one of text, mermaid, dot, json, html",
        ),
        (["map", "--isolated", "--config", "x.toml"], "--config names settings and --isolated forbids them"),
        (["map", "--platform", "beos"], "beos"),
    ],
)
def test_what_cannot_be_done_is_two_and_one_line(run: Run, arguments: list[str], message: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("options", "told", "coloured"),
    [
        ((), {}, False),
        (("--color=always",), {"NO_COLOR": "1"}, True),
        (("--color=never",), {"FORCE_COLOR": "1"}, False),
        ((), {"FORCE_COLOR": "1"}, True),
        ((), {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_colours_are_what_the_option_and_then_the_environment_say(
    run: Run, tmp_path: Path, options: tuple[str, ...], told: dict[str, str], coloured: bool
) -> None:
    (tmp_path / "train.py").write_text(FORKED, encoding="utf-8")
    plain = {name: value for name, value in os.environ.items() if not name.endswith("_COLOR")}
    assert ("\x1b[" in call(("map", *options, "train.py"), tmp_path, plain | told).stdout) is coloured


def test_findings_are_as_severe_as_the_project_says(run: Run, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(FORKED, encoding="utf-8")
    assert "error    CUD101" in run("map", "train.py").stdout
    (tmp_path / "pyproject.toml").write_text('[tool.cudalint.severity]\nCUD101 = "note"\n', encoding="utf-8")
    shown = run("map", "train.py").stdout
    assert "note     CUD101" in shown
    assert "error    CUD101" not in shown


def test_what_a_baseline_holds_is_drawn_and_said_to_be_known(run: Run, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(FORKED, encoding="utf-8")
    run("check", "--write-baseline", "known.json", ".")
    for output_format in ("text", "html", "mermaid", "dot"):
        words = "CUD101 (in the baseline) "
        assert words not in run("map", "--output-format", output_format, ".").stdout
        assert words in run("map", "--output-format", output_format, "--baseline", "known.json", ".").stdout
    (tmp_path / "pyproject.toml").write_text('[tool.cudalint]\nbaseline = "known.json"\n', encoding="utf-8")
    for options, known in (((), True), (("--isolated",), False)):
        (tree,) = json.loads(run("map", "--output-format", "json", *options, ".").stdout)["trees"]
        (worker,) = tree["process"]["children"]
        assert [(one["code"], one["known"]) for one in worker["findings"]] == [("CUD101", known)]


def test_places_in_a_notebook_are_those_of_its_cells(run: Run, tmp_path: Path) -> None:
    cells = (
        "%%writefile workers.py\nimport torch\n\ndef work(n):\n    return torch.ones(n, device='cuda')",
        "import multiprocessing\nfrom workers import work\nimport torch",
        "%time torch.cuda.init()\nprint(multiprocessing.get_context('fork').Pool(2).map(work, [1]))",
    )
    (tmp_path / "a.ipynb").write_text(notebook(*cells), encoding="utf-8")
    shown = run("map", "a.ipynb").stdout.splitlines()
    assert shown[0] == "a.ipynb, a notebook"
    assert [row.rpartition("  ")[2] for row in shown[1:] if "cell" in row] == [
        "cell 3:1", "cell 3:2", "cell 3:1", "cell 1:4", "cell 3:2", "cell 1:5",
    ]  # fmt: skip
    (tree,) = json.loads(run("map", "--output-format", "json", ".").stdout)["trees"]
    (event,) = tree["process"]["events"]
    place = {"filename": str(tmp_path / "a.ipynb"), "cell": 3, "row": 1, "column": 1}
    assert event["place"] == place
    page = run("map", "--output-format", "html", ".").stdout
    assert "<pre>%time torch.cuda.init()</pre>" in page


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_drawn(run: Run, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(FORKED, encoding="utf-8")
    (tmp_path / "broken.py").write_text("import torch\ndef f(:\n", encoding="utf-8")
    (tmp_path / "bytes.py").write_bytes(b"import torch\nx = '\xff'\n")
    shown = run("map", ".").stdout
    assert "Pool.starmap" in shown
    assert re.search(r"^note: broken\.py: cannot parse this file", shown, re.MULTILINE)
    assert re.search(r"^note: bytes\.py: ", shown, re.MULTILINE)


QUIET = "import os\nimport torch\n\nos.environ['CUDA_VISIBLE_DEVICES'] = '0'\ntorch.ones(1).cuda()\n"


def test_processes_by_themselves_take_a_line_where_there_are_others(run: Run, tmp_path: Path) -> None:
    (tmp_path / "alone.py").write_text(QUIET, encoding="utf-8")
    told = "cuda     .cuda() initialises CUDA  line 5"
    assert f"python alone.py\n  {told}\n" in run("map", ".").stdout
    (tmp_path / "train.py").write_text(FORKED, encoding="utf-8")
    shown = run("map", ".").stdout
    assert shown.startswith("python train.py\n│ cuda ")
    assert "\n  python alone.py: .cuda() initialises CUDA  line 5\n" in shown
    page = run("map", ".", "--output-format", "html").stdout
    assert "<li>python alone.py: <small>.cuda() initialises CUDA  line 5</small></li>" in page
    assert "alone" not in run("map", ".", "--output-format", "mermaid").stdout
    assert len(json.loads(run("map", ".", "--output-format", "json").stdout)["trees"]) == 2


def test_what_a_bound_cut_is_said_below(run: Run, tmp_path: Path) -> None:
    body = "".join(f"    x = [x, {number}]\n" for number in range(100))
    # What may decide how workers start is followed however long it takes.
    body += "    multiprocessing.set_start_method\n"
    text = FORKED.replace("def work", f"def busy(x):\n{body}    return x\n\n\ndef work")
    text = text.replace("    with", "    busy(1)\n" * 130 + "    with")
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    assert re.search(r"^note: train\.py: cut off: more than 12000 steps$", run("map", ".").stdout, re.MULTILINE)

    # Of a program that is not the one asked about, it is said how often: whoever asks about one file knows only that.
    (tmp_path / "other.py").write_text(f"import train\n{FORKED}", encoding="utf-8")
    (tmp_path / "train.py").write_text(f"import other\n{text}", encoding="utf-8")
    notes = [row for row in run("map", "other.py").stdout.splitlines() if row.startswith("note: ")]
    assert notes == ["note: bounds met elsewhere, which cudalint check --verbose names: 1"]


def test_an_import_of_tests_has_a_name_that_says_so(run: Run, tmp_path: Path) -> None:
    (tmp_path / "test_gpu.py").write_text(f"{QUIET}\n\ndef test_a():\n    pass\n", encoding="utf-8")
    assert run("map", ".").stdout.splitlines()[0] == "pytest test_gpu.py: its import, test_a()"


def test_the_map_goes_to_a_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(FORKED, encoding="utf-8")
    assert run("map", "train.py", "-o", "map.txt").stdout == ""
    assert (tmp_path / "map.txt").read_text(encoding="utf-8") == TOLD


def test_each_python_version_has_its_start_method(tmp_path: Path) -> None:
    text = FORKED.replace('.get_context("fork")', "")
    (tmp_path / "pyproject.toml").write_text('[project]\nrequires-python = ">=3.12,<3.15"\n', encoding="utf-8")
    first = drawn(tmp_path, text)
    assert [(launch.method, launch.condition) for launch in launched(first)] == [
        ("fork", "before Python 3.14"),
        ("forkserver", "from Python 3.14"),
    ]
    forked, fresh = first.children
    assert [harm.finding.code for harm in forked.harmed] == ["CUD101"]
    # The fork server imports main, and so uses CUDA before it forks: the worker fails by either method.
    assert [harm.finding.code for harm in fresh.harmed] == ["CUD101"]
    assert [harm.finding.condition for harm in (*forked.harmed, *fresh.harmed)] == [None, None]
    # The model is not the parent's: the server's import makes another one.
    assert [carried.name for carried in launched(first)[0].carries if carried.device] == ["model"]
    assert [carried.name for carried in launched(first)[1].carries if carried.device] == []
    assert [event.deed for event in fresh.events] == []


def test_a_fresh_worker_touches_cuda_by_itself(tmp_path: Path) -> None:
    text = FORKED.replace('"fork"', '"spawn"').replace("\nmodel = torch.nn.Linear(8, 8).cuda()\n", "\n")
    first = drawn(tmp_path, text)
    (launch,) = launched(first)
    (worker,) = first.children
    assert (launch.method, launch.count, launch.explicit) == ("spawn", 4, True)
    assert first.events == ()
    assert [(event.deed, event.place.row if event.place else 0) for event in worker.events] == [
        (Deed.DRIVER, 14),
        (Deed.CONTEXT, 14),
    ]
    # An initializer does not open the context here, each of the workers does by its first task.
    assert [harm.finding.code for harm in worker.harmed] == ["CUD201"]


RANKS = """\
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.utils.data import DataLoader


def train(rank, world_size, rows):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    for batch in DataLoader(rows, num_workers=2):
        batch.cuda()


if __name__ == "__main__":
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "29500"
    mp.spawn(train, args=(2, [1, 2]), nprocs=2)
"""


def test_workers_of_ranks_are_below_them(tmp_path: Path) -> None:
    first = drawn(tmp_path, RANKS)
    (rank,) = first.children
    assert rank.launch is not None
    assert (rank.launch.launcher, rank.launch.workers) == ("mp.spawn", "2 processes")
    assert {variable.name: variable.value for variable in rank.launch.environment} == {
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": "29500",
    }
    devices = [event.detail for event in rank.events if event.deed is Deed.DEVICE]
    assert devices == ["the GPU of its local rank"]
    assert [event.detail for event in rank.events if event.deed is Deed.GROUP] == ["nccl"]
    assert {launch.launcher for launch in launched(rank)} == {"DataLoader"}
    assert [node.label for node in first.all()][:2] == ["main process", "rank"]


def test_calls_of_one_pool_are_work_for_the_same_workers(tmp_path: Path) -> None:
    text = FORKED.replace('"fork"', '"spawn"') + "        print(pool.apply_async(prepare, (3,)))\n"
    (launch,) = launched(drawn(tmp_path, text))
    assert launch.launcher == "Pool.starmap, Pool.apply_async"
    assert [place.row for place in launch.at] == [19, 20, 21]


def test_processes_that_a_loop_starts_are_not_one(tmp_path: Path) -> None:
    text = """\
import multiprocessing as mp
import torch


def work(rank):
    torch.cuda.set_device(rank)


if __name__ == "__main__":
    for rank in range(4):
        mp.get_context("spawn").Process(target=work, args=(rank,)).start()
    mp.get_context("spawn").Process(target=work, args=(0,)).start()
"""
    loop, single = launched(drawn(tmp_path, text))
    assert (loop.workers, single.workers) == ("a process each time", "a process")


def test_what_threads_do_stands_with_their_process(tmp_path: Path) -> None:
    text = """\
import threading
import torch


def work():
    torch.cuda.set_device(1)
    torch.ones(1, device="cuda")


torch.cuda.set_device(0)
threading.Thread(target=work).start()
torch.ones(1, device="cuda")
"""
    events = [(e.deed, e.detail, e.in_thread, e.place.row) for e in drawn(tmp_path, text).events if e.place]
    assert events == [
        (Deed.DRIVER, "", False, 10),
        (Deed.DEVICE, "GPU 0", False, 10),
        (Deed.THREAD, "", False, 11),
        (Deed.DEVICE, "GPU 1", True, 6),
        (Deed.CONTEXT, "GPU 1", True, 7),
        (Deed.CONTEXT, "GPU 0", False, 12),
    ]


def test_other_programs_and_forks_are_shown(tmp_path: Path) -> None:
    text = """\
import os
import subprocess
import torch

torch.zeros(1, device="cuda")
subprocess.run(["nvidia-smi"])
if os.fork() == 0:
    torch.zeros(1, device="cuda")
"""
    first = drawn(tmp_path, text)
    assert [(launch.launcher, launch.method) for launch in launched(first)] == [
        ("subprocess.run", "exec"),
        ("os.fork", "fork"),
    ]
    assert [[harm.finding.code for harm in child.harmed] for child in first.children] == [[], ["CUD101"]]


def test_tests_that_look_the_same_are_one_tree(tmp_path: Path) -> None:
    (tmp_path / "test_pool.py").write_text(
        """\
import multiprocessing
import torch


def start():
    multiprocessing.get_context("spawn").Pool(2).map(abs, [1])


def test_first():
    start()


def test_second():
    start()
""",
        encoding="utf-8",
    )
    (tree,) = mapped(tmp_path).trees
    assert (tree.begins, tree.names) == (Begins.TEST, ("test_first", "test_second"))


def test_what_has_no_caller_in_sight_is_drawn_as_such(run: Run, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\n", encoding="utf-8")
    text = "import multiprocessing\nimport torch\n\n\ndef start():\n    multiprocessing.Pool(2).map(abs, [1])\n"
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("", encoding="utf-8")
    (tmp_path / "package" / "pools.py").write_text(text, encoding="utf-8")
    title = run("map", ".").stdout.splitlines()[0]
    assert title == "start() of package/pools.py, by a caller that is not in sight"


PROGRAMS = ("CUD101/broken_five_calls_in_four_modules", "CUD104", "CUD203", "CUD302")


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_findings_are_those_of_a_check(name: str, tmp_path: Path) -> None:
    # By itself: in its place the whole repository would be read around it.
    path = shutil.copytree(FIXTURES / name, tmp_path / "program")
    drawn_findings = {
        harm.finding for tree in mapped(path).trees for node in tree.process.all() for harm in node.harmed
    }
    checked = Session(config.load([str(path)])).check([str(path)], repair=False).findings
    assert drawn_findings == set(checked)
    assert drawn_findings


def test_what_a_comment_silences_is_not_drawn(tmp_path: Path) -> None:
    text = FORKED.replace("(2, 0.5)]))", "(2, 0.5)]))  # noqa: CUD101")
    (worker,) = drawn(tmp_path, text).children
    assert worker.harmed == ()


def sources(path: Path) -> Iterator[SourceFile]:
    found = decode(str(path), path.read_bytes())
    assert isinstance(found, SourceFile)
    yield found


def test_only_a_map_notes_processes(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(FORKED, encoding="utf-8")
    for maps in (False, True):
        files = program(tuple(sources(path)), load(()))
        (ran,) = Runner(files, hosts(Options()), inquiry=Inquiry(maps=maps)).run(["train"])
        assert isinstance(ran.machine, Mapper) is maps
        assert (ran.machine.record.processes_noted is not None) is maps


# -- hostile programs ------------------------------------------------------------------------------------------

EVIL = "</pre></title><script>alert(1)</script><img src=x onerror=alert(2)>\x1b[2J\"']}| end ```##[error]\u202e\\"
HOSTILE = f"""\
import multiprocessing

import torch


def work(a, b):
    return torch.ones(1, device="cuda")


if __name__ == "__main__":
    torch.zeros(1, device="cuda")
    # The text stands in the source of the edge as well.
    p = multiprocessing.get_context("fork").Process(target=work, args=({EVIL!r}, '</pre><script>x</script>"'))
    p.start()
"""
FILE = 'a"]<b onclick=x>&#; --> end \x1b[31m.py'


class Tags(HTMLParser):
    """The elements and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        if tag not in ("meta", "wbr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture
def hostile(tmp_path: Path) -> dict[MapFormat, str]:
    (tmp_path / FILE).write_text(HOSTILE, encoding="utf-8")
    found = mapped(tmp_path)
    assert "<script>" in found.trees[0].process.children[0].launch.carries[0].what[0]  # type: ignore[union-attr]
    return {one: render(found, one, str(tmp_path)) for one in MapFormat}


def test_no_format_hands_on_what_commands_a_terminal(hostile: dict[MapFormat, str]) -> None:
    for text in hostile.values():
        assert all(line.isprintable() for line in text.split("\n"))
        assert "##[" not in text


def test_a_page_is_well_formed_and_holds_only_its_own_elements(hostile: dict[MapFormat, str]) -> None:
    page = Tags()
    page.feed(hostile[MapFormat.HTML])
    page.close()
    assert page.open == []
    assert page.tags == {
        "html", "head", "meta", "title", "style", "body", "main", "h1", "p", "section", "h2", "div", "strong", "span",
        "figure", "figcaption", "pre", "article", "h3", "dl", "dt", "dd", "small", "ul", "li",
    }  # fmt: skip
    assert page.attributes <= {"lang", "charset", "http-equiv", "content", "name", "class", "tabindex", "role"}
    assert "http://" not in hostile[MapFormat.HTML]
    assert "https://" not in hostile[MapFormat.HTML]


def test_labels_of_graphs_end_where_they_should(hostile: dict[MapFormat, str]) -> None:
    box = r'    p\d+\["[\w .,:=+*/…()#;<>-]*"\]'
    edge = r'    p\d+ [=-]{2}>\|"[\w .,:=+*/…()#;<>-]*"\| p\d+'
    style = r"  classDef \w+ stroke:#\w+,stroke-width:3px|  class [\w,]+ \w+"
    other = r'%%\{init: .*\}%%|flowchart LR|  subgraph t\d+\["[\w .,:=+*/…()#;-]*"\]|  end'
    for line in hostile[MapFormat.MERMAID].splitlines():
        assert re.fullmatch(f"{box}|{edge}|{other}|{style}", line), line
        assert set(re.findall(r"<[^>]*>", line)) <= {"<br/>"}
    quoted = r'"(?:[^"\\]|\\.)*"'
    for line in hostile[MapFormat.DOT].splitlines():
        assert '"' not in re.sub(quoted, "", line), line


def test_json_says_what_was_there(hostile: dict[MapFormat, str]) -> None:
    document = json.loads(hostile[MapFormat.JSON])
    (tree,) = document["trees"]
    assert os.path.basename(tree["filename"]) == FILE
    (child,) = tree["process"]["children"]
    assert child["launch"]["method"] == "fork"
    assert child["findings"][0]["code"] == "CUD101"
    assert child["launch"]["at"][0]["row"] == 14


def test_the_lines_behind_an_edge_are_on_the_page(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(FORKED, encoding="utf-8")
    page = render(mapped(tmp_path), MapFormat.HTML, str(tmp_path))
    words = "the start method is chosen, the launcher is made, the workers are given work"
    assert f"<figcaption>{words}: line 19</figcaption><pre>with multiprocessing.get_context(" in page
    assert "<figcaption>CUDA was used before: line 7</figcaption>" in page
    assert "<figcaption>the workers run this: line 14</figcaption><pre>def work(row, scale):</pre>" in page


# -- the same bytes, whatever the seed of hashes ---------------------------------------------------------------

_ALL_FORMATS = """\
import sys
from cudalint import config
from cudalint.report.maps.formats import MapFormat, render
from cudalint.session import Session
found = Session(config.load(sys.argv[1:])).map(sys.argv[1:])
for one in MapFormat:
    print(render(found, one, "/"))
"""


def test_the_bytes_do_not_depend_on_the_hash_seed(tmp_path: Path) -> None:
    (tmp_path / "ranks.py").write_text(RANKS, encoding="utf-8")
    (tmp_path / "forked.py").write_text(FORKED.replace('.get_context("fork")', ""), encoding="utf-8")
    given = [str(shutil.copytree(FIXTURES / "CUD203", tmp_path / "more").parent)]
    outputs = set()
    for seed in ("1", "2"):
        command = [sys.executable, "-c", _ALL_FORMATS, *given]
        surroundings = {**os.environ, "PYTHONHASHSEED": seed}
        outputs.add(subprocess.run(command, env=surroundings, capture_output=True, check=True).stdout)
    assert len(outputs) == 1
