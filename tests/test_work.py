"""What a run costs, counted in files and imports rather than in seconds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from cudalint import config
from cudalint.models import shipped_words
from cudalint.models.library import load
from cudalint.session import Session

PLAIN = "import os\n\n\ndef process(rows):\n    return [row.strip() for row in rows]\n"
HEAVY = (
    "libcst",
    "rich",
    "cudalint.project.analysis",
    "cudalint.ir.nodes",
    "cudalint.machine.interpreter",
    "cudalint.rules.cud101",
    "pathspec",
)


NAMED_ALIKE = """\
import tensorflow as tf


class Value:
    def __call__(self):
        pass

    def norm(self, x):
        return x


DEFAULT = Value()
"""
LAUNCHING = """\
import multiprocessing as mp

from values import DEFAULT


def work():
    print("works")


if __name__ == "__main__":
    mp.Process(target=work).start()
"""


def tree(top: Path, count: int) -> Path:
    for number in range(count):
        directory = top / f"package{number // 50}"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"module{number}.py").write_text(PLAIN, encoding="utf-8")
    return top


def test_a_tree_that_speaks_of_neither_cuda_nor_processes_is_not_parsed(tmp_path: Path) -> None:
    top = str(tree(tmp_path, 1000))
    report = Session(config.load([top])).check([top])
    assert report.findings == ()
    assert report.effort.files_read == 1000
    assert report.effort.bytes_read == 1000 * len(PLAIN)
    assert report.effort.files_parsed == report.effort.bytes_parsed == report.effort.nodes_lowered == 0


def test_the_name_of_an_engine_starts_nothing_in_its_own_source(tmp_path: Path) -> None:
    (tmp_path / "vllm").mkdir()
    (tmp_path / "vllm" / "__init__.py").write_text("")
    for number in range(20):
        text = "import torch\n\nfrom vllm import layers\n\n\ndef run(x):\n    return layers.go(torch.relu(x))\n"
        (tmp_path / "vllm" / f"module{number}.py").write_text(text, encoding="utf-8")
    report = Session(config.load([str(tmp_path)])).check([str(tmp_path)])
    assert report.effort.files_read == 21
    assert report.effort.files_parsed == 0


LAYER = """\
import logging

import torch

from model.base import Layer

logger = logging.getLogger(__name__)


class Part(Layer):
    def forward(self, x):
        return x.cuda()
"""
SCRIPT = """\
import torch

from model.base import Layer, work, mp

torch.cuda.init()
mp.Process(target=work).start()
"""


def test_what_only_defines_in_a_part_of_a_package_is_no_program(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "__init__.py").write_text("")
    base = "import torch\nimport multiprocessing as mp\n\n\nclass Layer(torch.nn.Module):\n    pass\n\n\n"
    base += "def work():\n    torch.cuda.init()\n\n\nlock = mp.Lock()\nmp.Process(target=print).start()\n"
    (tmp_path / "model" / "base.py").write_text(base)
    for number in range(12):
        part = tmp_path / "model" / "layers" / f"part{number}"
        part.mkdir(parents=True)
        (part / f"part{number}.py").write_text(LAYER)
    (tmp_path / "model" / "tools").mkdir()
    assert Session(config.load([str(tmp_path)])).check([str(tmp_path)]).effort.entries == 0
    (tmp_path / "model" / "tools" / "tool.py").write_text(SCRIPT)
    report = Session(config.load([str(tmp_path)])).check([str(tmp_path)])
    assert report.effort.entries == 1
    assert [(f.code, os.path.basename(f.span.filename)) for f in report.findings] == [("CUD101", "tool.py")]


def test_a_method_called_like_a_function_of_a_gpu_library_does_nothing_at_the_import(tmp_path: Path) -> None:
    (tmp_path / "values.py").write_text(NAMED_ALIKE, encoding="utf-8")
    (tmp_path / "main.py").write_text(LAUNCHING, encoding="utf-8")
    assert Session(config.load([str(tmp_path)])).check([str(tmp_path)]).effort.files_parsed == 1
    (tmp_path / "values.py").write_text(NAMED_ALIKE.replace("pass", "tf.norm([1.0])"), encoding="utf-8")
    assert Session(config.load([str(tmp_path)])).check([str(tmp_path)]).effort.files_parsed == 2


def imported(program: str, cwd: Path) -> str:
    """Which of the heavy modules a program has imported in the end."""
    program += f"\nimport sys\nprint([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], cwd=cwd, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


def test_a_run_with_nothing_to_parse_imports_neither_parser_nor_rules(tmp_path: Path) -> None:
    tree(tmp_path, 3)
    for arguments in (["check"], ["check", "--output-format", "json"], ["check", "--select", "CUD1"]):
        assert imported(f"from cudalint.hosts.cli import main\nassert main({arguments}) == 0", tmp_path) == "[]"


QUIET = """\
import multiprocessing as mp
import threading

LOCK = threading.Lock()


def cores():
    return mp.cpu_count()
"""


def test_a_run_in_which_nothing_is_entered_imports_neither_parser_nor_machine_nor_rules(tmp_path: Path) -> None:
    (tmp_path / "quiet.py").write_text(QUIET)
    for arguments in (["check", "--no-cache"], ["check"], ["check", "--output-format", "json", "quiet.py"]):
        loaded = imported(f"from cudalint.hosts.cli import main\nassert main({arguments}) == 0", tmp_path)
        assert loaded == "['cudalint.ir.nodes']"  # its words are read


def test_the_flake8_plugin_costs_nothing_on_files_without_markers(tmp_path: Path) -> None:
    program = f"from cudalint.hosts.flake8_plugin import Plugin\nassert not [*Plugin(None, [{PLAIN!r}], 'x.py').run()]"
    assert imported(program, tmp_path) == "[]"
    program += "\nimport sys; assert sys.modules.keys().isdisjoint({'cudalint.session', 'cudalint.models.library'})"
    imported(program, tmp_path)


def test_the_words_that_make_a_file_worth_a_look_are_those_of_the_models() -> None:
    known = load().vocabulary
    assert shipped_words.vocabulary() == known, "run python -m release.words"
    assert Path(shipped_words.FILE).read_text(encoding="utf-8") == shipped_words.written(known)
