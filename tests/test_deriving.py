"""``cudalint model``: models written from the source of a package, and shipped ones held against a release."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import tomli

from cudalint.deriving import deriving
from cudalint.models.library import load

Run = Callable[..., "subprocess.CompletedProcess[str]"]

# A package as colleagues write one: with what decides, and what does not show.
ENGINE = """\
import multiprocessing
from multiprocessing import Pool, Process

import torch
from torch import nn
from torch.utils.data import DataLoader


class Net(nn.Module):
    def forward(self, x):
        return x


class Scorer:
    def __init__(self, path, device=None):
        self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self.net = nn.Linear(2, 2).to(self.device)
        self.path = path

    def score(self, rows):
        return self.net(torch.tensor(rows).to(self.device)).tolist()

    def where(self):
        return self.path


class Lazy:
    def __init__(self, device="cpu"):
        self.device = device

    def fit(self, rows):
        return nn.Linear(2, 2).to(self.device)(torch.tensor(rows))


class Batches(DataLoader):
    pass


class Watcher(Process):
    def run(self):
        print("watching")


def load_scorer(path, use_gpu=True):
    return Scorer(path, "cuda" if use_gpu else "cpu")


def warm_up():
    torch.zeros(1, device="cuda")


def maybe(rows):
    if len(rows) > 3:
        warm_up()


def pick():
    return "cuda"


def make(n, device="cpu"):
    return torch.zeros(n, device=device)


def score_all(function, items, workers=4):
    with multiprocessing.get_context("fork").Pool(workers) as pool:
        return pool.map(function, items)


def spread(items, fn):
    with Pool(2) as pool:
        return pool.map(fn, items)


def fresh(fn, items):
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        return pool.map(fn, items)


def _score_file(path):
    return torch.ones(1).cuda().sum().item()


def score_files(paths):
    with Pool(2) as pool:
        return pool.map(_score_file, paths)


def use_spawn():
    multiprocessing.set_start_method("spawn")


def count(rows):
    return len(rows)
"""
PACKAGE = {
    "__init__.py": "from .engine import Scorer, load_scorer, warm_up, score_all, score_files, use_spawn\n",
    "engine.py": ENGINE,
    "eager.py": "import torch\nAVAILABLE = torch.cuda.is_available()\n",
    "_hidden.py": "import torch\ndef inner():\n    torch.zeros(1).cuda()\n",
    "fast.cpython-312-x86_64-linux-gnu.so": "not read",
    "tests/test_engine.py": "import torch\ndef helper():\n    torch.zeros(1).cuda()\n",
}


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """The folder of a release that holds the package ``scoring``."""
    folder = tmp_path / "release"
    for name, text in PACKAGE.items():
        (folder / "scoring" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "scoring" / name).write_text(text)
    (folder / "pyproject.toml").write_text('[project]\nname = "scoring"\nversion = "2.1"\n')
    return folder


def entries(text: str) -> dict[str, dict[str, object]]:
    return {name: entry for entry in tomli.loads(text)["function"] for name in entry["names"]}


def test_what_public_functions_do_is_written_as_a_model(run: Run, release: Path) -> None:
    done = run("model", str(release))
    assert (done.returncode, done.stderr) == (0, "")
    said = entries(done.stdout)
    assert {
        name: {k: v for k, v in said[f"scoring.{name}"].items() if k not in ("names", "state", "framework", "evidence")}
        for name in ("warm_up", "load_scorer", "Scorer", "Scorer.score", "Scorer.where", "score_all", "use_spawn")
    } == {
        "warm_up": {"does": "gpu", "gpu": "init", "context": True, "returns": "none"},
        "load_scorer": {
            "does": "placed",
            "type": "scoring.Scorer",
            "when": {"use_gpu": [True]},
            "default-gpu": True,
            "params": ["path", "use_gpu"],
        },
        "Scorer": {
            "does": "placed",
            "type": "scoring.Scorer",
            "device": "device",
            "default-gpu": True,
            "params": ["path", "device"],
        },
        "Scorer.score": {"does": "like", "returns": "unknown"},
        "Scorer.where": {"does": "nothing"},
        "score_all": {
            "does": "fork-launcher",
            "method": "fork",
            "function": "function",
            "params": ["function", "items", "workers"],
            "failure": {"body": "crash"},
        },
        "use_spawn": {"does": "method.set", "library": "multiprocessing", "method": "spawn"},
    }
    inner = {name: said[f"scoring.engine.{name}"] for name in ("make", "pick", "spread", "fresh", "Lazy", "Lazy.fit")}
    assert [(n, e["does"], e.get("method"), e.get("function"), e.get("device")) for n, e in inner.items()] == [
        ("make", "tensor", None, None, "device"),
        ("pick", "nothing", None, None, None),
        ("spread", "fork-launcher", None, "fn", None),
        ("fresh", "fork-launcher", "spawn", "fn", None),
        ("Lazy", "estimator", None, None, "device"),
        ("Lazy.fit", "estimator.fit", None, None, None),
    ]
    assert said["scoring.score_files"]["runs"] == "scoring.engine._score_file"
    assert said["import scoring.eager"]["gpu"] == "query"
    # Nothing on the GPU on some ways only, nothing private, no tests.
    assert {"scoring.engine.maybe", "scoring.engine.count", "scoring._hidden.inner"}.isdisjoint(said)
    assert not any("test" in name for name in said)


def test_a_model_names_its_source_its_aliases_and_what_it_does_not_know(run: Run, release: Path) -> None:
    text = run("model", str(release)).stdout
    document = tomli.loads(text)
    assert document["library"]["evidence"] == "derived from scoring 2.1"
    assert document["alias"]["scoring.engine.warm_up"] == "scoring.warm_up"
    assert document["alias"]["scoring.engine.Batches"] == "torch.utils.data.DataLoader"
    assert document["type"] == [{"name": "scoring.engine.Net", "bases": ["torch.nn.Module"]}]
    unknown = [line for line in text.splitlines() if line.startswith("# - ")]
    assert [line.partition(":")[0] for line in unknown] == [
        "# - scoring/fast.cpython-312-x86_64-linux-gnu.so",
        "# - scoring.engine.Watcher",
        "# - scoring.engine.maybe",
    ]


PROGRAM = """\
from multiprocessing import Pool

import scoring


def score(path):
    return scoring.load_scorer(path{device}).score([1.0])


if __name__ == "__main__":
    scorer = scoring.load_scorer("a"{device})
    print(scorer.score([2.0]))
    with Pool(2) as pool:
        print(pool.map(score, ["b", "c"]))
"""
FORKS = """\
import scoring

if __name__ == "__main__":
    {before}
    print(scoring.score_files(["a", "b"]))
"""


def test_programs_are_judged_by_a_derived_model(run: Run, release: Path, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    texts = {
        "broken_map": PROGRAM.format(device=""),
        "ok_map": PROGRAM.format(device=", use_gpu=False"),
        "broken_inside": FORKS.format(before="scoring.warm_up()"),
        "ok_inside": FORKS.format(before="print('ready')"),
        "broken_import": FORKS.format(before="import scoring.eager"),
        "ok_spawn": FORKS.format(before="scoring.use_spawn()\n    scoring.warm_up()"),
    }
    for name, text in texts.items():
        (programs / f"{name}.py").write_text(text)
    (programs / "pyproject.toml").write_text('[tool.cudalint]\nmodels = ["scoring.toml"]\n')
    (programs / "scoring.toml").write_text('[library]\nname = "scoring"\n')

    def found() -> list[tuple[str, str, str]]:
        told = json.loads(run("check", "--output-format", "json", cwd=programs).stdout)
        return [(Path(e["filename"]).stem, e["code"], e["severity"]) for e in told if e["severity"] != "warning"]

    assert found() == []
    (programs / "scoring.toml").write_text(run("model", str(release)).stdout)
    load((str(programs / "scoring.toml"),))
    assert found() == [
        ("broken_import", "CUD104", "error"),
        ("broken_inside", "CUD104", "error"),
        ("broken_map", "CUD101", "error"),
    ]


def test_a_package_is_found_without_being_imported(run: Run, release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (release / "scoring" / "engine.py").write_text("print('imported')\n" + ENGINE)
    monkeypatch.syspath_prepend(str(release))
    by_path, by_name = run("model", str(release / "scoring")), run("model", "scoring")
    assert by_name.returncode == by_path.returncode == 0
    # Nothing installed names its version.
    assert by_name.stdout.replace("(version unknown)", "2.1").replace("\nversions", "") != ""
    assert entries(by_name.stdout) == entries(by_path.stdout)
    assert "scoring" not in sys.modules
    assert "imported" not in by_name.stdout


def test_the_same_source_gives_the_same_text(run: Run, release: Path, tmp_path: Path) -> None:
    first = run("model", str(release)).stdout
    copied = tmp_path / "elsewhere"
    release.rename(copied)
    assert run("model", str(copied)).stdout == first


@pytest.mark.parametrize(
    ("package", "words"),
    [
        ("no_such_package", "no_such_package is not installed here"),
        ("no/such/folder", "no such file or directory"),
        ("_socket", "no source that could be read"),
        ("empty", "holds no package"),
        ("data.bin", "not a Python file"),
    ],
)
def test_what_cannot_be_read_is_one_line(run: Run, tmp_path: Path, package: str, words: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "data.bin").write_text("")
    done = run("model", package)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert words in done.stderr


def test_a_broken_file_costs_only_itself(run: Run, release: Path) -> None:
    (release / "scoring" / "broken.py").write_text("def f(:\n")
    (release / "scoring" / "binary.py").write_bytes(b"\x00\x01")
    done = run("model", str(release))
    assert done.returncode == 0
    assert "scoring.warm_up" in entries(done.stdout)
    assert "# - scoring/binary.py: it holds null bytes" in done.stdout
    assert "# - scoring/broken.py: " in done.stdout


CONCURRENT = "def process(function=None, **kwargs):\n    pass\n"


def test_keys_of_an_argument_are_no_parameters(run: Run, tmp_path: Path) -> None:
    package = tmp_path / "rapidocr"
    package.mkdir()
    made = "class RapidOCR:\n    def __init__(self, config_path=None, {}=None):\n        pass\n"
    called = "    def __call__(self, img_content):\n        pass\n"
    (package / "__init__.py").write_text("from .main import RapidOCR\n")
    (package / "main.py").write_text(made.format("params") + called)
    assert run("model", "rapidocr", "--compare").returncode == 0
    (package / "main.py").write_text(made.format("options") + called)
    assert "it has no parameter params" in run("model", "rapidocr", "--compare").stdout


def test_models_are_compared_with_a_release(run: Run, tmp_path: Path) -> None:
    given = "self, max_workers=1, max_tasks=0, initializer=None, initargs=(), context=None"
    pool = f"class ProcessPool:\n    def __init__({given}):\n"
    package = tmp_path / "pebble"
    package.mkdir()
    (package / "__init__.py").write_text("from .pool import ProcessPool\n")
    (package / "concurrent.py").write_text(CONCURRENT)
    methods = "        pass\n    def schedule(self, {first}, args=(), kwargs=None):\n        pass\n"
    methods += "    def submit(self, function, timeout, /, *args, **kwargs):\n        pass\n"
    (package / "pool.py").write_text(
        pool + methods.format(first="function") + "    def map(self, function, *items):\n        pass\n"
    )
    done = run("model", "pebble", "--compare")
    assert (done.returncode, done.stderr) == (0, "")
    assert "names of models compared, 0 of them" in done.stdout
    (package / "pool.py").write_text(pool + methods.format(first="callable"))
    done = run("model", "pebble", "--compare")
    assert done.returncode == 1
    drifted = [line.rpartition(": ")[2] for line in done.stdout.splitlines()[:-1]]
    assert drifted == [
        "parameter 1 is callable, not function",
        "it has no parameter function",
        "pebble (version unknown) has no such name",
    ]


def test_static_methods_and_attributes_of_instances_are_no_drift(run: Run, tmp_path: Path) -> None:
    package = tmp_path / "kit"
    package.mkdir()
    text = "class Rank:\n    def __init__(self):\n        if True:\n            self.rank = 0\n\n"
    text += "    @staticmethod\n    def made({first}, size):\n        return 1\n"
    model = '[library]\nname = "kit"\n[[function]]\nnames = ["kit.Rank.rank.__get__"]\ndoes = "nothing"\n'
    model += '[[function]]\nnames = ["kit.Rank.made"]\ndoes = "nothing"\nparams = ["path", "size"]\n'
    (tmp_path / "kit.toml").write_text(model)
    (tmp_path / "pyproject.toml").write_text('[tool.cudalint]\nmodels = ["kit.toml"]\n')
    (package / "__init__.py").write_text(text.format(first="path"))
    done = run("model", "kit", "--compare")
    assert (done.returncode, done.stdout.count("\n")) == (0, 1)
    (package / "__init__.py").write_text(text.format(first="where").replace("self.rank", "self.number"))
    told = run("model", "kit", "--compare").stdout.splitlines()
    assert [line.rpartition(": ")[2] for line in told[:-1]] == [
        "kit (version unknown) has no such name",
        "parameter 1 is where, not path",
        "it has no parameter path",
    ]


def test_types_that_only_models_know_have_not_drifted(run: Run, tmp_path: Path) -> None:
    package = tmp_path / "scoring"
    package.mkdir()
    (package / "__init__.py").write_text("def load():\n    pass\n")
    (tmp_path / "scoring.toml").write_text(
        '[library]\nname = "scoring"\n'
        '[[function]]\nnames = ["scoring.load"]\ndoes = "nothing"\nreturns = "thing:scoring.Quick"\n'
        '[[function]]\nnames = ["scoring.Scorer.score"]\ndoes = "gpu"\ngpu = "init"\n'
        '[[type]]\nname = "scoring.Quick"\nbases = ["scoring.Scorer"]\n'
    )
    (tmp_path / "pyproject.toml").write_text('[tool.cudalint]\nmodels = ["scoring.toml"]\n')
    done = run("model", "scoring", "--compare")
    assert (done.returncode, done.stdout.splitlines()[:-1]) == (0, [])


def test_variables_of_the_environment_are_no_parameters(run: Run, tmp_path: Path) -> None:
    (tmp_path / "kit").mkdir()
    (tmp_path / "kit" / "__init__.py").write_text("def load(path):\n    pass\n")
    model = '[library]\nname = "kit"\n[[function]]\nnames = ["kit.load"]\ndoes = "placed"\n'
    model += 'device = "os.environ.KIT_DEVICE"\nwhen = { "os.environ.KIT" = ["1"] }\n'
    model += 'default-when = { mode = ["fast"] }\n'
    (tmp_path / "kit.toml").write_text(model)
    (tmp_path / "pyproject.toml").write_text('[tool.cudalint]\nmodels = ["kit.toml"]\n')
    told = run("model", "kit", "--compare").stdout.splitlines()
    assert [line.rpartition(": ")[2] for line in told[:-1]] == ["it has no parameter mode"]


def test_a_package_without_models_has_not_drifted(run: Run, release: Path) -> None:
    done = run("model", str(release), "--compare")
    assert (done.returncode, done.stdout) == (0, "scoring 2.1: no model says anything of it\n")


# What else a package may do to the devices and the processes of a program, in a module that hands everything on.
MORE = """\
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor

import torch
import torch.distributed as dist
from joblib import Parallel, delayed


def join(backend="nccl"):
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group(backend)


def choose():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))


def is_ready():
    torch.cuda.init()
    return True


def how_many():
    torch.cuda.init()
    return 4


def name_of(tensor):
    return tensor.cuda().item()


def plain(items):
    with multiprocessing.Pool(2) as pool:
        return pool.map(len, items)


def started(fn):
    process = multiprocessing.Process(target=fn)
    process.start()
    return process


def counted(fn, items, workers):
    if workers < 1:
        return [fn(item) for item in items]
    with multiprocessing.Pool(workers) as pool:
        return pool.map(fn, items)


def parallel(fn, items):
    return Parallel(2, backend="loky")(delayed(fn)(one) for one in items)


def submitted(fn, items):
    with ProcessPoolExecutor(2) as pool:
        return list(pool.map(fn, items))


def either(fn, items, fork):
    context = multiprocessing.get_context("fork" if fork else "spawn")
    with context.Pool(2) as pool:
        return pool.map(fn, items)


def settle(method):
    multiprocessing.set_start_method("fork")


class Model:
    def __init__(self, device="cpu"):
        torch.cuda.is_available()
        self.device = device
        self.weight = torch.zeros(1, device=device)

    def predict(self, rows):
        return self.weight + torch.tensor(rows).to(self.device)

    def read(self):
        return self.weight.item()

    def warm(self):
        torch.zeros(1, device="cuda")

    @property
    def size(self):
        return 3

    @classmethod
    def load(cls, path):
        return cls("cuda")

    @staticmethod
    def ask():
        return torch.cuda.device_count()


def endless(n):
    for a in range(9):
        endless(n + a)
        endless(n - a)
    torch.zeros(n, device="cuda")


def with_rows(device, rows=(), *, more=None, **rest):
    return {"a": torch.zeros(1, device=device), "b": [torch.zeros(2, device=device)]}


def fork_itself():
    if os.fork() == 0:
        torch.zeros(1, device="cuda")
        os._exit(0)


def visible(index):
    os.environ["CUDA_VISIBLE_DEVICES"] = str(index)
"""


@pytest.fixture
def another(tmp_path: Path) -> Path:
    """An unpacked release whose package takes its names from a module by a star."""
    folder = tmp_path / "another"
    (folder / "scoring").mkdir(parents=True)
    given = "from .more import *\nfrom . import more\n\n\ndef __getattr__(name):\n    return getattr(more, name)\n"
    (folder / "scoring" / "__init__.py").write_text(given)
    (folder / "scoring" / "more.py").write_text(MORE)
    (folder / "PKG-INFO").write_text("Name: scoring\nVersion: 3.4\n")
    return folder


def test_ranks_answers_and_ways_to_start_are_told_apart(run: Run, another: Path) -> None:
    text = run("model", str(another)).stdout
    said = entries(text)
    assert tomli.loads(text)["library"]["versions"] == "3.4"
    keys = ("does", "kind", "gpu", "returns", "method", "library", "function", "type", "device")
    told = {
        name.removeprefix("scoring.more."): {key: entry[key] for key in keys if key in entry}
        for name, entry in said.items()
    }
    assert {name: told[name] for name in ("join", "choose", "is_ready", "how_many", "Model.warm", "Model.load")} == {
        "join": {"does": "group.select", "kind": "group", "gpu": "init"},
        "choose": {"does": "group.select", "gpu": "init"},
        "is_ready": {"does": "gpu", "gpu": "init", "returns": "true"},
        "how_many": {"does": "gpu", "gpu": "init", "returns": "int:4"},
        "Model.warm": {"does": "gpu", "gpu": "init", "returns": "none"},
        "Model.load": {"does": "placed", "type": "scoring.more.Model"},
    }
    assert {name: told[name] for name in ("started", "parallel", "submitted", "counted", "settle")} == {
        "started": {"does": "fork-launcher", "function": "fn"},
        "parallel": {"does": "fork-launcher", "method": "loky", "function": "fn"},
        "submitted": {"does": "fork-launcher", "function": "fn"},
        "counted": {"does": "fork-launcher", "function": "fn"},
        "settle": {"does": "method.set", "method": "fork", "library": "multiprocessing"},
    }
    started = "starts processes (multiprocessing by fork{}); nothing in them was seen to use CUDA"
    assert [line for line in text.splitlines() if line.startswith("# - ")] == [
        "# - scoring.more.Model: asks the driver on the CPU too",
        f"# - scoring.more.either: {started.format(', multiprocessing by spawn')}",
        f"# - scoring.more.plain: {started.format('')}",
    ]


def test_a_module_is_a_package_of_one_file(run: Run, another: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_path = run("model", str(another / "scoring" / "more.py"))
    assert entries(by_path.stdout)["more.join"]["kind"] == "group"
    monkeypatch.syspath_prepend(str(another / "scoring"))
    assert entries(run("model", "more").stdout) == entries(by_path.stdout)


@pytest.mark.parametrize(
    ("bound", "words"),
    [
        ("MOST_STEPS_OF_ONE", "deep.inner.other: more than is followed"),
        ("MOST_STEPS", "deep.inner.other: not looked at, as 3 steps were run before"),
        ("MOST_TRIALS", "deep.inner.other: not looked at, as 3 calls were tried before"),
    ],
)
def test_what_is_spent_on_a_package_has_bounds(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str, words: str
) -> None:
    (tmp_path / "deep").mkdir()
    load = "import torch\n\n\ndef load(device='cuda'):\n    x = torch.ones(1, device=device)\n    return x\n"
    (tmp_path / "deep/inner.py").write_text(load.replace("load", "other"))
    (tmp_path / "deep/__init__.py").write_text(f"from deep.inner import other as _other\n{load}")
    assert {"deep.load", "deep.inner.other"} <= entries(run("model", str(tmp_path)).stdout).keys()
    monkeypatch.setattr(deriving, bound, 3)
    assert words in run("model", str(tmp_path)).stdout


def test_a_distribution_may_be_called_otherwise_than_its_package(run: Run) -> None:
    done = run("model", "pytest-xdist")
    assert (done.returncode, done.stderr) == (0, "")
    assert tomli.loads(done.stdout)["library"]["name"] == "xdist"


def test_of_several_packages_one_has_to_be_named(run: Run, another: Path) -> None:
    (another / "second").mkdir()
    (another / "second" / "__init__.py").write_text("")
    done = run("model", str(another))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("holds several packages; name one of them: scoring, second\n")


def test_metadata_that_is_broken_names_no_version(run: Run, release: Path) -> None:
    (release / "pyproject.toml").write_text("[project\n")
    done = run("model", str(release))
    assert done.stdout.startswith("# What scoring (version unknown) does")


INIT = "self, max_workers=1, max_tasks=0, initializer=None, initargs=(), context=None"
METHODS = """\
    def schedule(self, function, args=(), kwargs=None):
        pass

    def submit(self, function, timeout, /, *args, **kwargs):
        pass

    def map(self, function, *items):
        pass
"""
POOL = f"class ProcessPool:\n    def __init__({INIT}):\n        pass\n\n{METHODS}"
BELOW = f"class ProcessPool(Base):\n    def __init__({INIT}):\n        pass\n"
# Where the names of a release come from, and of how many of six the source does not show what they are.
ORIGINS = {
    "a star": ({"__init__.py": "from .pool import *\n", "pool.py": POOL}, 3),
    "a star that hides": ({"__init__.py": "from .pool import *\n", "pool.py": f"__all__ = []\n{POOL}"}, 3),
    "a condition": (
        {
            "__init__.py": "try:\n    from .pool import ProcessPool\nexcept ImportError:\n    ProcessPool = None\n",
            "pool.py": POOL,
        },
        4,
    ),
    "a class above": (
        {
            "__init__.py": f"from .base import Base\n\n\n{BELOW}",
            "base.py": f"class Base:\n{METHODS}",
        },
        1,
    ),
    "a function for names": ({"__init__.py": "def __getattr__(name):\n    pass\n"}, 5),
    "globals": ({"__init__.py": "globals().update(ProcessPool=1)\n"}, 5),
    "a circle of stars": (
        {"__init__.py": "from .a import *\n", "a.py": "from .b import *\n", "b.py": "from .a import *\n"},
        5,
    ),
    "a star from elsewhere": ({"__init__.py": "from elsewhere import *\n"}, 5),
    "a compiled module": (
        {"__init__.py": "from ._fast import ProcessPool\n", "_fast.cpython-312-x86_64-linux-gnu.so": ""},
        5,
    ),
}


@pytest.mark.parametrize("origin", ORIGINS)
def test_what_a_source_does_not_show_has_not_drifted(run: Run, tmp_path: Path, origin: str) -> None:
    files, unclear = ORIGINS[origin]
    (tmp_path / "pebble").mkdir()
    for name, text in {**files, "concurrent.py": CONCURRENT}.items():
        (tmp_path / "pebble" / name).write_text(text)
    done = run("model", "pebble", "--compare")
    assert done.returncode == 0
    assert f"6 names of models compared, {unclear} of them made where no source shows it" in done.stdout


GONE = {
    "a module in its place": {"__init__.py": "", "ProcessPool.py": ""},
    "a class above that is not seen": {
        "__init__.py": f"from x import Base\nclass ProcessPool(Base):\n    def __init__({INIT}):\n        pass\n"
    },
    "a decorated class": {"__init__.py": f"from x import decorated\n@decorated\n{POOL}"},
    "a class that makes attributes": {"__init__.py": f"{POOL}    def __getattr__(self, name):\n        pass\n"},
    "keywords only": {"__init__.py": POOL.replace("self, function, args", "self, *, function, args")},
    "any arguments": {"__init__.py": POOL.replace("self, function, args=(), kwargs=None", "self, *args, **kwargs")},
    "another name": {
        "__init__.py": "from .other import Other\nProcessPool = Other\n",
        "other.py": "class Other: pass\n",
    },
}


@pytest.mark.parametrize("origin", GONE)
def test_a_module_that_is_gone_has_drifted_whatever_else_is_seen(run: Run, tmp_path: Path, origin: str) -> None:
    (tmp_path / "pebble").mkdir()
    for name, text in GONE[origin].items():
        (tmp_path / "pebble" / name).write_text(text)
    done = run("model", "pebble", "--compare")
    assert done.returncode == 1
    assert "pools.toml: pebble.pool.ProcessPool: pebble (version unknown) has no such name\n" in done.stdout
    assert ("pebble.ProcessPool.schedule: pebble (version unknown) has no such name" in done.stdout) == (
        origin == "a module in its place"
    )


def test_parts_below_a_bare_folder_and_methods_that_may_use_the_gpu(run: Run, tmp_path: Path) -> None:
    # finder/models has no __init__.py; by its name the default is a text, so no instance of another library's class.
    place = tmp_path / "finder"
    (place / "models").mkdir(parents=True)
    (place / "__init__.py").write_text("from .models.net import Finder\n")
    (place / "models" / "net.py").write_text(
        "from sentence_transformers import SentenceTransformer\n\n\n"
        "def pick(model):\n"
        '    if "flair" in str(type(model)):\n        import flair\n\n        return flair.load(model)\n'
        "    if isinstance(model, SentenceTransformer):\n        return model\n"
        "    return SentenceTransformer(model)\n\n\n"
        "class Finder:\n"
        '    def __init__(self, model="small"):\n        self.model = pick(model)\n\n'
        "    def name(self):\n        return type(self).__name__\n\n"
        "    def find(self, texts):\n        if not texts:\n            return []\n"
        "        return self.model.encode(texts)\n"
    )
    text = run("model", str(place)).stdout
    assert '"finder.models.net.Finder" = "finder.Finder"' in text
    assert 'names = ["finder.Finder"]\ndoes = "placed"' in text
    assert 'names = ["finder.Finder.name"]\ndoes = "nothing"' in text
    assert "# - finder.Finder.find: may use what its instance holds on the GPU\n" in text


# Parameters behind a decorator and handed on; objects that ask the driver and remember, and that hold something.
WRAPPED = """\
import functools

import torch


def renamed(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


class Base:
    def __init__(self, path, device="auto"):
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        self.device = device

    def rows(self, values):
        return torch.tensor(values, device=self.device)


class Wrapped(Base):
    @renamed
    def __init__(self, path, device="auto"):
        super().__init__(path, device=device)


class HandedOn(Base):
    def __init__(self, size, **kwargs):
        super().__init__("path", **kwargs)
        self.size = size


class Ready:
    @renamed
    def __init__(self, *, device="cuda"):
        self.weights = torch.zeros(2, device=device)

    def use(self):
        return self.weights.sum().item()

    def endless(self, values):
        # Each value doubles the ways: more than are followed.
        found = []
        for first in values:
            for second in values:
                for third in values:
                    found.append(first if second.a(third) else third if first.b(second) else second)
        return self.weights[found]

    def last(self):
        return self.weights.cpu()


class Held:
    def __init__(self, values):
        self.weights = torch.zeros(2, device="cuda")
        for first in values:
            if first.a():
                self.rest = first.b()

    def use(self):
        return self.weights.sum().item()
"""


@pytest.fixture
def wrapped(tmp_path: Path) -> Path:
    """The folder of a package with the file above."""
    package = tmp_path / "wrapped"
    package.mkdir()
    (package / "__init__.py").write_text("from .parts import Base, HandedOn, Held, Ready, Wrapped\n")
    (package / "parts.py").write_text(WRAPPED)
    (package / "__main__.py").write_text("import torch\nprint(torch.cuda.is_available())\n")
    (package / "test_parts.py").write_text("import torch\ndef helper():\n    torch.zeros(1).cuda()\n")
    return package


def test_what_decorators_and_classes_hand_on(run: Run, wrapped: Path) -> None:
    said = entries(run("model", str(wrapped)).stdout)
    asks = {"does": "estimator", "gpu": "query", "device": "device", "default-gpu": True}
    for name in ("Base", "Wrapped", "HandedOn"):
        entry = said[f"wrapped.{name}"]
        assert {key: entry.get(key) for key in asks} == asks
        assert said[f"wrapped.{name}.rows"]["does"] == "estimator.fit"
    assert (said["wrapped.Ready"]["does"], said["wrapped.Ready"]["device"]) == ("placed", "device")
    assert said["wrapped.Ready.use"]["does"] == "like"
    # Programs of the package are not imported, and its tests are no part of it.
    assert not any("__main__" in name or "test" in name for name in said)


def test_one_that_takes_too_long_costs_no_other_its_entry(
    run: Run, wrapped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deriving, "MOST_STEPS_OF_ONE", 60)
    done = run("model", str(wrapped))
    said = entries(done.stdout)
    assert said["wrapped.Ready"]["does"] == "placed"
    assert "wrapped.Ready.last" not in said
    unknown = [line for line in done.stdout.splitlines() if line.startswith("# - wrapped.Ready")]
    assert unknown == ["# - wrapped.Ready: its methods endless, last: more than is followed"]
    assert said["wrapped.Ready.use"]["does"] == "like"


def test_of_what_is_not_made_to_its_end_nothing_is_said(
    run: Run, wrapped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert entries(run("model", str(wrapped)).stdout)["wrapped.Held.use"]["does"] == "like"
    monkeypatch.setattr("cudalint.machine.interpreter.entry.MOST_MAKING_STEPS", 4)
    done = run("model", str(wrapped))
    assert "wrapped.Held.use" not in entries(done.stdout)
    assert "# - wrapped.Held: what its methods do, as making it is not followed to its end" in done.stdout


REMEMBERED = """\
import multiprocessing

import wrapped


def work(n):
    return wrapped.Wrapped("a").rows([n]).sum().item()


if __name__ == "__main__":
    base = wrapped.HandedOn(2{device})
    {then}
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(work, [1, 2]))
"""


def test_what_an_object_remembers_decides(run: Run, wrapped: Path, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "pyproject.toml").write_text('[tool.cudalint]\nmodels = ["wrapped.toml"]\n')
    (programs / "wrapped.toml").write_text(run("model", str(wrapped)).stdout)
    for name, device, then in (
        ("asked", "", "print(base)"),
        ("used", ', device="cuda"', "print(base.rows([1]))"),
        ("ok", ', device="cpu"', "print(base.rows([1]))"),
    ):
        (programs / f"{name}.py").write_text(REMEMBERED.format(device=device, then=then))
    told = json.loads(run("check", "--output-format", "json", cwd=programs).stdout)
    found = [(Path(e["filename"]).stem, e["code"]) for e in told if e["severity"] == "error"]
    assert found == [("asked", "CUD101"), ("used", "CUD101")]


def test_the_modules_of_a_large_package_are_imported_in_order(run: Run, tmp_path: Path) -> None:
    package = tmp_path / "large"
    package.mkdir()
    acts = "import torch\nUSED = torch.cuda.is_initialized()\n"
    fillers = [f"filler{n}" for n in range(30)]
    texts = {
        "__init__.py": "".join(f"from large import {name}\n" for name in ["d_model", *fillers]),
        "b_base.py": acts + "from large.c_part import part\nclass Base:\n    def __init__(self):\n"
        "        self.weights = torch.zeros(2, device='cuda')\n",
        "c_part.py": acts + "from large.util import name\ndef part():\n    return name()\n",
        "d_model.py": acts + "from large.b_base import Base\nclass Model(Base):\n    pass\n",
        "util.py": "def name():\n    return 'net'\n",
        **{f"{name}.py": "" for name in fillers},
    }
    for name, text in texts.items():
        (package / name).write_text(text)
    assert entries(run("model", str(package)).stdout)["large.d_model.Model"]["does"] == "placed"


# A word that leaves the choice to the function, and a switch that also takes the name of a device.
WORDS = """\
import torch


class Auto:
    def __init__(self, path, device="auto"):
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        self.net = torch.nn.Linear(2, 2).to(device)


class Switched:
    def __init__(self, gpu=True):
        if gpu is False:
            device = "cpu"
        elif gpu is True:
            device = "cuda"
        else:
            device = gpu
        self.net = torch.nn.Linear(2, 2).to(device)


def sharded(parts=1):
    if parts == 1:
        return torch.zeros(1, device="cuda")
    return [torch.zeros(1) for _ in range(parts)]
"""


EARLIER = """\
from multiprocessing import Pool


class Runner:
    def __init__(self):
        self.pool = Pool(2)

    def run(self, function, items):
        return self.pool.map(function, items)


class Later:
    def run(self, function, items):
        with Pool(2) as pool:
            return pool.map(function, items)
"""


def test_workers_that_were_forked_before_are_no_launch(run: Run, tmp_path: Path) -> None:
    (tmp_path / "runners.py").write_text(EARLIER)
    done = run("model", str(tmp_path / "runners.py"))
    said = entries(done.stdout)
    assert "runners.Runner.run" not in said
    assert "# - runners.Runner.run: hands work to processes that were forked before" in done.stdout
    assert said["runners.Later.run"]["does"] == "fork-launcher"


def test_words_and_switches_choose_a_device(run: Run, tmp_path: Path) -> None:
    (tmp_path / "words.py").write_text(WORDS)
    said = entries(run("model", str(tmp_path / "words.py")).stdout)
    keys = ("device", "when", "default-gpu")
    assert [{k: said[f"words.{n}"][k] for k in keys if k in said[f"words.{n}"]} for n in ("Auto", "Switched")] == [
        {"device": "device", "when": {"device": ["auto"]}, "default-gpu": True},
        {"when": {"gpu": [True]}, "default-gpu": True},
    ]
    # With one it uses the GPU, and says nothing of a switch.
    assert "when" not in said.get("words.sharded", {})


# What keeps a function off the GPU, what an import does by itself, and what is done beside workers.
BESIDE = """\
import multiprocessing
from multiprocessing import Pool

import torch

multiprocessing.set_start_method("fork")


class Inferer:
    def __init__(self, path, force_cpu=False):
        self.device = torch.device("cpu")
        if not force_cpu and torch.cuda.is_available():
            self.device = torch.device("cuda")
        self.net = torch.nn.Linear(2, 2).to(self.device)

    def apply(self, image):
        return self.net(torch.tensor(image).to(self.device)).tolist()


class Learner:
    def __init__(self, net, device=None):
        self.device = device
        self.net = torch.nn.Linear(2, 2).to(device)

    def fit(self, rows):
        return self.net(torch.tensor(rows).to(self.device)).tolist()


def plain(rows):
    return len(rows)


def count(n):
    return n


def score(rows, device="cuda"):
    with Pool(2) as pool:
        found = pool.map(count, rows)
    return torch.zeros(len(found), device=device).sum().item()
"""


def test_switches_imports_and_workers_hide_nothing(run: Run, tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text(BESIDE)
    done = run("model", str(tmp_path / "beside.py"))
    said = entries(done.stdout)
    kept = said["beside.Inferer"]
    assert (kept["does"], kept["unless"], kept["default-gpu"]) == ("placed", {"force_cpu": [True]}, True)
    assert said["beside.Inferer.apply"]["does"] == "like"
    assert (said["beside.Learner"]["does"], said["beside.Learner.fit"]["does"]) == ("placed", "like")
    assert said["import beside"]["method"] == "fork"
    assert "beside.plain" not in said
    assert (said["beside.score"]["device"], said["beside.score"]["default-gpu"]) == ("device", True)
    assert "# - beside.score: starts processes (multiprocessing by fork)" in done.stdout


def test_a_package_offers_what_its_modules_have_by_a_star(run: Run, tmp_path: Path) -> None:
    package = tmp_path / "starred"
    package.mkdir()
    helpers = "".join(f"def helper_{n}(rows):\n    return len(rows) + {n}\n\n\n" for n in range(20))
    (package / "__init__.py").write_text("from starred.train import *\nfrom starred.starred import *\n\n\n" + helpers)
    (package / "train.py").write_text("import torch\n\n\ndef train(net):\n    net.cuda()\n")
    (package / "starred.py").write_text("import torch\n\n\nclass Net(torch.nn.Module):\n    pass\n")
    done = run("model", str(package))
    assert {"starred.Net", "starred.train"} & entries(done.stdout).keys() == {"starred.Net"}
    assert '"starred.starred.Net" = "starred.Net"' in done.stdout


def test_what_a_known_model_says_more_of_is_left_to_it(run: Run, tmp_path: Path) -> None:
    package = tmp_path / "onnxruntime"
    package.mkdir()
    text = "import torch\nfrom onnxruntime.capi import _compiled as C\n\n\nclass InferenceSession:\n"
    text += (
        "    def __init__(self, path, providers=None):\n        self._sess = C.InferenceSession(path, providers)\n\n"
    )
    text += "    def warm(self):\n        torch.zeros(1, device='cuda')\n"
    (package / "__init__.py").write_text(text)
    done = run("model", str(package))
    assert "onnxruntime.InferenceSession" not in entries(done.stdout)
    assert "# - onnxruntime.InferenceSession: a known model says placed, of which nothing was seen" in done.stdout


TRACKER = """\
import torch


class Tracker:
    def __init__(self, age=3, embedder="mobilenet", gpu=True):
        self.net = None
        if embedder is not None:
            self.net = torch.nn.Linear(2, 2).to("cuda" if gpu else "cpu")

    def update(self, rows, embeds=None, frame=None):
        if embeds is None and frame is None:
            raise ValueError("either of them must be given")
        return self.net(frame) if embeds is None else embeds

    def draw(self, rows):
        raise NotImplementedError
"""


def test_parts_that_are_not_asked_for_and_defaults_that_are_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "tracker.py").write_text(TRACKER)
    done = run("model", str(tmp_path / "tracker.py"))
    said = entries(done.stdout)
    made = said["tracker.Tracker"]
    assert (made["does"], made["when"], made["idle"]) == ("placed", {"gpu": [True]}, {"embedder": [False]})
    assert not {"tracker.Tracker.update", "tracker.Tracker.draw"} & said.keys()
    assert "# - tracker.Tracker.update: may use what its instance holds on the GPU" in done.stdout
    assert "# - tracker.Tracker.draw: may use what its instance holds on the GPU" in done.stdout


PROPERTIES = """\
from functools import cached_property

import torch


class Engine:
    @property
    def device(self):
        return "cuda" if torch.cuda.is_available() else "cpu"

    @cached_property
    def net(self):
        return torch.nn.Linear(2, 2).cuda()

    def run(self):
        return self.net(torch.zeros(2).cuda())
"""


def test_properties_are_read_and_not_called(run: Run, tmp_path: Path) -> None:
    (tmp_path / "propped.py").write_text(PROPERTIES)
    said = entries(run("model", str(tmp_path / "propped.py")).stdout)
    assert said["propped.Engine.device.__get__"]["gpu"] == "query"
    assert (said["propped.Engine.net.__get__"]["does"], said["propped.Engine.run"]["does"]) == ("placed", "tensor")
    assert not {"propped.Engine.device", "propped.Engine.net"} & said.keys()


TRAINED = """\
from transformers import Trainer, TrainingArguments


class Analyzer:
    def __init__(self, model):
        self.trainer = Trainer(model=model, args=TrainingArguments(output_dir="."))

    def name(self):
        return "analyzer"
"""


def test_what_making_an_instance_chose_is_not_its_methods(run: Run, tmp_path: Path) -> None:
    (tmp_path / "analyzing.py").write_text(TRAINED)
    said = entries(run("model", str(tmp_path / "analyzing.py")).stdout)
    assert said["analyzing.Analyzer"]["does"] == "group.select"
    assert "analyzing.Analyzer.name" not in said


HANDED_ON = """\
from transformers import AutoModel


class Forecaster:
    @classmethod
    def from_pretrained(cls, path, **kwargs):
        return cls(AutoModel.from_pretrained(path, **kwargs))

    def __init__(self, model):
        self.model = model
"""


def test_a_device_is_handed_on_as_transformers_calls_it(run: Run, tmp_path: Path) -> None:
    (tmp_path / "forecasting.py").write_text(HANDED_ON)
    said = entries(run("model", str(tmp_path / "forecasting.py")).stdout)
    made = said["forecasting.Forecaster.from_pretrained"]
    assert (made["does"], made["device"]) == ("placed", "device_map")
