"""A change to spawn is safe only where nothing speaks against it: each doubt, and the program without it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from paper.run import run

from cudalint.config import Config
from cudalint.finding import Applicability, Fix
from cudalint.fixes.spawn_safety import spawn_doubts
from cudalint.machine.joining import join_process
from cudalint.machine.state import Process
from cudalint.project.analysis import Options, analyse
from cudalint.session import Session
from cudalint.text.source import SourceFile

PROGRAM = """\
import multiprocessing as mp
{imports}
import torch

{top}

def work(n{parameter}):
{body}    return torch.ones({size}, device="cuda").sum().item()


def main():
    torch.zeros(1, device="cuda")
{before}    with {pool} as pool:
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
    "pool": "mp.Pool(1)",
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
    "a program that also runs without a GPU": {
        "top": "DEVICE = 'cuda' if torch.cuda.is_available() else 'cpu'\n",
        "size": "n, device=DEVICE).sum().item() + torch.ones(n",
        "before": "    if torch.cuda.is_available():\n        print('GPU')\n",
    },
    "a worker for each GPU": {
        "pool": "mp.Pool(torch.cuda.device_count())",
        "call": "map(work, range(1, torch.cuda.device_count() + 1))",
    },
    "a seed that no worker feels": {"before": "    torch.manual_seed(0)\n"},
    "a seed that the worker sets anew": {
        "before": "    torch.manual_seed(0)\n",
        "body": "    torch.manual_seed(n)\n",
        "size": "torch.randint(1, 9, (1,)).item()",
    },
    "messages that no worker writes": {
        "imports": "import logging\nimport sys\n",
        "top": "LOG = logging.getLogger(__name__)\n",
        "before": "    LOG.setLevel(logging.INFO)\n    handler = logging.StreamHandler(sys.stdout)\n"
        "    handler.setFormatter(logging.Formatter('%(message)s'))\n    LOG.addHandler(handler)\n    LOG.info('go')\n",
        "guard": "    logging.basicConfig(level=logging.INFO)\n",
    },
    "what no worker leaves to cuDNN": {"before": "    torch.backends.cudnn.deterministic = True\n"},
    "a worker that needs no GPU for some of what it is given": {
        "body": "    if n < 0:\n        return None\n",
        "call": "map(work, [1, -2])",
    },
}


@pytest.mark.parametrize("parts", PROVEN.values(), ids=PROVEN)
def test_what_a_fresh_process_has_as_well_is_proven(tmp_path: Path, parts: dict[str, str]) -> None:
    fix = fix_of(tmp_path, **parts)
    assert fix.applicability is Applicability.SAFE, fix.reason


DOUBTED = {
    "a setting of the process": (
        {
            "imports": "import logging\n",
            "body": "    logging.getLogger('work').info(n)\n",
            "guard": "    logging.basicConfig()\n",
        },
        "basicConfig",
    ),
    "a seed": ({"before": "    torch.manual_seed(0)\n", "size": "torch.randint(1, 9, (1,)).item()"}, "manual_seed"),
    "what cuDNN is told": (
        {
            "before": "    torch.backends.cudnn.deterministic = True\n",
            "body": "    torch.nn.functional.conv1d(torch.ones(1, 1, 3), torch.ones(1, 1, 3))\n",
        },
        "torch.backends.cudnn.deterministic",
    ),
    "a setting that the worker asks for by its name": (
        {
            "before": "    torch.backends.cudnn.enabled = False\n",
            "body": "    n += getattr(torch.backends.cudnn, 'enabled')\n",
        },
        "torch.backends.cudnn.enabled",
    ),
    "a setting that the worker imports": (
        {
            "before": "    torch.backends.cudnn.benchmark = True\n",
            "body": "    from torch.backends.cudnn import benchmark\n    n += benchmark\n",
        },
        "torch.backends.cudnn.benchmark",
    ),
    "a seed of the generator that the worker hands over": (
        {
            "before": "    torch.manual_seed(0)\n",
            "body": "    n += torch.rand(1, generator=torch.default_generator).item()\n",
        },
        "manual_seed",
    ),
    "a seed of the module, from which both draw": (
        {
            "imports": "import random\n",
            "top": "random.seed(3)\n",
            "before": "    print(random.random())\n",
            "body": "    n += random.random()\n",
        },
        "did not seed what `random.random()` draws",
    ),
    "a seed of what a GPU draws": (
        {"before": "    torch.manual_seed(0)\n", "body": "    n += torch.rand(1, device='cuda').item()\n"},
        "manual_seed",
    ),
    "a seed, and something that may draw by itself": (
        {
            "imports": "import random\nimport statistics\n",
            "before": "    random.seed(0)\n",
            "body": "    print(statistics.NormalDist().samples(1))\n",
        },
        "random.seed",
    ),
    "a seed, and something that draws where it is gone through": (
        {
            "before": "    torch.manual_seed(0)\n",
            "size": "len(list(n))",
            "call": "map(work, [torch.utils.data.RandomSampler([1, 2])])",
        },
        "manual_seed",
    ),
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
        {
            "imports": "import vendor\n",
            "top": "def prepare(x):\n    pass\n\n",
            "pool": "mp.Pool(1, prepare, (vendor.load(),))",
        },
        "may not pickle",
    ),
    "an object that pickles itself": (
        {
            "top": "class Job:\n    def __reduce__(self):\n        return (Job, ())\n\n",
            "size": "1",
            "call": "map(work, [Job()])",
        },
        "pickles itself",
    ),
    "a program that also runs without a GPU, and sets something then": (
        {
            "top": "CONFIG = {'size': 1}\n",
            "size": "CONFIG['size']",
            "before": "    if not torch.cuda.is_available():\n        CONFIG['size'] = 3\n",
        },
        "without a GPU, the worker reads `CONFIG",
    ),
    "a program that also runs without a GPU, and draws numbers on the CPU then": (
        {
            "top": "DEVICE = 'cuda' if torch.cuda.is_available() else 'cpu'\n",
            "size": "int(torch.rand(1, device=DEVICE) * 9)",
        },
        "without a GPU, the worker did not seed what `torch.rand()` draws",
    ),
}


@pytest.mark.parametrize(("parts", "reason"), DOUBTED.values(), ids=DOUBTED)
def test_what_relies_on_fork_is_not_safe(tmp_path: Path, parts: dict[str, str], reason: str) -> None:
    fix = fix_of(tmp_path, **parts)
    assert fix.applicability is Applicability.UNSAFE
    assert reason in (fix.reason or "")


def test_a_launch_that_is_not_seen_afterwards_is_not_proven() -> None:
    text = PROGRAM.format(**PARTS)
    analysis = analyse([SourceFile("/project/program.py", text, text.encode())], Options())
    assert analysis.basis is not None
    (finding,) = analysis.findings
    doubts = spawn_doubts(analysis.basis, analysis.basis, {}, finding, lambda steps: None)
    assert doubts == ["the launch is not seen any more after the change"]


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
        "top": "HAS_GPU = torch.cuda.is_available() and torch.cuda.is_initialized()\n",
        "body": '    os.environ["CUDA_VISIBLE_DEVICES"] = "1"\n',
    },
}


@pytest.mark.parametrize("parts", REFUSED.values(), ids=REFUSED)
def test_what_spawn_would_break_or_hide_is_never_safe(tmp_path: Path, parts: dict[str, str]) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.format(**(PARTS | parts)))
    fixes = [f.fix for f in Session(Config()).check([str(path)]).findings if f.fix is not None]
    assert not [fix for fix in fixes if fix.applicability is Applicability.SAFE]


CLASS = """
import multiprocessing as mp
import threading

import torch


class Runner:
    def __init__(self, size):
        self.size = size
        self.workers = []
        {kept}

    def work(self, number):
        print(torch.ones(self.size, device="cuda").sum().item(), number, len(self.__dict__))

    def start(self):
        {start}


if __name__ == "__main__":
    print(torch.zeros(1).cuda())
    Runner(3).start()
"""
ONE = "self.process = mp.Process(target=self.work, args=(1,))\n        self.process.start()"
# What the object keeps, how it starts its workers, and whether these arrive in fresh processes.
CARRIED = {
    "the process that is being started": ("pass", ONE, True),
    "a process that was started before": (
        "pass",
        "for number in range(2):\n            process = mp.Process(target=self.work, args=(number,))\n"
        "            process.start()\n            self.workers.append(process)",
        False,
    ),
    "processes that are started later": (
        "pass",
        "made = [mp.Process(target=self.work, args=(n,)) for n in range(2)]\n"
        "        for process in made:\n            process.start()",
        True,
    ),
    "a pool": ("self.pool = mp.Pool(1)", ONE, False),
    "a thread": ("self.thread = threading.Thread(target=print)", ONE, False),
    "a lock of threads": ("self.lock = threading.Lock()", ONE, False),
    "a file": ("self.log = open('log')", ONE, False),
    "a module": ("self.library = mp", ONE.replace("mp.", "self.library."), False),
    "a lambda": ("self.change = lambda x: x", ONE, False),
}


@pytest.mark.parametrize(("kept", "start", "arrives"), CARRIED.values(), ids=CARRIED)
def test_a_worker_starts_afresh_only_where_its_object_can_be_sent(
    tmp_path: Path, kept: str, start: str, arrives: bool
) -> None:
    (tmp_path / "program.py").write_text(CLASS.format(kept=kept, start=start))
    (finding,) = [f for f in Session(Config()).check([str(tmp_path / "program.py")]).findings if f.code == "CUD101"]
    assert finding.fix is not None
    offered = finding.fix.applicability is not Applicability.DISPLAY
    assert offered == arrives, finding.fix.message


# -- what a fork inherits, by whatever starts the workers ------------------------------------------------------------

CFG_TOP = "class Cfg:\n    scale = 1\n"
LAUNCHERS = {
    "pool": ("import multiprocessing", "with multiprocessing.Pool(1) as pool:\n        print(pool.map(work, [1, 2]))"),
    "executor": (
        "from concurrent.futures import ProcessPoolExecutor",
        "with ProcessPoolExecutor(1) as pool:\n        print(list(pool.map(work, [1, 2])))",
    ),
    "process": (
        "import multiprocessing",
        "worker = multiprocessing.Process(target=work, args=(1,))\n    worker.start()\n    worker.join()",
    ),
    "joblib": (
        "from joblib import Parallel, delayed",
        'print(Parallel(n_jobs=2, backend="multiprocessing")(delayed(work)(n) for n in range(2)))',
    ),
    "loader": (
        "from torch.utils.data import DataLoader, Dataset",
        "for batch in DataLoader(Rows(), num_workers=1):\n        print(batch)",
    ),
}
INHERITING = """\
{launcher}
{imports}
import torch

{top}

class Rows({base}):
    def __len__(self):
        return 2

    def __getitem__(self, n):
        return work(n)


def work(n):
    return torch.ones(1, device="cuda").sum().item() * {reads}


def main():
    torch.zeros(1, device="cuda")
    {before}
    {launch}


if __name__ == "__main__":
    main()
"""


def project_fix(folder: Path, launcher: str, parts: dict[str, str], **files: str) -> Fix:
    """The repair of a program that is started by a launcher, with other files beside it."""
    imported, launch = LAUNCHERS[launcher]
    given = {"imports": "", "top": "", "reads": "n", "before": "pass", **parts}
    base = "Dataset" if launcher == "loader" else "object"
    text = INHERITING.format(launcher=imported, launch=launch, base=base, **given)
    (folder / "program.py").write_text(text)
    for name, content in files.items():
        (folder / f"{name}.py").write_text(content)
    findings = Session(Config()).check([str(folder / "program.py")]).findings
    (fix,) = [f.fix for f in findings if f.code in ("CUD101", "CUD401") and f.fix is not None]
    return fix


# The top of the module, what main() does, what the worker gives back, and what the reason has to name.
NAMES = {
    "the process": ("", "pass", "multiprocessing.current_process().name", "current_process().name"),
    "a class as text": (CFG_TOP, "pass", "str(Cfg)", "Cfg.__module__"),
    "a class in a text": (CFG_TOP, "pass", 'f"{Cfg}"', "Cfg.__module__"),
    "a class in a list": (CFG_TOP, "pass", '"%s" % [Cfg]', "Cfg.__module__"),
    "a class given to a library": ("import inspect\n" + CFG_TOP, "pass", "inspect.getmodule(Cfg)", "Cfg.__module__"),
    "a method": ("class Cfg:\n    @classmethod\n    def get(cls):\n        pass\n", "pass", "str(Cfg.get)", "Cfg.__mo"),
    "a module": (CFG_TOP, "pass", "Cfg.__module__", "__module__"),
    "a package": ("", "pass", "__package__", "__package__"),
    "all modules": ("import sys\n", "pass", '"json" in sys.modules', "sys.modules"),
    "the command": ("import sys\n", "pass", "len(sys.orig_argv)", "sys.orig_argv"),
    "main": ("import __main__\n", "pass", "__main__.__file__", "__main__"),
    "the start method": ("", "print(multiprocessing.get_start_method())", "n", "multiprocessing.get_start_method"),
    "messages": ("import logging\n", 'logging.basicConfig(format="%(processName)s")', "n", "processName"),
    "an exception": (
        "import traceback\n\n\nclass Bad(Exception):\n    pass\n", "pass", "traceback.format_exc()", "traceback.form",
    ),
    "a renamed function": ("def f():\n    return 1\n\n\nf.__qualname__ = 'g'\n", "pass", "f()", "f.__qualname__"),
}  # fmt: skip


@pytest.mark.parametrize(("top", "before", "reads", "named"), NAMES.values(), ids=NAMES)
def test_names_that_are_other_ones_in_a_fresh_process(
    tmp_path: Path, top: str, before: str, reads: str, named: str
) -> None:
    fix = project_fix(tmp_path, "pool", {"top": top, "before": before, "reads": reads})
    assert fix.applicability is Applicability.UNSAFE
    assert f"`{named}" in (fix.reason or "")


WORKER = """\
import multiprocessing
import time

import torch

{top}

def work(n=1):
    print(torch.ones(1, device="cuda"), n)


if __name__ == "__main__":
    torch.zeros(1, device="cuda")
    {launch}
"""
ONE_WORKER = "worker = multiprocessing.Process({})\n    worker.start()\n    "
# The top of the module, how the worker is started and waited for, and what the reason has to say; safe where empty.
WAITED = {
    "joined": ("", ONE_WORKER.format("target=work") + "worker.join()", ""),
    "joined for a time": ("", ONE_WORKER.format("target=work") + "worker.join(5)", "`worker.join()` waits"),
    "slept for": ("", ONE_WORKER.format("target=work") + "time.sleep(1)\n    worker.join()", "`time.sleep()` waits"),
    "joined, a daemon": ("", ONE_WORKER.format("target=work, daemon=True") + "worker.join()", ""),
    "not joined, a daemon": ("", ONE_WORKER.format("target=work, daemon=True") + "pass", "nothing waits"),
    "its name": ("", ONE_WORKER.format("target=work") + "worker.join()\n    print(worker.name)", "`worker.name`"),
    "the name that it was given": (
        "", ONE_WORKER.format('target=work, name="one"') + "worker.join()\n    print(worker.name)", "",
    ),
    "its class": (
        "",
        ONE_WORKER.format("target=work") + "worker.join()\n    print(isinstance(worker, multiprocessing.Process))",
        "isinstance()",
    ),
    "a result for a time": (
        "", "with multiprocessing.Pool(1) as pool:\n        print(pool.apply_async(work, (1,)).get(5))", "waits for",
    ),
    "a result": ("", "with multiprocessing.Pool(1) as pool:\n        print(pool.apply_async(work, (1,)).get())", ""),
    "what is done at the end": (
        "import atexit\n\natexit.register(print, 'end')\n", ONE_WORKER.format("target=work") + "worker.join()", "atex",
    ),
    "a lock that nothing else holds": (
        "", ONE_WORKER.format("target=work, args=(multiprocessing.Lock(),)") + "worker.join()", "only the arguments",
    ),
    "a lock": (
        "",
        "lock = multiprocessing.Lock()\n    " + ONE_WORKER.format("target=work, args=(lock,)") + "worker.join()",
        "",
    ),
    "a sentinel that loses its arguments": (
        "class Bad(Exception):\n    def __init__(self, a, b):\n        super().__init__(a)\n",
        ONE_WORKER.format("target=work, args=(Bad(1, 2),)") + "worker.join()",
        "Bad, whose methods run before",
    ),
    "an object that asks another": (
        "class Proxy:\n    def __init__(self):\n        self.inner = 1\n\n    def __getattr__(self, name):\n"
        "        return getattr(self.inner, name)\n",
        ONE_WORKER.format("target=work, args=(Proxy(),)") + "worker.join()",
        "Proxy, whose methods run before",
    ),
    "an object of a class that lost its name": (
        "class Box:\n    pass\n\n\nFirst = Box\n\n\nclass Box:\n    pass\n",
        ONE_WORKER.format("target=work, args=(First(),)") + "worker.join()",
        "Box, whose name stands for something else",
    ),
    "the method of a base": (
        "class Base:\n    def run(self):\n        work()\n\n\nclass Own(Base):\n    def run(self):\n        pass\n\n"
        "    def start(self):\n        worker = multiprocessing.Process(target=super().run)\n"
        "        worker.start()\n        worker.join()\n",
        "Own().start()",
        "run, which its object has another method by the name of",
    ),
    "arguments that grow": (
        "import sys\n\nsys.argv.append('x')\n", ONE_WORKER.format("target=work") + "worker.join()", "`sys.argv`",
    ),
    "an environment that grows": (
        "import os\n\nos.environ['A'] = os.environ.get('A', '') + 'x'\n",
        ONE_WORKER.format("target=work") + "worker.join()",
        "os.environ['A']",
    ),
    "a constant environment": (
        "import os\n\nos.environ['A'] = 'x'\n", ONE_WORKER.format("target=work") + "worker.join()", "",
    ),
    "a folder that goes up": (
        "import os\n\nos.chdir('..')\n", ONE_WORKER.format("target=work") + "worker.join()", "the working folder",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("top", "launch", "says"), WAITED.values(), ids=WAITED)
def test_how_a_worker_begins_is_waited_for_and_ends(tmp_path: Path, top: str, launch: str, says: str) -> None:
    (tmp_path / "program.py").write_text(WORKER.format(top=top, launch=launch))
    (finding,) = [f for f in Session(Config()).check([str(tmp_path / "program.py")]).findings if f.code == "CUD101"]
    assert finding.fix is not None
    assert (finding.fix.applicability is Applicability.SAFE) == (not says), finding.fix.reason
    assert says in (finding.fix.reason or "")


def test_a_program_that_is_started_as_a_package_has_no_main_module_to_import(tmp_path: Path) -> None:
    (tmp_path / "tool").mkdir()
    (tmp_path / "tool" / "__init__.py").write_text("")
    (tmp_path / "tool" / "__main__.py").write_text(
        WORKER.format(top="", launch=ONE_WORKER.format("target=work") + "worker.join()")
    )
    (finding,) = [f for f in Session(Config()).check([str(tmp_path)]).findings if f.code == "CUD101"]
    assert finding.fix is not None
    assert (finding.fix.applicability, finding.fix.edits) == (Applicability.DISPLAY, ())


@pytest.mark.parametrize("kind", ["staticmethod", "classmethod", ""])
def test_a_private_method_is_never_sent_to_a_fresh_process(tmp_path: Path, kind: str) -> None:
    decorator = f"    @{kind}\n" if kind else ""
    text = (
        f"class Runner:\n{decorator}    def __work({'' if kind == 'staticmethod' else 'me, '}n):\n        work(n)\n\n"
        "    def start(self):\n        worker = multiprocessing.Process(target=self.__work, args=(1,))\n"
        "        worker.start()\n        worker.join()\n"
    )
    (tmp_path / "program.py").write_text(WORKER.format(top=text, launch="Runner().start()"))
    (finding,) = [f for f in Session(Config()).check([str(tmp_path / "program.py")]).findings if f.code == "CUD101"]
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.DISPLAY


SETS = (
    '"".join(KINDS)', "[*KINDS]", "KINDS.copy().pop()", "dict.fromkeys(KINDS)", "sorted(KINDS, key=len)", "str(KINDS)",
    'f"{KINDS}"', "max(KINDS, key=len)", '"%s" % KINDS', "print(*KINDS)",
)  # fmt: skip


@pytest.mark.parametrize("reads", SETS)
def test_a_set_whose_order_shows(tmp_path: Path, reads: str) -> None:
    fix = project_fix(tmp_path, "pool", {"top": "KINDS = {'alpha', 'bravo'}\n", "reads": reads})
    assert "goes through a set" in (fix.reason or "")


@pytest.mark.parametrize("reads", ["len(KINDS)", "sorted(KINDS)", '"a" in KINDS', "max(KINDS)", "any(KINDS)"])
def test_a_set_whose_order_does_not_show(tmp_path: Path, reads: str) -> None:
    fix = project_fix(tmp_path, "pool", {"top": "KINDS = {'alpha', 'bravo'}\n", "reads": reads})
    assert fix.applicability is Applicability.SAFE, fix.reason


def test_workers_of_loky_keep_what_they_changed(tmp_path: Path) -> None:
    helper = "SEEN = [0]\n\n\ndef seen():\n    SEEN[0] += 1\n    return SEEN[0]\n"
    fix = project_fix(tmp_path, "joblib", {"imports": "import helper", "reads": "helper.seen()"}, helper=helper)
    assert "serve later calls too" in (fix.reason or "")


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_every_launcher_can_be_proven(tmp_path: Path, launcher: str) -> None:
    fix = project_fix(tmp_path, launcher, {})
    assert fix.applicability is Applicability.SAFE, fix.reason


# What main() does before the workers start, and what the reason has to name.
IN_LIBRARIES = {
    "tf32": ("", "torch.backends.cuda.matmul.allow_tf32 = True", "torch.backends.cuda.matmul.allow_tf32"),
    "cudnn": ("", "torch.backends.cudnn.benchmark = True", "torch.backends.cudnn.benchmark"),
    "cudnn flags": ("", "torch.backends.cudnn.set_flags(True)", "torch.backends.cudnn.set_flags()"),
    "grad mode": ("", "torch.set_grad_enabled(False)", "torch.set_grad_enabled()"),
    "default dtype": ("", "torch.set_default_dtype(torch.float64)", "torch.set_default_dtype()"),
    "matmul precision": ("", 'torch.set_float32_matmul_precision("high")', "torch.set_float32_matmul_precision()"),
    "threads": ("", "torch.set_num_threads(1)", "torch.set_num_threads()"),
    "device": ("", "torch.cuda.set_device(1)", "torch.cuda.set_device()"),
    "torch's seed": ("", "torch.manual_seed(0)", "torch.manual_seed()"),
    "safe globals": ("", "torch.serialization.add_safe_globals([Rows])", "torch.serialization.add_safe_globals()"),
    "decimal": ("import decimal", "decimal.getcontext().prec = 5", "decimal.getcontext()"),
    "numpy errors": ("import numpy", 'numpy.seterr(all="raise")', "numpy.seterr()"),
    "numpy's seed": ("import numpy as np", "np.random.seed(1)", "numpy.random.seed()"),
    "random's seed": ("import random", "random.seed(3)", "random.seed()"),
    "warnings": ("import warnings", 'warnings.simplefilter("error")', "warnings.simplefilter()"),
    "locale": ("import locale", 'locale.setlocale(locale.LC_ALL, "C")', "locale.setlocale()"),
    "logging": ("import logging", "logging.basicConfig()", "logging.basicConfig()"),
    "a handler": ("import logging", "logging.getLogger().addHandler(None)", "logging.Logger.addHandler()"),
    "a level": ("import logging\nLOG = logging.getLogger('a')", "LOG.setLevel(10)", "logging.Logger.setLevel()"),
    "standard output": ("import sys", "sys.stdout = None", "sys.stdout"),
    "a replaced function": ("import random", "random.random = work", "random.random"),
    "a name of a library": ("import math", "math.ANSWER = 3", "math.ANSWER"),
    "a builtin": ("import builtins", "builtins.LIMIT = 3", "builtins.LIMIT"),
    "the path": ("import sys", 'sys.path.insert(0, "x")', "sys.path.insert()"),
    "recursion": ("import sys", "sys.setrecursionlimit(50)", "sys.setrecursionlimit()"),
    "a signal handler": ("import signal", "signal.signal(signal.SIGTERM, work)", "signal.signal()"),
    "the environment": ("import os", 'os.environ["OMP_NUM_THREADS"] = "1"', "OMP_NUM_THREADS"),
    "faulthandler": ("import faulthandler", "faulthandler.enable()", "faulthandler.enable()"),
    "a shared library": ("import ctypes", 'ctypes.CDLL("libm.so.6")', "ctypes.CDLL()"),
    "a registered class": ("import copyreg", "copyreg.pickle(Rows, work)", "copyreg.pickle()"),
    "an unknown function": ("import vendor", "vendor.configure(precision=2)", "vendor.configure()"),
    "an unknown method": ("import vendor", "vendor.Session().open()", "vendor.Session()"),
    "an import": ("", "import vendor", "vendor"),
    "a function's attribute": ("", "work.scale = 3", "work.scale"),
    "setattr on a library": ("import math", 'setattr(math, "ANSWER", 3)', "math.ANSWER"),
    "setattr of any name": ("import sys", "setattr(Rows, sys.argv[1], 3)", "Rows"),
    "text that is run": ("", 'exec("Rows.x = 1")', "exec()"),
    "a with statement": ("", "torch.no_grad().__enter__()", "torch.no_grad"),
}


# What of that a worker has to do to feel it: others go on without.
FELT = {
    "cudnn": "torch.backends.cudnn.benchmark",
    "torch's seed": "torch.rand(1).item()",
    "numpy's seed": "np.random.rand()",
    "random's seed": "random.random()",
    "logging": "logging.getLogger('a').info(n)",
    "a handler": "len(logging.root.handlers)",
    "a level": "LOG.level",
}


@pytest.mark.parametrize("kind", IN_LIBRARIES)
def test_what_a_library_keeps_for_the_process_is_not_safe_and_named(tmp_path: Path, kind: str) -> None:
    imports, before, named = IN_LIBRARIES[kind]
    fix = project_fix(tmp_path, "pool", {"imports": imports, "before": before, "reads": FELT.get(kind, "n")})
    assert fix.applicability is Applicability.UNSAFE
    assert f"`{named}`" in (fix.reason or "") or named in (fix.reason or "")


@pytest.mark.parametrize("kind", FELT)
def test_what_no_worker_feels_is_safe(tmp_path: Path, kind: str) -> None:
    imports, before, _ = IN_LIBRARIES[kind]
    assert project_fix(tmp_path, "pool", {"imports": imports, "before": before}).applicability is Applicability.SAFE


@pytest.mark.parametrize("launcher", [name for name in LAUNCHERS if name != "pool"])
@pytest.mark.parametrize("kind", ["tf32", "torch's seed", "standard output", "an unknown function"])
def test_what_a_library_keeps_matters_to_every_launcher(tmp_path: Path, launcher: str, kind: str) -> None:
    imports, before, named = IN_LIBRARIES[kind]
    fix = project_fix(tmp_path, launcher, {"imports": imports, "before": before, "reads": FELT.get(kind, "n")})
    if (launcher, kind) == ("loader", "torch's seed"):
        # Each worker of a loader is seeded with a number that its parent drew.
        assert fix.applicability is Applicability.SAFE
        return
    assert fix.applicability is Applicability.UNSAFE
    assert named in (fix.reason or "")


CFG = "class Cfg:\n    scale = 1\n\n"
# The top of the module, what main() does, what the worker reads, and what the reason has to name.
IN_THE_PROGRAM = {
    "a class attribute": (CFG, "Cfg.scale = 5", "Cfg.scale", "Cfg.scale"),
    "a new class attribute": (CFG, "Cfg.extra = 5", 'getattr(Cfg, "extra", 1)', "Cfg.extra"),
    "a class attribute by setattr": (CFG, 'setattr(Cfg, "scale", 5)', "Cfg.scale", "Cfg.scale"),
    "a class attribute that is deleted": (CFG, "del Cfg.scale", "Cfg.scale", "Cfg"),
    "a class method": (
        "class Cfg:\n    scale = 1\n\n    @classmethod\n    def use(cls, n):\n        cls.scale = n\n\n",
        "Cfg.use(5)",
        "Cfg.scale",
        "Cfg.scale",
    ),
    "a mixin's attribute": (CFG + "class Own(Cfg):\n    pass\n\n", "Cfg.scale = 5", "Own.scale", "scale"),
    "an options object": (
        "class Options:\n    def __init__(self):\n        self.scale = 1\n\n\nOPTIONS = Options()\n",
        "OPTIONS.scale = 5",
        "OPTIONS.scale",
        "OPTIONS.scale",
    ),
    "an object in an object": (
        "class Node:\n    def __init__(self, inner):\n        self.inner = inner\n\n\nTREE = Node(Node(1))\n",
        "TREE.inner.inner = 5",
        "TREE.inner.inner",
        "TREE.inner.inner",
    ),
    "a method of an options object": (
        "class Options:\n    scale = 1\n\n    def use(self, n):\n        self.scale = n\n\n\nOPTIONS = Options()\n",
        "OPTIONS.use(5)",
        "OPTIONS.scale",
        "OPTIONS",
    ),
    "a dataclass": (
        "from dataclasses import dataclass\n\n\n@dataclass\nclass Options:\n    scale: int = 1\n\n\n"
        "OPTIONS = Options()\n",
        "OPTIONS.scale = 5",
        "OPTIONS.scale",
        "OPTIONS.scale",
    ),
    "what a metaclass is asked": (
        "class Meta(type):\n    asked = 1\n\n    def __len__(cls):\n        Meta.asked = 5\n        return 1\n\n\n"
        "class Cfg(metaclass=Meta):\n    pass\n\n",
        "len(Cfg)",
        "Meta.asked",
        "Meta.asked",
    ),
    "a class with an index": (
        "class Cfg:\n    scale = 1\n\n    def __class_getitem__(cls, n):\n        Cfg.scale = n\n\n",
        "Cfg[5]",
        "Cfg.scale",
        "Cfg.scale",
    ),
    "an exception that is raised by its class": (
        CFG + "class Bad(Exception):\n    def __init__(self):\n        Cfg.scale = 5\n\n",
        "try:\n        raise Bad\n    except Bad:\n        pass",
        "Cfg.scale",
        "Cfg.scale",
    ),
    "what a pattern asks": (
        CFG + "class Point:\n    @property\n    def x(self):\n        Cfg.scale = 5\n        return 1\n\n",
        "match Point():\n        case Point(x=1):\n            pass",
        "Cfg.scale",
        "Cfg.scale",
    ),
    "a class that a call makes": (
        CFG + "class Base:\n    def __init_subclass__(cls):\n        Cfg.scale = 5\n\n",
        "type('Own', (Base,), {})",
        "Cfg.scale",
        "type",
    ),
    "what a record does when it is made": (
        "import dataclasses\n" + CFG + "@dataclasses.dataclass\nclass Row:\n    def __post_init__(self):\n"
        "        Cfg.scale = 5\n\n",
        "Row()",
        "Cfg.scale",
        "Cfg.scale",
    ),
    "what a metaclass prepares": (
        CFG + "class Meta(type):\n    @classmethod\n    def __prepare__(cls, name, bases):\n        Cfg.scale = 5\n"
        "        return {}\n\n",
        "class Own(metaclass=Meta):\n        pass",
        "Cfg.scale",
        "Cfg.scale",
    ),
    "the value of a member": (
        "import enum\n\n\nclass Kind(enum.Enum):\n    A = [1]\n\n",
        "Kind.A.value.append(2)",
        "len(Kind.A.value)",
        "Kind.A.value",
    ),
    "a name in a comprehension": ("LAST = 1\n", "global LAST\n    [LAST := n for n in [5]]", "LAST", "LAST"),
    "an item": ("SIZES = {'a': 1}\n", "SIZES['a'] = 5", "SIZES['a']", "SIZES['a']"),
    "an item by update": ("SIZES = {'a': 1}\n", "SIZES.update(a=5)", "SIZES['a']", "SIZES['a']"),
    "an item of a nested dict": ("SIZES = {'a': {'b': 1}}\n", "SIZES['a']['b'] = 5", "SIZES['a']['b']", "SIZES"),
    "a list that is sorted": ("NAMES = [3, 1]\n", "NAMES.sort()", "NAMES[0]", "NAMES"),
    "a list from which something is taken": ("NAMES = [3, 1]\n", "NAMES.pop()", "len(NAMES)", "NAMES"),
    "a list without an item": ("NAMES = [3, 1]\n", "del NAMES[0]", "NAMES[0]", "NAMES"),
    "a list through an alias": ("NAMES = [3, 1]\n", "names = NAMES\n    names.append(2)", "len(NAMES)", "NAMES"),
    "a list through an argument": (
        "NAMES = [3, 1]\n\n\ndef fill(names):\n    names.append(2)\n\n",
        "fill(NAMES)",
        "len(NAMES)",
        "NAMES",
    ),
    "a default argument": (
        "def count(seen=[]):\n    seen.append(1)\n    return len(seen)\n\n",
        "count()",
        "count()",
        "count",
    ),
    "a function that is replaced": (
        "def one():\n    return 1\n\n\ndef two():\n    return 2\n\n\nclass Cfg:\n    pick = one\n\n",
        "Cfg.pick = two",
        "Cfg.pick()",
        "Cfg.pick",
    ),
    "a cache that is filled": (
        "import functools\n\n\n@functools.lru_cache\ndef table(n):\n    return [n]\n\n",
        "table(1).append(2)",
        "table(1)",
        "table",
    ),
    "a closure": (
        "def counter():\n    n = 0\n\n    def up():\n        nonlocal n\n        n += 1\n        return n\n\n"
        "    return up\n\n\n"
        "UP = counter()\n",
        "UP()",
        "UP()",
        "UP",
    ),
    "a loop": (
        "class Cfg:\n    scale = 0\n\n",
        "for n in range(3):\n        Cfg.scale = (Cfg.scale + 1) % 2",
        "Cfg.scale",
        "Cfg",
    ),
    "a handler of an exception": (
        CFG,
        "try:\n        int(input())\n    except ValueError:\n        Cfg.scale = 5",
        "Cfg.scale",
        "Cfg.scale",
    ),
    "a condition": (CFG, "import sys\n    if len(sys.argv) > 1:\n        Cfg.scale = 5", "Cfg.scale", "Cfg.scale"),
    "a callback of a library": (
        CFG + "def change(n):\n    Cfg.scale = n\n    return n\n\n",
        "sorted([1, 2], key=change)",
        "Cfg.scale",
        "Cfg.scale",
    ),
    "an operator": (
        CFG + "class Step:\n    def __rshift__(self, n):\n        Cfg.scale = n\n\n",
        "Step() >> 5",
        "Cfg.scale",
        "Cfg.scale",
    ),
    "a function that nobody would follow": (
        CFG
        + "def report(rows):\n"
        + "".join(f"    rows = [row + {i} for row in rows if row != {i}]\n" for i in range(20))
        + "    Cfg.scale = 5\n    return rows\n\n",
        "report([1, 2])",
        "Cfg.scale",
        "Cfg.scale",
    ),
    "an operator of an object at the top": (
        CFG + "class Step:\n    def __rshift__(self, n):\n        Cfg.scale = n\n\n\nSTEP = Step()\n",
        "STEP >> 5",
        "Cfg.scale",
        "Cfg.scale",
    ),
    "a descriptor": (
        "STORE = {'a': 1}\n\n\nclass Field:\n    def __set__(self, owner, value):\n        STORE['a'] = value\n\n\n"
        "class Options:\n    scale = Field()\n\n\nOPTIONS = Options()\n",
        "OPTIONS.scale = 5",
        "STORE['a']",
        "STORE['a']",
    ),
    "a set changed through an alias": ("NAMES = {1, 2}\n", "names = NAMES\n    names |= {3}", "len(NAMES)", "NAMES"),
    "a generator that has not ended": (
        CFG + "def scaled():\n    Cfg.scale = 5\n    yield 1\n    Cfg.scale = 1\n\n",
        "rows = scaled()\n    next(rows)",
        "Cfg.scale",
        "Cfg",
    ),
    "a manager that is not left": (
        "import contextlib\n\n" + CFG + "@contextlib.contextmanager\ndef scaled():\n    Cfg.scale = 5\n    yield\n"
        "    Cfg.scale = 1\n\n",
        "contextlib.ExitStack().enter_context(scaled())",
        "Cfg.scale",
        "enter_context()",
    ),
    "a thread": (
        "import threading\n\n" + CFG + "def change():\n    Cfg.scale = 5\n\n",
        "threading.Thread(target=change).start()",
        "Cfg.scale",
        "Cfg",
    ),
    "a coroutine that is awaited later": (
        "import asyncio\n\n" + CFG + "async def change():\n    Cfg.scale = 5\n\n\n"
        "async def both():\n    later = change()\n    Cfg.scale = 1\n    await later\n\n",
        "asyncio.run(both())",
        "Cfg.scale",
        "Cfg",
    ),
    "a branch on the name": ("SCALE = 1\nif __name__ != '__main__':\n    SCALE = 2\n", "pass", "SCALE", "SCALE"),
    "a variable among globals()": ("SCALE = 1\n", 'globals()["SCALE"] = 2', "SCALE", "SCALE"),
    "a name among globals() that is not known": ("SCALE = 1\n", "globals()[input()] = 2", "SCALE", "SCALE"),
    "a branch on the process": (
        "SCALE = 1\nif multiprocessing.current_process().name == 'MainProcess':\n    SCALE = 2\n",
        "pass",
        "SCALE",
        "SCALE",
    ),
    "a time": ("import time\n\nBEGAN = time.time()\n", "pass", "BEGAN", "BEGAN"),
    "weights at random": ("NET = torch.nn.Linear(2, 2)\n", "pass", "NET(torch.ones(2)).sum().item()", "NET"),
    "the order of a set": (
        "PLACES = {word: n for n, word in enumerate({'a', 'b'})}\n",
        "pass",
        "PLACES['a']",
        "goes through a set",
    ),
    "the order of a set in the worker": ("WORDS = {'a', 'b'}\n", "pass", "len([w for w in WORDS][0])", "WORDS"),
    "a callback of a library in the worker": (
        "import scipy.optimize\n\n" + CFG + "def loss(x):\n    return x * Cfg.scale\n\n",
        "Cfg.scale = 5",
        "scipy.optimize.minimize(loss, 0).fun",
        "Cfg.scale",
    ),
    "a file that is read at the top": (
        "from pathlib import Path\n\nTEXT = Path('a.txt').read_text()\n",
        "Path('a.txt').write_text('other')",
        "len(TEXT)",
        "TEXT",
    ),
    "a folder that is looked for at the top": (
        "import os\n\nFOUND = os.path.exists('a.txt')\n",
        "open('a.txt', 'w').close()",
        "FOUND",
        "FOUND",
    ),
    "a tensor": ("TABLE = torch.zeros(2)\n", "TABLE[0] = 5", "TABLE[0].item()", "TABLE"),
    "an array": ("import numpy as np\n\nTABLE = np.zeros(2)\n", "TABLE[0] = 5", "TABLE[0]", "TABLE"),
    "an open file": ("LOG = open('log')\n", "pass", "len(LOG.read())", "LOG"),
    "a generator": ("SIZES = (n for n in (1, 2))\n", "next(SIZES)", "next(SIZES)", "SIZES"),
    "an iterator": ("SIZES = iter([1, 2])\n", "next(SIZES)", "next(SIZES)", "SIZES"),
    "pairs that are used up": ("SIZES = zip([1], [2])\n", "print(list(SIZES))", "len(list(SIZES))", "SIZES"),
    "the name of the module": ("", "pass", "len(__name__)", "__name__"),
    "whatever there is": ("", "pass", "len(globals())", "globals()"),
    "the hash of a text": ("", "pass", "hash('a')", "hash()"),
}


@pytest.mark.parametrize(("top", "before", "reads", "named"), IN_THE_PROGRAM.values(), ids=IN_THE_PROGRAM)
def test_what_the_program_changes_and_a_worker_reads_is_not_safe_and_named(
    tmp_path: Path, top: str, before: str, reads: str, named: str
) -> None:
    fix = project_fix(tmp_path, "pool", {"top": top, "before": before, "reads": reads})
    assert fix.applicability is Applicability.UNSAFE
    assert named in (fix.reason or "")


@pytest.mark.parametrize("launcher", [name for name in LAUNCHERS if name not in ("pool", "joblib")])
@pytest.mark.parametrize("kind", ["a class attribute", "an options object", "an item"])
def test_what_the_program_changes_matters_to_every_launcher(tmp_path: Path, launcher: str, kind: str) -> None:
    top, before, reads, named = IN_THE_PROGRAM[kind]
    fix = project_fix(tmp_path, launcher, {"top": top, "before": before, "reads": reads})
    assert fix.applicability is Applicability.UNSAFE
    assert named in (fix.reason or "")


# Files beside the program, its imports, what main() does, what the worker reads, and what the reason has to name.
SETTINGS = {"settings": "SCALE = 1\n\n\nclass Options:\n    scale = 1\n\n\nREGISTRY = {}\n"}
IN_MODULES = {
    "a module's variable": (SETTINGS, "import settings", "settings.SCALE = 5", "settings.SCALE", "settings.SCALE"),
    "a module's new variable": (
        SETTINGS,
        "import settings",
        "settings.EXTRA = 5",
        'getattr(settings, "EXTRA", 1)',
        "settings.EXTRA",
    ),
    "an options class": (
        SETTINGS,
        "from settings import Options",
        "Options.scale = 5",
        "Options.scale",
        "Options.scale",
    ),
    "a registry that main fills": (
        SETTINGS,
        "from settings import REGISTRY",
        "REGISTRY['a'] = 5",
        "REGISTRY.get('a', 1)",
        "REGISTRY",
    ),
    "a module's function that changes it": (
        {"settings": "SCALE = 1\n\n\ndef use(n):\n    global SCALE\n    SCALE = n\n"},
        "import settings",
        "settings.use(5)",
        "settings.SCALE",
        "settings.SCALE",
    ),
    "what another module computes from it": (
        {"settings": "SCALE = 1\n", "scaling": "import settings\n\n\ndef scale():\n    return settings.SCALE\n"},
        "import scaling\nimport settings",
        "settings.SCALE = 5",
        "scaling.scale()",
        "settings.SCALE",
    ),
    "a module that prints when it is imported": (
        {"helper": "print('loading')\n\nSCALE = 1\n"},
        "import helper",
        "pass",
        "helper.SCALE",
        "top of `helper` does work",
    ),
    "a module that sets something when main() imports it": (
        {"helper": "import torch\n\ntorch.set_default_dtype(torch.float64)\n"},
        "",
        "import helper\n    print(helper)",
        "n",
        "torch.set_default_dtype()",
    ),
}


@pytest.mark.parametrize(("files", "imports", "before", "reads", "named"), IN_MODULES.values(), ids=IN_MODULES)
def test_what_other_modules_hold_is_not_safe_and_named(
    tmp_path: Path, files: dict[str, str], imports: str, before: str, reads: str, named: str
) -> None:
    fix = project_fix(tmp_path, "pool", {"imports": imports, "before": before, "reads": reads}, **files)
    assert fix.applicability is Applicability.UNSAFE
    assert named in (fix.reason or "")


@pytest.mark.parametrize(
    ("imports", "before", "reads"),
    [("from settings import REGISTRY", "REGISTRY['a'] = 5", "REGISTRY['a']")],
)
def test_a_worker_that_would_certainly_lack_something_is_not_started_afresh(
    tmp_path: Path, imports: str, before: str, reads: str
) -> None:
    fix = project_fix(tmp_path, "pool", {"imports": imports, "before": before, "reads": reads}, **SETTINGS)
    assert fix.applicability is Applicability.DISPLAY


# The imports, the top of the module, what main() does, and what the worker reads.
LOOK_ALIKES = {
    "a constant": ("", "SCALE = 4\n", "pass", "SCALE"),
    "a constant beside what globals() is given": ("", "SCALE = 4\n", "globals()['OTHER'] = 2", "SCALE"),
    "a constant of another module": ("import settings", "", "print(settings.SCALE)", "settings.SCALE"),
    "a class attribute that nobody changes": ("", CFG, "print(Cfg.scale)", "Cfg.scale"),
    "a class attribute that its module sets": ("", CFG + "Cfg.scale = 5\n", "pass", "Cfg.scale"),
    "a registry that its module fills": ("", "SIZES = {}\nSIZES['a'] = 5\n", "pass", "SIZES['a']"),
    "another class is changed": ("", CFG + "class Other:\n    scale = 1\n\n", "Other.scale = 5", "Cfg.scale"),
    "another module is changed": ("import settings", CFG, "settings.SCALE = 5", "Cfg.scale"),
    "a path beside the module": (
        "import os",
        "DATA = os.path.join(os.path.dirname(__file__), 'data')\n",
        "print(DATA)",
        "len(DATA)",
    ),
    "a path of pathlib": (
        "from pathlib import Path",
        "DATA = Path(__file__).resolve().parent / 'data'\n",
        "pass",
        "len(DATA.name)",
    ),
    "a compiled expression": ("import re", "WORD = re.compile('a+')\n", "pass", "len(WORD.findall('aa'))"),
    "a logger": ("import logging", "", "logging.info('starting')", "n"),
    "prints and timing": ("import time", "", "began = time.time()\n    print('start', began)", "n"),
    "a list of its own": ("", "", "rows = [1]\n    rows.append(2)\n    rows.sort()\n    print(rows)", "n"),
    "an array of its own": ("import numpy as np", "", "rows = np.zeros(2)\n    rows[0] = 1\n    print(rows)", "n"),
    "arithmetic": ("import math", "HALF = math.pi / 2\n", "print(math.sqrt(2))", "math.floor(2.5)"),
    "a setting of the module's top": ("", "torch.backends.cuda.matmul.allow_tf32 = True\n", "pass", "n"),
    "a with statement that ends": ("", "", "with torch.no_grad():\n        print('scored')", "n"),
    "a decorated function that ends": (
        "",
        "@torch.no_grad()\ndef score():\n    return 1\n\n",
        "print(score())",
        "n",
    ),
    "an empty cache": (
        "import functools",
        "@functools.lru_cache\ndef table(n):\n    return n\n\n",
        "pass",
        "table(1)",
    ),
    "an enum": (
        "import enum",
        "class Kind(enum.Enum):\n    A = 1\n    B = 2\n\n",
        "print(Kind.A)",
        "(1 if Kind.A is Kind.B else 2)",
    ),
    "a record": (
        "from typing import NamedTuple",
        "class Size(NamedTuple):\n    rows: int = 2\n\n\nSIZE = Size()\n",
        "pass",
        "SIZE.rows",
    ),
    "random numbers without a seed": ("import random", "", "print(random.random())", "n"),
    "files": ("import json", "", "with open('a.json') as file:\n        print(json.load(file))", "n"),
}


@pytest.mark.parametrize(("imports", "top", "before", "reads"), LOOK_ALIKES.values(), ids=LOOK_ALIKES)
def test_what_does_not_differ_stays_safe(tmp_path: Path, imports: str, top: str, before: str, reads: str) -> None:
    parts = {"imports": imports, "top": top, "before": before, "reads": reads}
    fix = project_fix(tmp_path, "pool", parts, **SETTINGS)
    assert fix.applicability is Applicability.SAFE, fix.reason


# The imports, the top of the module and what main() does: what a process that is spawned gets from its parent.
HANDED = {
    "the mask of files": ("import os", "", "os.umask(0)", "os.umask()"),
    "the folder": ("import os", "", 'os.chdir("/")', "os.chdir()"),
    "the end of the path": ("import sys", "", 'sys.path.append("/plugins")', "sys.path.append()"),
    "a variable": ("import os", "", 'os.environ["RUN_NAME"] = "a"', "RUN_NAME"),
    "variables": ("import os", "", 'os.environ.update(RUN_NAME="a", RUN_ID="b")', "RUN_ID"),
}


@pytest.mark.parametrize(("imports", "top", "before", "named"), HANDED.values(), ids=HANDED)
def test_what_a_spawned_process_is_given_by_its_parent_stays_safe(
    tmp_path: Path, imports: str, top: str, before: str, named: str
) -> None:
    parts = {"imports": imports, "top": top, "before": before}
    for launcher in ("pool", "executor", "process", "loader"):
        fix = project_fix(tmp_path, launcher, parts)
        assert fix.applicability is Applicability.SAFE, (launcher, fix.reason)
    fix = project_fix(tmp_path, "joblib", parts)
    assert fix.applicability is Applicability.UNSAFE
    assert named in (fix.reason or "")


# The same where the imports of a fresh process find another thing than those of its parent.
NOTICED = {
    "a folder that a module looks at": ("import os", "ROOT = os.getcwd()\n", 'os.chdir("/")', "os.chdir()"),
    "a folder in an absolute path": ("import os", 'ROOT = os.path.abspath("a")\n', 'os.chdir("/")', "os.chdir()"),
    "a file of a relative path": ("import os", 'WORDS = open("words").read()\n', 'os.chdir("/")', "os.chdir()"),
    "a relative folder of modules": ("import os, sys", 'sys.path.insert(0, "lib")\n', 'os.chdir("/")', "os.chdir()"),
    "a module that may be missing": (
        "import sys",
        "try:\n    import plugin\nexcept ImportError:\n    plugin = None\n",
        'sys.path.append("/plugins")',
        "sys.path.append()",
    ),
    "the beginning of the path": ("import sys", "", 'sys.path.insert(0, "/plugins")', "sys.path.insert()"),
    "a variable of a library": ("import os", "", 'os.environ["NUMPY_MADVISE_HUGEPAGE"] = "0"', "NUMPY_MADVISE"),
    "a library that may read any": ("import os\nimport vendor", "", 'os.environ["RUN_NAME"] = "a"', "RUN_NAME"),
    "a variable that a module reads": (
        "import os",
        'NAME = os.environ.get("RUN_NAME", "b")\n',
        'os.environ["RUN_NAME"] = "a"',
        "NAME",
    ),
    "a variable that is gone": (
        "import os",
        'NAME = os.getenv("RUN_NAME")\n',
        'del os.environ["RUN_NAME"]',
        "RUN_NAME",
    ),
    "a variable of any name": ("import os, sys", "", 'os.environ[sys.argv[1]] = "a"', "os.environ"),
    "one of several variables": (
        "import os",
        "",
        'for name in ("RUN_NAME", "OMP_NUM_THREADS"):\n        os.environ[name] = "1"',
        "os.environ",
    ),
}


@pytest.mark.parametrize(("imports", "top", "before", "named"), NOTICED.values(), ids=NOTICED)
def test_what_the_imports_of_a_spawned_process_notice_is_not_safe(
    tmp_path: Path, imports: str, top: str, before: str, named: str
) -> None:
    reads = "len(NAME)" if "NAME =" in top else "n"
    fix = project_fix(tmp_path, "pool", {"imports": imports, "top": top, "before": before, "reads": reads})
    assert fix.applicability is Applicability.UNSAFE
    assert named in (fix.reason or "")


def test_an_executor_hands_later_workers_what_is_there_by_then(tmp_path: Path) -> None:
    """It starts them when there is work for them; a forking one starts all at once."""
    text = (
        "import os\nfrom concurrent.futures import ProcessPoolExecutor\n\nimport torch\n\n\ndef work(n):\n"
        "    return torch.ones(n, device='cuda').sum().item()\n\n\nif __name__ == '__main__':\n"
        "    torch.zeros(1, device='cuda')\n    pool = ProcessPoolExecutor(2)\n{first}"
        "    os.umask(0)\n    print(pool.submit(work, 2).result())\n"
    )
    levels = []
    for first in ("", "    done = pool.submit(len, [1])\n"):
        (tmp_path / "program.py").write_text(text.format(first=first))
        (finding,) = [f for f in Session(Config()).check([str(tmp_path / "program.py")]).findings if f.code == "CUD101"]
        assert finding.fix is not None
        levels.append(finding.fix.applicability)
    assert levels == [Applicability.SAFE, Applicability.UNSAFE]


# What a program sets before it hands tasks in it means for them, whatever workers that run already know of it; what it
# asks of its own process is another matter, unless workers begin later.
@pytest.mark.parametrize(
    ("change", "options", "level"),
    [
        ("Cfg.scale = 5", "", Applicability.UNSAFE),
        ("Cfg.scale = 5", ", maxtasksperchild=1", Applicability.UNSAFE),
        ("torch.set_num_threads(1)", "", Applicability.SAFE),
        ("torch.set_num_threads(1)", ", maxtasksperchild=1", Applicability.UNSAFE),
    ],
)
def test_what_comes_after_a_pool_was_made_counts(
    tmp_path: Path, change: str, options: str, level: Applicability
) -> None:
    text = (
        f"import multiprocessing\n\nimport torch\n\n\n{CFG}\ndef work(n):\n"
        "    return torch.ones(n, device='cuda').sum().item() * Cfg.scale\n\n\nif __name__ == '__main__':\n"
        f"    torch.zeros(1, device='cuda')\n    pool = multiprocessing.Pool(1{options})\n"
        f"    {change}\n    print(pool.map(work, [1, 2]))\n"
    )
    (tmp_path / "program.py").write_text(text)
    (finding,) = Session(Config()).check([str(tmp_path / "program.py")]).findings
    assert finding.fix is not None
    assert finding.fix.applicability is level, finding.fix.reason


OUTLIVED = """\
import multiprocessing
import threading

import torch


class Loud:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False


class Quiet(Loud):
    def __init__(self, quiet):
        self.quiet = quiet

    def __exit__(self, *error):
        if error:
            return self.quiet


def go(pool):
    print(pool.map(work, [1]))


def work(n):
    return torch.ones(n, device="cuda").sum().item()


def main():
    torch.zeros(1, device="cuda")
    with multiprocessing.Pool(1) as pool:
        {launch}
        print("done")


if __name__ == "__main__":
    main()
"""
HANDLERS = {
    "a manager swallows it": ("with Quiet(True):\n            print(pool.map(work, [1]))", False),
    "a manager lets it through": ("with Loud():\n            print(pool.map(work, [1]))", True),
    "a thread ends with it": (
        "thread = threading.Thread(target=pool.map, args=(work, [1]))\n        thread.start()\n        thread.join()",
        False,
    ),
    "a function of a thread ends with it": ("threading.Thread(target=go, args=(pool,)).start()", False),
    "nothing takes the result": ("pool.apply_async(work, (1,))", False),
    "nothing waits for the promise": (
        "promise = pool.map_async(work, [1])\n        pool.close()\n        print(promise.ready())",
        False,
    ),
    "nothing goes through it": ("rows = pool.imap(work, [1])\n        pool.close()", False),
    "what takes the result catches": (
        "promise = pool.apply_async(work, (1,))\n        try:\n            print(promise.get())\n"
        "        except Exception:\n            pass",
        False,
    ),
    "what goes through it catches": (
        "rows = pool.imap(work, [1])\n        try:\n            print(list(rows))\n"
        "        except Exception:\n            pass",
        False,
    ),
    "a promise is kept": ("promise = pool.apply_async(work, (1,))\n        print(promise.get())", True),
    "all is gone through": ("for row in pool.imap(work, [1]):\n            print(row)", True),
    "it is asked whether it failed": (
        "promise = pool.apply_async(work, (1,))\n        promise.wait()\n"
        "        print(promise.get() if promise.successful() else None)",
        False,
    ),
    "what is returned at the end ends it": (
        "try:\n            print(pool.map(work, [1]))\n        finally:\n            return None",
        False,
    ),
    "it goes on": ("try:\n            print(pool.map(work, [1]))\n        except Exception:\n            pass", False),
    "it raises at times": (
        "try:\n            print(pool.map(work, [1]))\n        except RuntimeError:\n"
        "            if len(pool._cache):\n                raise",
        False,
    ),
    "it gives something else": (
        "try:\n            return pool.map(work, [1])\n        except RuntimeError:\n            return None",
        False,
    ),
    "it is suppressed": (
        "import contextlib\n        with contextlib.suppress(Exception):\n            print(pool.map(work, [1]))",
        False,
    ),
    "it raises again": ("try:\n            pool.map(work, [1])\n        except Exception:\n            raise", True),
    "it raises another": (
        "try:\n            pool.map(work, [1])\n        except Exception as error:\n"
        "            raise SystemError from error",
        True,
    ),
    "it waits for others": (
        "try:\n            print(pool.map(work, [1]))\n        except ValueError:\n            pass",
        True,
    ),
}


@pytest.mark.parametrize(("launch", "safe"), HANDLERS.values(), ids=HANDLERS)
def test_a_program_that_survives_its_workers_is_never_repaired_unasked(tmp_path: Path, launch: str, safe: bool) -> None:
    (tmp_path / "program.py").write_text(OUTLIVED.format(launch=launch))
    (finding,) = Session(Config()).check([str(tmp_path / "program.py")]).findings
    assert finding.fix is not None
    assert (finding.fix.applicability is Applicability.SAFE) == safe, finding.fix.reason
    assert safe or re.search("may work as it is|may go on without", finding.fix.reason or "")


# What the worker does, and whether the program fails with it.
IN_WORKERS = {
    "what is returned at the end ends it": (
        "try:\n        return torch.ones(n, device='cuda').sum().item()\n    finally:\n        return -1",
        False,
    ),
    "what is returned at the end at times ends it": (
        "try:\n        return torch.ones(n, device='cuda').sum().item()\n"
        "    finally:\n        if n:\n            return -1",
        False,
    ),
    "a manager swallows it": (
        "with Quiet():\n        return torch.ones(n, device='cuda').sum().item()\n    return -1",
        False,
    ),
    "a manager lets it through": (
        "with Loud():\n        return torch.ones(n, device='cuda').sum().item()\n    return -1",
        True,
    ),
    "something is done at the end": (
        "try:\n        return torch.ones(n, device='cuda').sum().item()\n    finally:\n        n += 1",
        True,
    ),
}


@pytest.mark.parametrize(("body", "safe"), IN_WORKERS.values(), ids=IN_WORKERS)
def test_a_worker_that_survives_its_failure_is_never_repaired_unasked(tmp_path: Path, body: str, safe: bool) -> None:
    text = (
        "import multiprocessing\n\nimport torch\n\n\nclass Loud:\n    def __enter__(self):\n        pass\n\n"
        "    def __exit__(self, *error):\n        return None\n\n\nclass Quiet(Loud):\n"
        "    def __exit__(self, *error):\n        return True\n\n\n"
        f"def work(n):\n    {body}\n\n\nif __name__ == '__main__':\n    torch.zeros(1, device='cuda')\n"
        "    with multiprocessing.Pool(1) as pool:\n        print(pool.map(work, [1]))\n"
    )
    (tmp_path / "program.py").write_text(text)
    fixes = [f.fix for f in Session(Config()).check([str(tmp_path / "program.py")]).findings if f.fix is not None]
    assert any(fix.applicability is Applicability.SAFE for fix in fixes) == safe


# What the program does when its process has ended, and whether it fails with that.
BY_EXIT_CODE = {
    "it is shown": ("print(worker.exitcode)", True),
    "the program ends": ("if worker.exitcode != 0:\n        sys.exit(1)", True),
    "the program raises": ("if worker.exitcode:\n        raise RuntimeError('failed')", True),
    "the program goes on": ("if worker.exitcode != 0:\n        print('on the CPU')", False),
    "it is one of two texts": ("print('bad' if worker.exitcode else 'good')", False),
}


@pytest.mark.parametrize(("after", "safe"), BY_EXIT_CODE.values(), ids=BY_EXIT_CODE)
def test_a_program_that_asks_how_its_process_ended_may_go_on(tmp_path: Path, after: str, safe: bool) -> None:
    text = (
        "import multiprocessing\nimport sys\n\nimport torch\n\n\ndef work(n):\n    torch.ones(n, device='cuda')\n\n\n"
        "if __name__ == '__main__':\n    torch.zeros(1, device='cuda')\n"
        "    worker = multiprocessing.Process(target=work, args=(1,))\n    worker.start()\n    worker.join()\n"
        f"    {after}\n"
    )
    (tmp_path / "program.py").write_text(text)
    (finding,) = [f for f in Session(Config()).check([str(tmp_path / "program.py")]).findings if f.code == "CUD101"]
    assert finding.fix is not None
    assert (finding.fix.applicability is Applicability.SAFE) == safe, finding.fix.reason


# The top of the module, and what the worker reads of it.
UNCARRIED = {
    "a function with a cache": ("import functools\n\n\n@functools.lru_cache\ndef size():\n    return 1\n\n", "size()"),
    "a context variable": ("import contextvars\nSIZE = contextvars.ContextVar('size', default=1)\n", "SIZE.get()"),
    "a lock": ("import threading\nLOCK = threading.Lock()\n", "LOCK.locked()"),
    "a generator": ("SIZES = (n for n in (1, 2))\n", "next(SIZES)"),
    "a lock of processes": ("import multiprocessing\nLOCK = multiprocessing.Lock()\n", "LOCK is not None"),
    "a shared number": ("import multiprocessing\nSIZE = multiprocessing.Value('i', 1)\n", "SIZE.value"),
    "a queue of an object": (
        "import multiprocessing\n\n\nclass Rows:\n    def __init__(self):\n"
        "        self.queue = multiprocessing.Queue()\n\n\nROWS = Rows()\n",
        "ROWS.queue is not None",
    ),
    "matches": ("import re\nFOUND = re.finditer('.', 'abc')\n", "next(FOUND)"),
    "a property that is kept": (
        "import functools\n\n\nclass Kept:\n    @functools.cached_property\n    def size(self):\n"
        "        return 1\n\n\nKEPT = Kept()\n",
        "KEPT.size",
    ),
    "a function for each type": (
        "import functools\n\n\n@functools.singledispatch\ndef size(of):\n    return 1\n\n",
        "size(1)",
    ),
    "what another function reads": (
        "import threading\nLOCAL = threading.local()\n\n\ndef size():\n    return LOCAL.size\n\n",
        "size()",
    ),
}


@pytest.mark.parametrize(("top", "reads"), UNCARRIED.values(), ids=UNCARRIED)
def test_loky_is_not_proposed_where_cloudpickle_cannot_carry_what_is_read(tmp_path: Path, top: str, reads: str) -> None:
    imported, launch = LAUNCHERS["joblib"]
    text = INHERITING.format(
        launcher=imported, imports="", top=top, base="object", reads=reads, before="pass", launch=launch
    )
    (tmp_path / "program.py").write_text(text)
    (finding,) = [f for f in Session(Config()).check([str(tmp_path / "program.py")]).findings if f.code == "CUD101"]
    assert finding.fix is not None
    assert "loky" not in finding.fix.message
    assert finding.fix.applicability is Applicability.UNSAFE, "threads carry nothing"
    assert "threads" in finding.fix.message
    assert "only one runs at a time" in (finding.fix.reason or "")


NOT_IN_THREADS = {
    "a context variable": ("import contextvars\nSIZE = contextvars.ContextVar('size', default=1)\n", "SIZE.set(2)"),
    "gradients": ("", "torch.set_grad_enabled(False)"),
    "random numbers": ("", "torch.manual_seed(1)"),
}


@pytest.mark.parametrize(("top", "before"), NOT_IN_THREADS.values(), ids=NOT_IN_THREADS)
def test_what_a_thread_may_lack_is_named(tmp_path: Path, top: str, before: str) -> None:
    imported, launch = LAUNCHERS["joblib"]
    cached = "import functools\n\n\n@functools.lru_cache\ndef size():\n    return 1\n\n"
    text = INHERITING.format(
        launcher=imported,
        imports="",
        top=cached + top,
        base="object",
        reads="size() * torch.rand(1).item()",
        before=before,
        launch=launch,
    )
    (tmp_path / "program.py").write_text(text)
    (finding,) = [f for f in Session(Config()).check([str(tmp_path / "program.py")]).findings if f.code == "CUD101"]
    assert finding.fix is not None
    assert f"`{before.partition('(')[0]}()`" in (finding.fix.reason or "")


def test_a_decorated_function_lasts_while_its_workers_start(tmp_path: Path) -> None:
    text = INHERITING.format(
        launcher=LAUNCHERS["pool"][0],
        launch=LAUNCHERS["pool"][1],
        base="object",
        imports="",
        top="",
        reads="n",
        before="pass",
    ).replace("def main():", "@torch.no_grad()\ndef main():")
    (tmp_path / "program.py").write_text(text)
    (finding,) = Session(Config()).check([str(tmp_path / "program.py")]).findings
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE
    assert "torch.no_grad()" in (finding.fix.reason or "")


@pytest.mark.parametrize(
    ("given", "body", "level"),
    [
        ("torch.ones(2)", "given.add_(1)", Applicability.UNSAFE),
        ("torch.ones(2)", "given[0] = 5", Applicability.UNSAFE),
        ("torch.ones(2)", "given += 1", Applicability.UNSAFE),
        ("torch.nn.Linear(2, 2)", "print(given)", Applicability.UNSAFE),
        ("torch.ones(2)", "print(given.sum())", Applicability.SAFE),
    ],
)
def test_what_is_copied_by_a_fork_and_shared_by_spawn(
    tmp_path: Path, given: str, body: str, level: Applicability
) -> None:
    text = (
        f"import multiprocessing\n\nimport torch\n\n\ndef work(given):\n    {body}\n"
        "    print(torch.ones(1, device='cuda'))\n\n\nif __name__ == '__main__':\n"
        f"    torch.zeros(1, device='cuda')\n    given = {given}\n"
        "    worker = multiprocessing.Process(target=work, args=(given,))\n    worker.start()\n    worker.join()\n"
    )
    (tmp_path / "program.py").write_text(text)
    (finding,) = [f for f in Session(Config()).check([str(tmp_path / "program.py")]).findings if f.code == "CUD101"]
    assert finding.fix is not None
    assert finding.fix.applicability is level, finding.fix.reason
    assert ("are copied by a fork" in (finding.fix.reason or "")) == (level is Applicability.UNSAFE)


def test_an_initializer_that_sets_what_its_worker_reads_is_proven(tmp_path: Path) -> None:
    text = (
        "import multiprocessing\n\nimport torch\n\nMODEL = None\n\n\ndef start(width):\n    global MODEL\n"
        "{seed}    MODEL = torch.nn.Linear(width, 1).cuda()\n\n\ndef work(n):\n"
        "    return MODEL(torch.ones(n, 4, device='cuda')).sum().item()\n\n\nif __name__ == '__main__':\n"
        "    torch.zeros(1, device='cuda')\n"
        "    with multiprocessing.Pool(1, initializer=start, initargs=(4,)) as pool:\n"
        "        print(pool.map(work, [1, 2]))\n"
    )
    # The weights of a layer are random numbers, which a fork takes from where its parent stopped.
    for seed, reason in (("    torch.manual_seed(0)\n", None), ("", "random weights that it did not seed")):
        (tmp_path / "program.py").write_text(text.replace("{seed}", seed))
        (finding,) = [f for f in Session(Config()).check([str(tmp_path / "program.py")]).findings if f.code == "CUD101"]
        assert finding.fix is not None
        assert (finding.fix.applicability is Applicability.SAFE) == (reason is None), finding.fix.reason
        assert reason is None or reason in (finding.fix.reason or "")


def test_a_module_beside_main_that_asks_for_gpus_may_decide(tmp_path: Path) -> None:
    helper = "import torch\n\n\ndef ready():\n    return torch.cuda.is_available()\n"
    before = "if not helper.ready():\n        Cfg.scale = 5"
    parts = {"imports": "import helper", "top": CFG, "reads": "Cfg.scale", "before": before}
    assert "without a GPU" in (project_fix(tmp_path, "pool", parts, helper=helper).reason or "")
    parts["before"] = "print(helper.ready())"
    assert project_fix(tmp_path, "pool", parts, helper=helper).applicability is Applicability.SAFE


def test_the_batches_of_a_loader_do_not_outlive_its_workers(tmp_path: Path) -> None:
    text = (
        "import torch\nfrom torch.utils.data import DataLoader, Dataset\n\n\nclass Rows(Dataset):\n"
        "    def __len__(self):\n        return 2\n\n    def __getitem__(self, n):\n"
        "        return torch.ones(n, device='cuda')\n\n\nif __name__ == '__main__':\n"
        "    torch.zeros(1, device='cuda')\n    batches = list(DataLoader(Rows(), num_workers=1))\n    print(batches)\n"
    )
    (tmp_path / "program.py").write_text(text)
    (fix,) = [f.fix for f in Session(Config()).check([str(tmp_path / "program.py")]).findings if f.code == "CUD401"]
    assert fix is not None
    assert fix.applicability is Applicability.UNSAFE


def test_a_computed_pin_memory_is_not_dropped_unasked(tmp_path: Path) -> None:
    text = (
        "import torch\nfrom torch.utils.data import DataLoader, TensorDataset\n\n\nif __name__ == '__main__':\n"
        "    rows = TensorDataset(torch.ones(4, 2, device='cuda'))\n"
        "    for (batch,) in DataLoader(rows, pin_memory={pin}):\n        print(batch.sum().item())\n"
    )
    asked = text + "        print(batch.is_pinned())\n"
    (tmp_path / "asked.py").write_text(asked.format(pin="True"))
    (finding,) = Session(Config()).check([str(tmp_path / "asked.py")]).findings
    assert finding.fix is not None
    assert finding.fix.reason == "the program asks whether something is pinned"
    (tmp_path / "asked.py").unlink()
    for pin, level in (("True", Applicability.SAFE), ("bool(1)", Applicability.UNSAFE)):
        (tmp_path / "program.py").write_text(text.format(pin=pin))
        (finding,) = Session(Config()).check([str(tmp_path / "program.py")]).findings
        assert finding.code == "CUD403"
        assert finding.fix is not None
        assert finding.fix.applicability is level


@pytest.mark.parametrize(
    ("caught", "level"), [("RuntimeError", Applicability.UNSAFE), ("KeyError", Applicability.SAFE)]
)
def test_pinning_that_may_fail_is_not_dropped_unasked(tmp_path: Path, caught: str, level: Applicability) -> None:
    (tmp_path / "program.py").write_text(
        "import torch\nfrom torch.utils.data import DataLoader, TensorDataset\n\n\nif __name__ == '__main__':\n"
        "    rows = TensorDataset(torch.ones(4, 2, device='cuda'))\n    try:\n"
        "        for (batch,) in DataLoader(rows, pin_memory=True):\n            print(batch.sum().item())\n"
        f"    except {caught}:\n        print('on the CPU')\n"
    )
    (finding,) = Session(Config()).check([str(tmp_path / "program.py")]).findings
    assert finding.code == "CUD403"
    assert finding.fix is not None
    assert finding.fix.applicability is level


@pytest.mark.parametrize(
    ("inside", "level"),
    [
        pytest.param("pins = True", Applicability.SAFE, id="plain"),
        pytest.param(
            "@property\n    def pins(self):\n        return print() is None", Applicability.UNSAFE, id="computed"
        ),
        pytest.param(
            "def __getattr__(self, name):\n        return print(name) is None", Applicability.UNSAFE, id="any"
        ),
    ],
)
def test_an_attribute_that_runs_code_is_not_dropped_unasked(tmp_path: Path, inside: str, level: Applicability) -> None:
    (tmp_path / "program.py").write_text(
        "import torch\nfrom torch.utils.data import DataLoader, TensorDataset\n\n\n"
        f"class Options:\n    {inside}\n\n\nif __name__ == '__main__':\n    options = Options()\n"
        "    rows = TensorDataset(torch.ones(4, 2, device='cuda'))\n"
        "    for (batch,) in DataLoader(rows, pin_memory=options.pins):\n        print(batch.sum().item())\n"
    )
    (finding,) = Session(Config()).check([str(tmp_path / "program.py")]).findings
    assert finding.code == "CUD403"
    assert finding.fix is not None
    assert finding.fix.applicability is level


def test_a_with_statement_lasts_while_its_workers_start(tmp_path: Path) -> None:
    before = "stack = torch.no_grad()\n    stack.__enter__()"
    assert project_fix(tmp_path, "pool", {"before": before}).applicability is Applicability.UNSAFE


def test_an_object_that_is_sent_and_read_is_one_in_a_fork_and_two_otherwise(tmp_path: Path) -> None:
    text = (
        "import multiprocessing\n\nimport torch\n\nSTATE = {'n': 1}\n\n\ndef work(state):\n"
        "    state['n'] = 2\n    print(torch.ones(STATE['n'], device='cuda'))\n\n\nif __name__ == '__main__':\n"
        "    torch.zeros(1, device='cuda')\n    worker = multiprocessing.Process(target=work, args=(STATE,))\n"
        "    worker.start()\n    worker.join()\n"
    )
    (tmp_path / "program.py").write_text(text)
    (finding,) = Session(Config()).check([str(tmp_path / "program.py")]).findings
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE
    assert "`STATE` and is given the same object" in (finding.fix.reason or "")


def test_the_reason_names_everything_that_may_differ(tmp_path: Path) -> None:
    before = "Cfg.scale = 5\n    torch.manual_seed(0)\n    vendor.configure()"
    parts = {"imports": "import vendor", "top": CFG, "before": before, "reads": "Cfg.scale * torch.rand(1).item()"}
    reason = project_fix(tmp_path, "pool", parts).reason or ""
    assert all(name in reason for name in ("Cfg.scale", "torch.manual_seed()", "vendor.configure()"))
    assert reason.count("; ") >= 2


def test_a_long_reason_counts_the_rest(tmp_path: Path) -> None:
    before = "\n    ".join(f"vendor.configure_{i}()" for i in range(10))
    reason = project_fix(tmp_path, "pool", {"imports": "import vendor", "before": before}).reason or ""
    assert "vendor.configure_0()" in reason
    # The import of `vendor`, which each fresh process repeats, is one of them.
    assert reason.endswith("; and 5 more")


def test_what_may_differ_is_named_beside_another_reason(tmp_path: Path) -> None:
    before = "if torch.cuda.is_available():\n        torch.set_num_threads(1)\n    else:\n        Cfg.scale = 5"
    reason = project_fix(tmp_path, "pool", {"before": before, "top": CFG, "reads": "Cfg.scale"}).reason or ""
    assert "without a GPU, the worker reads `Cfg.scale`" in reason
    assert "torch.set_num_threads()" in reason
    assert "without a GPU, a fresh process does not have what `torch.set_num_threads()`" not in reason


def test_another_program_that_starts_the_same_workers_counts(tmp_path: Path) -> None:
    shared = (
        "import multiprocessing\n\nimport settings\nimport torch\n\n\ndef work(n):\n"
        "    return torch.ones(n, device='cuda').sum().item() * settings.SCALE\n\n\ndef run():\n"
        "    with multiprocessing.Pool(1) as pool:\n        print(pool.map(work, [1, 2]))\n"
    )
    (tmp_path / "shared.py").write_text(shared)
    (tmp_path / "settings.py").write_text("SCALE = 1\n")
    (tmp_path / "first.py").write_text(
        "import shared\nimport torch\n\nif __name__ == '__main__':\n"
        "    torch.zeros(1, device='cuda')\n    shared.run()\n"
    )
    checked = Session(Config()).check([str(tmp_path)]).findings
    assert [f.fix.applicability for f in checked if f.fix is not None] == [Applicability.SAFE]
    (tmp_path / "second.py").write_text(
        "import settings\nimport shared\n\nif __name__ == '__main__':\n    settings.SCALE = 5\n    shared.run()\n"
    )
    (fix,) = [f.fix for f in Session(Config()).check([str(tmp_path)]).findings if f.fix is not None]
    assert fix.applicability is Applicability.UNSAFE
    assert "settings.SCALE" in (fix.reason or "")


# -- what really happens -----------------------------------------------------------------------------------------------

RUN = """\
import multiprocessing
import sys
{imports}
import torch

{top}

def work(n):
    return torch.ones(1, device="cuda").sum().item() * {reads}


def main():
    {before}
    with multiprocessing.get_context(sys.argv[1]).Pool(1) as pool:
        print("measured: result =", pool.map(work, [1, 2]))


if __name__ == "__main__":
    main()
"""
DECIMAL = ("import decimal", "", "decimal.getcontext().prec = 3", "float(decimal.Decimal(1) / 3)")
REALLY_DIFFERENT = {
    "a class attribute": ("", *IN_THE_PROGRAM["a class attribute"][:3]),
    "an item of a nested dict": ("", *IN_THE_PROGRAM["an item of a nested dict"][:3]),
    "a module's variable": ("import settings", "", "settings.SCALE = 5", "settings.SCALE"),
    "a closure": ("", *IN_THE_PROGRAM["a closure"][:3]),
    "a function's attribute": ("", "def size():\n    return 1\n\n", "size.n = 5", 'getattr(size, "n", 1)'),
    "decimal": DECIMAL,
    "random's seed": ("import random", "", "random.seed(3)", "random.random()"),
}
REALLY_THE_SAME = ("a registry that its module fills", "another class is changed", "a path beside the module")


def result_of(folder: Path, method: str, imports: str, top: str, before: str, reads: str) -> str:
    """What the workers give back when the program really runs, on paper CUDA, by a start method."""
    program = folder / "program.py"
    program.write_text(RUN.format(imports=imports, top=top, before=before, reads=reads))
    (folder / "settings.py").write_text(SETTINGS["settings"])
    seen = run(program, args=[method], limit=20.0)
    assert seen.outcome == "ok", seen.text
    return seen.measured["result"]


@pytest.mark.parametrize("parts", REALLY_DIFFERENT.values(), ids=REALLY_DIFFERENT)
def test_what_is_not_safe_really_gives_something_else(tmp_path: Path, parts: tuple[str, str, str, str]) -> None:
    imports, top, before, reads = parts
    named = {"imports": imports, "top": top, "before": before, "reads": reads}
    assert project_fix(tmp_path, "pool", named, **SETTINGS).applicability is Applicability.UNSAFE
    assert result_of(tmp_path, "fork", *parts) != result_of(tmp_path, "spawn", *parts)


@pytest.mark.parametrize("kind", REALLY_THE_SAME)
def test_what_is_safe_really_gives_the_same(tmp_path: Path, kind: str) -> None:
    assert result_of(tmp_path, "fork", *LOOK_ALIKES[kind]) == result_of(tmp_path, "spawn", *LOOK_ALIKES[kind])


def test_what_the_worker_does_otherwise_is_told_before_what_else_the_parent_did(tmp_path: Path) -> None:
    parts = {"top": "scale = [1]\n", "size": "n * scale[0]"}
    fix = fix_of(tmp_path, imports="import thing", before="    thing.set_up()\n    scale[0] = 2\n", **parts)
    assert fix.reason is not None
    assert fix.reason.index("the worker reads `scale`") < fix.reason.index("`thing.set_up()`")


@pytest.mark.parametrize(("other", "safe"), [("pool.imap(work, [1])", True), ("map(len, [[1]])", False)])
def test_several_launches_may_fail_on_each_way_together(tmp_path: Path, other: str, safe: bool) -> None:
    text = (
        "import multiprocessing\nimport sys\n\nimport torch\n\n\ndef work(n):\n"
        "    return torch.ones(n, device='cuda').sum().item()\n\n\nif __name__ == '__main__':\n"
        "    torch.zeros(1, device='cuda')\n    with multiprocessing.Pool(1) as pool:\n"
        "        if len(sys.argv) > 1:\n            rows = pool.map(work, [1])\n        else:\n"
        f"            rows = {other}\n        print(list(rows))\n"
    )
    (tmp_path / "program.py").write_text(text)
    fixes = [f.fix for f in Session(Config()).check([str(tmp_path / "program.py")]).findings if f.code == "CUD101"]
    assert {fix is not None and fix.applicability is Applicability.SAFE for fix in fixes} == {safe}


def test_paths_that_meet_have_the_numbers_that_either_drew() -> None:
    seeding = Process(seeded=frozenset({"torch"}))
    drawing = Process(unseeded=frozenset({"modules"}), unread=frozenset({"JAX_PLATFORMS"}))
    for one, other in ((seeding, drawing), (drawing, seeding)):
        joined = join_process(one, other)
        assert (joined.seeded, joined.unseeded) == (frozenset(), frozenset({"modules"}))
        assert joined.unread == frozenset({"JAX_PLATFORMS"})
