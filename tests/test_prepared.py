"""Imports that several entries begin with are run once, and each entry finds what it would find by itself."""

from __future__ import annotations

import pytest

from cudalint.finding import Finding
from cudalint.machine.effects.registry import LibraryEffects
from cudalint.machine.interpreter import EntryOptions, Host, Machine, Purpose, Setting
from cudalint.machine.state import Lineage, Process
from cudalint.models.library import load
from cudalint.project.analysis import Options, analyse
from cudalint.project.assembling import program
from cudalint.project.entries import candidates
from cudalint.project.prepared import PreparedImports
from cudalint.project.pythons import Hosts
from cudalint.project.running import Runner
from cudalint.text.source import SourceFile

WARM = "import torch\n\n\ndef warm():\n    torch.cuda.init()\n\n\nwarm()\n"
WORK = (
    "import multiprocessing as mp\n\nimport torch\n\n\n"
    "def work(n):\n    return float(torch.ones(n, device='cuda').sum())\n\n\n"
)
MAIN = "if __name__ == '__main__':\n    pool = mp.get_context('fork').Pool(2)\n    print(pool.map(work, [1, 2]))\n"
FIRST = "import warm\n" + WORK + MAIN
SECOND = WORK + "import warm\n\n" + MAIN
QUIET = WORK + "if __name__ == '__main__':\n    import warm\n"
HIDDEN = "import os\n\nos.environ['CUDA_VISIBLE_DEVICES'] = '1'\nimport warm\n" + WORK + MAIN
LATE = WORK + MAIN.replace("    pool =", "    torch.cuda.init()\n    import names\n\n    print(names.ONE)\n    pool =")
NAMES = "def one():\n    return 1\n\n\nONE = one()\nTABLE = {name: name for name in ('a', 'b')}\n"


def sources(texts: dict[str, str]) -> list[SourceFile]:
    return [SourceFile(path, text, text.encode()) for path, text in texts.items()]


def found(**texts: str) -> list[Finding]:
    return list(analyse(sources({f"{name}.py": text for name, text in texts.items()}), Options()).findings)


def steps(**texts: str) -> dict[str, int]:
    """How many statements each entry ran that is charged to it."""
    given = {f"/p/{name}.py": text for name, text in texts.items()}
    files = program(sources(given), load(), "/p")
    return {ran.label: ran.machine.steps for ran in Runner(files, Hosts(Host())).run(candidates(files))}


def test_each_entry_says_how_it_came_to_an_import_that_was_run_for_all() -> None:
    findings = found(warm=WARM, first=FIRST, second=SECOND)
    assert [(one.code, one.span.filename) for one in findings] == [("CUD101", "first.py"), ("CUD101", "second.py")]
    for one, row in zip(findings, (1, 10), strict=True):
        begins = one.trace[0]
        assert (begins.span.filename, begins.span.start.row, begins.message) == (one.span.filename, row, "imports warm")
        assert [step.span.filename for step in one.trace[1:3]] == ["warm.py", "warm.py"]


def test_entries_find_together_what_each_finds_alone() -> None:
    scripts = {"first": FIRST, "second": SECOND, "quiet": QUIET, "hidden": HIDDEN, "late": LATE}
    others = {"warm": WARM, "names": NAMES}
    alone = [one for name, text in sorted(scripts.items()) for one in found(**others, **{name: text})]
    together = found(**others, **scripts)
    assert sorted(together, key=lambda one: one.span.filename) == alone
    assert {one.span.filename for one in alone} == {"first.py", "hidden.py", "late.py", "second.py"}


def test_what_an_import_takes_is_charged_to_no_entry() -> None:
    long = WARM + "".join(f"warm() or {n}\n" for n in range(300))
    assert steps(warm=long, first=FIRST)["first"] == steps(warm=WARM, first=FIRST)["first"] < 100


def test_an_import_that_looks_at_no_process_is_not_run_again_in_another_state() -> None:
    slow = NAMES + "".join(f"N{n} = one(group.name)\n" for n in range(300))
    assert steps(names=slow, late=LATE)["late"] < 100


GROUP = "import click\n\n\n@click.group()\ndef group():\n    pass\n\n\n"
COMMAND = (
    "import multiprocessing as mp\n\nfrom pkg.tools import group\n\n\ndef work(n):\n"
    "    import torch\n\n    return float(torch.ones(n, device='cuda').sum())\n\n\n"
    "@group.command()\ndef run():\n"
    "    import torch\n\n    torch.cuda.init()\n    mp.get_context('fork').Pool(2).map(work, [1, 2])\n"
)


def test_modules_that_their_package_imports_begin_with_one_import_of_it() -> None:
    modules = {f"pkg/tools/command_{n}": COMMAND for n in range(3)}
    imports = "".join(f"from . import command_{n}\n" for n in range(2))
    texts = {"pkg/__init__": "", "pkg/tools/__init__": GROUP + imports, **modules}
    files = program(sources({f"/p/{name}.py": text for name, text in texts.items()}), load(), "/p")
    packages = [files.importing_package(f"pkg.tools.command_{n}") for n in range(3)]
    assert packages == ["pkg.tools", "pkg.tools", None]
    assert [(one.code, one.span.filename) for one in found(**texts)] == [
        ("CUD101", f"pkg/tools/command_{n}.py") for n in range(3)
    ]


MEETS = (
    "import torch.distributed as dist\nimport torch.multiprocessing as mp\n\nimport names\n\n\n"
    "def work(rank):\n    dist.init_process_group('nccl', rank=rank, world_size=2)\n\n\n"
    "if __name__ == '__main__':\n    mp.start_processes(work, nprocs=2, start_method='fork')\n"
)


def test_an_import_that_looks_where_ranks_meet_is_run_for_all_and_each_knows_that_it_looked() -> None:
    slow = NAMES + "".join(f"N{n} = one(group.name)\n" for n in range(300))
    looks = "import os\n\nADDRESS = os.environ.get('MASTER_ADDR', 'localhost')\n" + slow
    assert steps(names=looks, first=MEETS)["first"] < 100
    assert "CUD505" in [one.code for one in found(names=slow, first=MEETS)]
    assert "CUD505" not in [one.code for one in found(names=looks, first=MEETS)]


def test_an_import_that_looks_at_the_process_is_run_in_its_state() -> None:
    asks = "import os\n\nimport torch\n\nif os.environ.get('CUDA_VISIBLE_DEVICES') == '1':\n    torch.cuda.init()\n"
    other = HIDDEN.replace("'1'", "'0'")
    by_file = {one.span.filename: one.code for one in found(warm=asks, hidden=HIDDEN, other=other)}
    assert by_file == {"hidden.py": "CUD101", "other.py": "CUD201"}  # there no CUDA was used before the fork


def test_a_failing_import_that_the_program_expects_is_run_where_it_is_caught() -> None:
    fails = "import torch\n\ntorch.cuda.device_count()\nraise RuntimeError('no')\n"
    main = "try:\n    import warm\nexcept RuntimeError:\n    import torch\n\n    torch.cuda.init()\n" + WORK + MAIN
    assert [one.code for one in found(warm=fails, main=main)] == ["CUD101"]


ASKS_FOR_GROUP = "import torch.distributed as dist\n\nFIRST = not dist.is_initialized()\n" + NAMES
ASKS_FOR_CUDA = "import torch\n\nFIRST = not torch.cuda.is_initialized()\n" + NAMES


@pytest.mark.parametrize(("text", "runs"), [(NAMES, 1), (WARM, 1), (ASKS_FOR_GROUP, 2), (ASKS_FOR_CUDA, 2)])
def test_unknown_callers_get_an_import_run_for_programs_unless_it_asks_what_they_did(text: str, runs: int) -> None:
    files = program(sources({"/p/names.py": text, "/p/more.py": "import names\n\nTWO = names.ONE\n"}), load(), "/p")
    files.begin(1_000_000)

    def machine(name: str) -> Machine:
        return Machine(
            Setting(files, files.library, LibraryEffects(), name, Host(), EntryOptions(purpose=Purpose.PREPARATION))
        )

    imports = PreparedImports(files, machine)
    took = []
    for unseen in (False, True):
        base = Lineage((), Process(unseen=unseen), (), {}, {}, {})
        first = imports.imported("names", base, None)
        assert first is not None
        (way,) = first.ways
        assert way.lineage is not None
        assert way.lineage.process.unseen is unseen
        second = imports.imported("more", way.lineage, way)
        assert second is not None
        assert [after.before for after in second.ways] == [way]
        took.append(imports.steps)
    assert took[1] == runs * took[0] > 0
