"""``cudalint model``: models written from the source of a package, and shipped ones held against a release."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cudalint.models.library import load

try:
    import tomllib
except ModuleNotFoundError:
    import tomli as tomllib

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
    return {name: entry for entry in tomllib.loads(text)["function"] for name in entry["names"]}


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
    document = tomllib.loads(text)
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


def test_models_are_compared_with_a_release(run: Run, tmp_path: Path) -> None:
    given = "self, max_workers=1, max_tasks=0, initializer=None, initargs=(), context=None"
    pool = f"class ProcessPool:\n    def __init__({given}):\n"
    package = tmp_path / "pebble"
    package.mkdir()
    (package / "__init__.py").write_text("from .pool import ProcessPool\n")
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


def test_a_package_without_models_has_not_drifted(run: Run, release: Path) -> None:
    done = run("model", str(release), "--compare")
    assert (done.returncode, done.stdout) == (0, "scoring 2.1: no model says anything of it\n")
