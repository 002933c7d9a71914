"""The cache between runs: a second run says the same, byte for byte, and does less."""

from __future__ import annotations

import inspect
import json
import os
import pickle
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from command_line import call

from cudalint import config
from cudalint.config import Config
from cudalint.found import Report
from cudalint.ir import nodes as ir
from cudalint.ir import stored
from cudalint.ir.bodies import Postponed
from cudalint.ir.depth import MACHINE, room
from cudalint.ir.lower import lower
from cudalint.ir.pickled import decoded
from cudalint.ir.positions import all_spans
from cudalint.ir.stored import Form, Unparsable, keep, lowered, placed
from cudalint.ir.walk import functions
from cudalint.report.render import OutputFormat
from cudalint.session import Session
from cudalint.store import Store
from cudalint.structs import Struct, replace

ROOT = Path(__file__).parent.parent
FIXTURES = sorted(ROOT.joinpath("fixtures").rglob("*.py"))
HELPER = """\
import torch


def warm_up():
    torch.zeros(1, device="cuda")
"""
MAIN = """\
import multiprocessing

import helper
import torch


def work(n):
    return torch.ones(n, device="cuda").sum().item()


if __name__ == "__main__":
    helper.warm_up()
    print(multiprocessing.get_context("fork").Pool(1).map(work, [1, 2, 3]))
"""
QUIET = "def rows(lines):\n    return [line.strip() for line in lines]\n"
OWN = """
[library]
name = "engine"

[[function]]
names = ["engine.warm_up"]
does = "gpu"
gpu = "init"
"""

Cli = Callable[..., "subprocess.CompletedProcess[str]"]


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    top = tmp_path / "project"
    write(top / "pyproject.toml", "[tool.cudalint]\n")
    write(top / "helper.py", HELPER)
    write(top / "train.py", MAIN)
    write(top / "quiet.py", QUIET)
    write(top / "broken.py", "import torch\ndef (:\n")
    return top


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "cache"), b"k" * 32)


@pytest.fixture
def surroundings(tmp_path: Path) -> dict[str, str]:
    """The environment of a command line that keeps a cache, with a home of its own."""
    off = ("CUDALINT_NO_CACHE", "XDG_CACHE_HOME")
    return {**{name: value for name, value in os.environ.items() if name not in off}, "HOME": str(tmp_path)}


@pytest.fixture
def cli(project: Path, surroundings: Mapping[str, str]) -> Cli:
    """The command line with a cache, called in the project."""

    def start(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return call(arguments, project, {**surroundings, **more})

    return start


def check(top: Path, store: Store | None, found: Config | None = None, **options: bool) -> Report:
    return Session(found or config.load([str(top)]), store).check([str(top)], **options)


def told(report: Report) -> Report:
    """A report without what it cost."""
    return replace(report, effort=Report().effort)


def parsed(done: subprocess.CompletedProcess[str]) -> int:
    match = re.search(r"parsed ([\d,]+) \(", done.stderr)
    assert match is not None, done.stderr
    return int(match[1].replace(",", ""))


# -- whole runs -------------------------------------------------------------------------------------------------


def test_a_second_run_parses_nothing_and_says_the_same(project: Path, store: Store) -> None:
    cold, warm, without = check(project, store), check(project, store), check(project, None)
    assert {finding.code for finding in cold.findings} == {"CUD101", "CUD901"}
    assert cold.effort.files_parsed == without.effort.files_parsed > 0
    assert (warm.effort.files_parsed, warm.effort.bytes_parsed, warm.effort.nodes_lowered) == (0, 0, 0)
    assert (warm.effort.files_read, warm.effort.bytes_read) == (cold.effort.files_read, cold.effort.bytes_read)
    assert told(cold) == told(warm) == told(without)


def test_a_warm_run_never_asks_the_analysis(project: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    first = check(project, store)
    for name in ("cudalint.project.analysis", "cudalint.fixes.engine", "cudalint.project.syntax"):
        monkeypatch.setitem(sys.modules, name, None)
    assert told(check(project, store)) == told(first)


def test_a_warm_run_imports_neither_parser_nor_machine(
    cli: Cli, project: Path, surroundings: Mapping[str, str]
) -> None:
    cli("check", "--output-format", "json")
    heavy = ("libcst", "rich", "cudalint.project.analysis", "cudalint.machine.interpreter", "cudalint.rules.cud101")
    program = (
        "import sys\nfrom cudalint.hosts.cli import main\nmain(['check', '--output-format', 'json'])\n"
        f"print([name for name in {heavy} if name in sys.modules], file=sys.stderr)"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=project, env=surroundings, capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"
    assert len(json.loads(done.stdout)) == 2


IN_EVERY_FORMAT = """
import sys
from cudalint.hosts.cli import main
from cudalint.report.render import OutputFormat
for output_format in OutputFormat:
    code = main(["check", ".", "--output-format", output_format.value, *sys.argv[1:]])
    print("--", output_format.value, int(code), flush=True)
"""


def test_every_format_is_the_same_byte_for_byte(project: Path, surroundings: Mapping[str, str]) -> None:
    """Without a cache, as it is filled, and from it; whatever order sets of texts have in a process."""

    def run(seed: int, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", IN_EVERY_FORMAT, *arguments]
        environment = {**surroundings, "PYTHONHASHSEED": str(seed)}
        return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=True)

    without, cold, warm = run(1, "--no-cache"), run(2), run(3)
    assert (without.stdout, without.stderr) == (cold.stdout, cold.stderr) == (warm.stdout, warm.stderr)
    for output_format in OutputFormat:
        assert f"-- {output_format.value} 1\n" in warm.stdout
    assert warm.stdout.count("CUD101") >= len(OutputFormat)


def touch_a_file(project: Path) -> None:
    os.utime(project / "helper.py", (1, 1))


def edit_a_file(project: Path) -> None:
    write(project / "helper.py", HELPER.replace('"cuda"', '"cpu"'))


def edit_a_file_of_the_same_size_and_time(project: Path) -> None:
    before = (project / "helper.py").stat()
    write(project / "helper.py", HELPER.replace('"cuda"', '"meta"'))
    os.utime(project / "helper.py", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (project / "helper.py").stat().st_size == before.st_size


def add_a_file(project: Path) -> None:
    write(project / "other.py", MAIN)


def remove_a_file(project: Path) -> None:
    (project / "broken.py").unlink()


def rename_a_file(project: Path) -> None:
    (project / "quiet.py").rename(project / "train2.py")


def silence(project: Path) -> None:
    write(project / "train.py", MAIN.replace("[1, 2, 3]))", "[1, 2, 3]))  # noqa: CUD101"))


def select(project: Path) -> None:
    write(project / "pyproject.toml", "[tool.cudalint]\nignore = ['CUD101']\n")


def ignore_per_file(project: Path) -> None:
    write(project / "pyproject.toml", "[tool.cudalint.per-file-ignores]\n'train.py' = ['CUD1']\n")


def exclude(project: Path) -> None:
    write(project / "pyproject.toml", "[tool.cudalint]\nextend-exclude = ['helper.py']\n")


def other_versions(project: Path) -> None:
    write(project / "pyproject.toml", "[tool.cudalint]\ntarget-version = '3.14'\n")


def other_platform(project: Path) -> None:
    write(project / "pyproject.toml", "[tool.cudalint]\nplatform = 'darwin'\n")


def other_grades(project: Path) -> None:
    write(
        project / "pyproject.toml", "[tool.cudalint]\nextend-unsafe-fixes = ['ALL']\nextend-safe-fixes = ['CUD101']\n"
    )


def ignored_by_git(project: Path) -> None:
    write(project / ".gitignore", "train.py\n")


CHANGES = [
    touch_a_file,
    edit_a_file,
    edit_a_file_of_the_same_size_and_time,
    add_a_file,
    remove_a_file,
    rename_a_file,
    silence,
    select,
    ignore_per_file,
    exclude,
    other_versions,
    other_platform,
    other_grades,
    ignored_by_git,
]


@pytest.mark.parametrize("change", CHANGES)
def test_after_a_change_and_back_the_cache_says_what_a_fresh_run_says(
    project: Path, store: Store, change: Callable[[Path], None]
) -> None:
    before = {path: path.read_bytes() for path in project.iterdir()}
    first = check(project, store)
    change(project)
    changed = check(project, store)
    assert told(changed) == told(check(project, None))
    assert told(check(project, store)) == told(changed)
    for path in project.iterdir():
        path.unlink()
    for path, data in before.items():
        path.write_bytes(data)
    back = check(project, store)
    assert told(back) == told(first)
    assert back.effort.files_parsed == 0


def test_touching_parses_nothing_and_editing_one_file_parses_that_one(project: Path, store: Store) -> None:
    check(project, store, repair=False)
    touch_a_file(project)
    assert check(project, store, repair=False).effort.files_parsed == 0
    edit_a_file(project)
    assert check(project, store, repair=False).effort.files_parsed == 1


LIBRARY = (
    "import torch\n\n\n"
    "def used(n):\n    return torch.ones(n, device='cuda')\n\n\n"
    "def unused(n):\n    return torch.zeros(n)\n"
)
PROGRAM = (
    "import multiprocessing as mp\n\nimport torch\nfrom library import used\n\n\n"
    "if __name__ == '__main__':\n"
    "    torch.cuda.init()\n"
    "    mp.get_context('fork').Process(target=used, args=(1,)).start()\n"
)


@pytest.mark.parametrize(
    ("old", "new", "runs"),
    [
        ("    return torch.zeros(n)\n", "    print(n)\n    return torch.zeros(n)\n", 0),
        ("    return torch.zeros(n)\n", "    # a remark\n    return torch.zeros(n)\n", 0),
        ("    return torch.ones", "    # a remark\n    return torch.ones", 0),
        ("import torch\n", "# a remark\nimport torch\n", 0),
        ("    return torch.ones", "    print(n)\n    return torch.ones", 1),
        ("def unused", "def other(): ...\n\n\ndef unused", 1),
        ("import torch\n", "import torch\n\nSIZE = 3\n", 1),
        ("    return torch.zeros(n)\n", "    global SIZE\n    SIZE = n\n    return torch.zeros(n)\n", 1),
    ],
)
def test_after_an_edit_only_what_looked_at_it_runs(project: Path, store: Store, old: str, new: str, runs: int) -> None:
    for path in project.glob("*.py"):
        path.unlink()
    write(project / "library.py", LIBRARY)
    write(project / "train.py", PROGRAM)
    first = check(project, store)
    write(project / "library.py", LIBRARY.replace(old, new))
    kept, fresh = check(project, store), check(project, None)
    assert told(kept) == told(fresh)
    assert [finding.code for finding in kept.findings] == ["CUD101"]
    assert (first.effort.kept, fresh.effort.kept) == (0, 0)
    assert first.effort.entries == fresh.effort.entries == kept.effort.entries == 1
    assert kept.effort.entries - kept.effort.kept == runs


HEAD = (
    "import multiprocessing as mp\n\nimport torch\n\n\n"
    "def work(n):\n    return torch.ones(n, device='cuda').sum().item()\n\n\n"
)
# What a module names decides; that the class is another one cannot be told from imports in the second case.
PLAIN = "class Base:\n    def __init__(self, target):\n        self.target = target\n\n    def start(self): ...\n"
STARTS = "import multiprocessing\n\n\nclass Base(multiprocessing.get_context('fork').Process):\n    pass\n"
IMPORTED = "from base import Base\n"
LOADED = "import importlib\n\nNAME = 'ba' + 'se'\nBase = importlib.import_module(NAME).Base\n"


@pytest.mark.parametrize("imports", [IMPORTED, LOADED])
def test_a_class_elsewhere_that_becomes_a_process_makes_a_launch_of_what_was_none(
    project: Path, store: Store, imports: str
) -> None:
    """What was kept of a function without a caller says that nothing starts there; its module stays as it is."""
    for path in project.glob("*.py"):
        path.unlink()
    write(project / "jobs.py", f"{imports}\n\nclass Job(Base):\n    pass\n")
    write(
        project / "train.py",
        "from multiprocessing import Process\n\nimport torch\nfrom jobs import Job\n\n\n"
        "def work():\n    torch.ones(1).cuda()\n\n\n"
        "def train():\n    torch.cuda.init()\n    Job(target=work).start()\n",
    )
    for text, codes in ((PLAIN, []), (STARTS, ["CUD101"]), (PLAIN, []), (STARTS, ["CUD101"])):
        write(project / "base.py", text)
        kept, fresh = check(project, store), check(project, None)
        assert [finding.code for finding in fresh.findings] == codes
        assert told(kept) == told(fresh)


@pytest.mark.parametrize("around", ["pyproject.toml", None])
def test_the_rest_of_the_project_counts_too(project: Path, store: Store, around: str | None) -> None:
    if around is None:
        (project / "pyproject.toml").unlink()
    found = replace(config.load([str(project)]), root=None if around is None else str(project))
    train = str(project / "train.py")

    def codes(store: Store | None) -> list[str]:
        return [finding.code for finding in Session(found, store).check([train]).findings]

    assert codes(store) == codes(store) == ["CUD101"]
    edit_a_file(project)
    assert codes(store) == codes(None) == []
    write(project / "helper.py", HELPER)
    (project / "helper.py").rename(project / "gone.py")
    assert codes(store) == codes(None) == []
    write(project / "helper" / "__init__.py", HELPER)
    assert codes(store) == codes(store) == codes(None) == ["CUD101"]


def test_a_file_that_appears_elsewhere_in_the_project_is_seen(project: Path, store: Store) -> None:
    session = Session(config.load([str(project)]), store)
    helper = str(project / "helper.py")
    for path in ("train.py", "broken.py", "quiet.py"):
        (project / path).unlink()
    assert session.check([helper]).findings == ()
    write(project / "train.py", MAIN)
    assert [finding.code for finding in session.check([helper]).findings] == ["CUD101"]


def test_a_module_that_appears_in_a_folder_which_a_program_lists_is_seen(project: Path, store: Store) -> None:
    session = Session(config.load([str(project)]), store)
    main = project / "train.py"
    finding = "    for file in os.listdir('steps'):\n        importlib.import_module('.'.join(['steps', file[:-3]]))\n"
    write(main, MAIN.replace("import helper", "import importlib\nimport os").replace("    helper.warm_up()\n", finding))
    write(project / "steps" / "quiet.py", QUIET)
    assert session.check([str(main)]).findings == ()
    write(project / "steps" / "first.py", HELPER + "\n\nwarm_up()\n")
    assert [finding.code for finding in session.check([str(main)]).findings] == ["CUD101"]


def test_commands_of_the_project_count_too(project: Path, store: Store) -> None:
    write(project / "train.py", MAIN.replace('if __name__ == "__main__":', "def run():"))
    check(project, store)
    write(project / "pyproject.toml", "[project.scripts]\ngo = 'train:run'\n")
    assert told(check(project, store)) == told(check(project, None))


def test_models_of_ones_own_count_by_what_is_in_them(cli: Cli, project: Path) -> None:
    write(project / "pyproject.toml", "[tool.cudalint]\nmodels = ['engine.toml']\n")
    write(project / "engine.toml", OWN)
    write(project / "helper.py", "import engine\n\n\ndef warm_up():\n    engine.warm_up()\n")
    arguments = ("check", "--output-format", "concise")
    first = cli(*arguments)
    assert "CUD101" in first.stdout
    write(project / "engine.toml", OWN.replace("engine.warm_up", "engine.other"))
    assert "CUD101" not in cli(*arguments).stdout
    write(project / "engine.toml", OWN)
    again = cli(*arguments, "-v")
    assert (again.stdout, parsed(again)) == (first.stdout, 0)


def test_what_was_asked_counts(project: Path, store: Store) -> None:
    plain = check(project, store, repair=False)
    full = check(project, store)
    assert [finding.fix for finding in plain.findings] == [None] * len(full.findings)
    assert any(finding.fix is not None for finding in full.findings)
    one = Session(config.load([str(project)]), store).check([str(project / "quiet.py")])
    assert one.findings == ()


def test_a_repaired_project_is_known_already(cli: Cli) -> None:
    assert cli("check", "--fix", "--unsafe-fixes").returncode == 1
    again = cli("check", "-v")
    assert parsed(again) == 0
    assert "CUD901" in again.stdout
    assert "CUD101" not in again.stdout


def test_what_a_round_of_repairs_looked_for_is_not_kept_as_all_that_there_is(project: Path, store: Store) -> None:
    """Of repairs that are made one after the other in a file, the next one is enough."""
    launches = "".join(f"def run{n}():\n    mp.get_context('fork').Pool(2).map(work, [{n}])\n\n\n" for n in (1, 2, 3))
    for name in ("train.py", "other.py"):
        write(project / name, HEAD + launches)
    session = Session(config.load([str(project)]), store)

    def repaired(report: Report) -> list[str]:
        return [Path(one.span.filename).name for one in report.findings if one.fix is not None]

    assert repaired(session.check([str(project)], admits=lambda fix, cells: True)) == ["other.py", "train.py"]
    every = session.check([str(project)], admits=lambda fix, cells: False)
    assert repaired(every) == 3 * ["other.py"] + 3 * ["train.py"]
    assert told(session.check([str(project)])) == told(every)


def test_a_run_that_failed_is_not_kept(project: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    from cudalint.project import analysis

    def fail(*_: object, **__: object) -> object:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(analysis, "analyse_begun", fail)
        patched.setattr(analysis, "analyse", fail)
        assert "CUD900" in [finding.code for finding in check(project, store).findings]
    assert told(check(project, store)) == told(check(project, None))


def test_one_text_without_its_project_is_kept_too(store: Store) -> None:
    session = Session(Config(), store)
    text = HELPER + MAIN.replace("import helper\n", "").replace("helper.warm_up", "warm_up")
    cold = session.check_alone("train.py", text, honour_noqa=False)
    warm = session.check_alone("train.py", text, honour_noqa=False)
    assert [finding.code for finding in warm.findings] == ["CUD101"]
    assert (cold.effort.files_parsed, warm.effort.files_parsed) == (1, 0)
    assert told(cold) == told(warm) == told(Session(Config()).check_alone("train.py", text, honour_noqa=False))
    assert told(session.check_alone("train.py", text.encode())) == told(cold)
    assert session.check_alone("other.py", text).findings[0].span.filename == os.path.abspath("other.py")


def test_two_runs_at_once_say_the_same(cli: Cli, project: Path, surroundings: Mapping[str, str]) -> None:
    command = [sys.executable, "-m", "cudalint", "check", "--output-format", "json"]
    running = [
        subprocess.Popen(command, cwd=project, env=surroundings, stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    outputs = {one.communicate(timeout=120)[0] for one in running}
    assert outputs == {cli("check", "--output-format", "json", "--no-cache").stdout}
    assert parsed(cli("check", "-v")) == 0


# -- what lies in the folder is not trusted ----------------------------------------------------------------------


def entries(folder: Path) -> list[Path]:
    return [path for path in folder.glob("*/*/*") if path.is_file()]


@pytest.mark.parametrize("data", [b"", b"\x00", b"garbage" * 100, None])
def test_spoilt_entries_change_nothing(project: Path, store: Store, data: bytes | None) -> None:
    first = check(project, store)
    for path in entries(Path(store.folder)):
        path.write_bytes(path.read_bytes()[:-3] if data is None else data)
    again = check(project, store)
    assert told(again) == told(first)
    assert again.effort.files_parsed == first.effort.files_parsed
    assert check(project, store).effort.files_parsed == 0


def test_a_cache_that_came_with_a_repository_is_not_believed(cli: Cli, project: Path) -> None:
    cold = cli("check", "--output-format", "json", CUDALINT_CACHE_KEY="ab" * 32)
    assert len(entries(project / ".cudalint_cache")) > 0
    foreign = cli("check", "--output-format", "json", "-v", CUDALINT_CACHE_KEY="cd" * 32)
    assert foreign.stdout == cold.stdout
    assert parsed(foreign) > 0
    shared = cli("check", "-v", CUDALINT_CACHE_KEY="ab" * 32)
    assert parsed(shared) == 0


class Planted:
    """What a decoder without a list would run."""

    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        return os.mkdir, ("planted",)


def test_nothing_but_nodes_is_made_of_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert decoded(pickle.dumps(Planted())) is None
    assert decoded(pickle.dumps([1, 2])) is None
    assert decoded(b"garbage") is None
    assert decoded(pickle.dumps(subprocess.Popen)) is None
    assert list(tmp_path.iterdir()) == []


def read(text: str, filename: str, name: str, store: Store) -> Form:
    """A file as a run reads it, with all functions entered, and kept at its end."""
    form = lowered(text, filename, name, store)
    if isinstance(form.module, ir.Module):
        assert all(isinstance(function.body, tuple) for function in functions(form.module.body))
    keep(form, text, store)
    return form


def test_signed_bytes_that_are_no_module_are_lowered_again(store: Store) -> None:
    read("x = 1\n", "a.py", "a", store)
    (path,) = entries(Path(store.folder))
    store.put("modules", stored.form_key("x = 1\n"), b"not a pickle")
    form = read("x = 1\n", "a.py", "a", store)
    assert form.is_fresh
    assert same(form.module, lower("x = 1\n", "a.py", "a"))
    assert path.exists()


# -- where it lies, and how it is switched off -------------------------------------------------------------------


def test_the_cache_lies_in_the_project(cli: Cli, project: Path, tmp_path: Path) -> None:
    cli("check", "train.py")
    assert (project / ".cudalint_cache" / "CACHEDIR.TAG").is_file()
    assert (project / ".cudalint_cache" / ".gitignore").is_file()


def test_option_variable_and_configuration_say_where(cli: Cli, project: Path) -> None:
    write(project / "pyproject.toml", "[tool.cudalint]\ncache-dir = 'three'\n")
    for name, arguments, more in (
        ("one", ("--cache-dir", "one"), {"CUDALINT_CACHE_DIR": "two"}),
        ("two", (), {"CUDALINT_CACHE_DIR": "two"}),
        ("three", (), {}),
    ):
        assert not (project / name).exists()
        cli("check", *arguments, **more)
        assert entries(project / name)
    assert not (project / ".cudalint_cache").exists()
    assert f'cache-dir = "{project / "three"}"' in cli("config").stdout


@pytest.mark.parametrize(("arguments", "more"), [(("--no-cache",), {}), ((), {"CUDALINT_NO_CACHE": "1"})])
def test_it_is_switched_off(cli: Cli, project: Path, arguments: tuple[str, ...], more: Mapping[str, str]) -> None:
    assert cli("check", *arguments, **more).returncode == 1
    assert not (project / ".cudalint_cache").exists()


def test_standard_input_leaves_nothing(cli: Cli, project: Path) -> None:
    cli("check", "-", "--stdin-filename", "train.py")
    assert not (project / ".cudalint_cache").exists()


@pytest.mark.parametrize("first", [("map", "train.py"), ("explain", "--functions", "train.py")])
def test_other_commands_keep_what_they_parsed(cli: Cli, project: Path, first: tuple[str, ...]) -> None:
    assert parsed(cli("check", "--no-cache", "--verbose", "train.py")) > 0
    assert cli(*first).returncode == 0
    assert parsed(cli("check", "--verbose", "train.py")) == 0


def test_explaining_a_line_parses_once(cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lowered = Counter[str]()
    made = stored._made
    monkeypatch.setattr(stored, "_made", lambda text, *names: lowered.update([text]) or made(text, *names))
    assert cli("explain", "train.py:1").returncode == 0
    assert set(lowered.values()) == {1}


def test_clean_removes_it(cli: Cli, project: Path) -> None:
    cli("check")
    count = len(entries(project / ".cudalint_cache"))
    done = cli("clean")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"Removed {count} entries from {project / '.cudalint_cache'}.\n"
    assert not (project / ".cudalint_cache").exists()
    assert cli("clean").stderr.startswith("Removed 0 entries")
    assert cli("clean", "--cache-dir", ".").returncode == 0
    assert (project / "train.py").exists()


def unusable() -> Iterator[tuple[str, Callable[[Path], Mapping[str, str]], str]]:
    def a_file(project: Path) -> Mapping[str, str]:
        write(project / ".cudalint_cache", "mine")
        return {}

    def read_only(_: Path) -> Mapping[str, str]:
        return {"CUDALINT_CACHE_DIR": "/proc/cudalint"}

    def an_open_key(project: Path) -> Mapping[str, str]:
        key = write(project.parent / "keys" / "cudalint" / "key", "k" * 32)
        key.chmod(0o644)
        return {"XDG_CACHE_HOME": str(project.parent / "keys")}

    def homeless(_: Path) -> Mapping[str, str]:
        return {"HOME": "nowhere"}

    yield "a file", a_file, "the cache "
    yield "read only", read_only, "the cache "
    if sys.platform == "linux":
        yield "an open key", an_open_key, "there is no cache: others may use "
    yield "homeless", homeless, "there is no cache: no key can be kept"


@pytest.mark.parametrize(("spoil", "words"), [pytest.param(*rest, id=name) for name, *rest in unusable()])
def test_a_run_without_a_usable_cache_goes_on(
    cli: Cli, project: Path, spoil: Callable[[Path], Mapping[str, str]], words: str
) -> None:
    without = cli("check", "--output-format", "json", "--no-cache")
    more = spoil(project)
    done = cli("check", "--output-format", "json", **more)
    assert (done.stdout, done.stderr, done.returncode) == (without.stdout, "", 1)
    asked = cli("check", "--output-format", "json", "-v", **more)
    assert len([line for line in asked.stderr.splitlines() if " cache" in line]) == 1
    assert f"cudalint: {words}" in asked.stderr


def test_a_key_that_is_none_is_an_error(cli: Cli) -> None:
    done = cli("check", CUDALINT_CACHE_KEY="secret")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "cudalint: error: CUDALINT_CACHE_KEY must be 32 to 128 hexadecimal digits\n"


def test_flake8_finds_what_was_kept(project: Path, surroundings: Mapping[str, str]) -> None:
    write(project / "alone.py", HELPER + MAIN.replace("import helper\n", "").replace("helper.warm_up", "warm_up"))
    command = [sys.executable, "-m", "flake8", "--select", "CUD", "alone.py", "quiet.py"]

    def lines() -> str:
        done = subprocess.run(command, cwd=project, env=surroundings, capture_output=True, text=True, check=False)
        return done.stdout

    first = lines()
    assert "CUD101" in first
    kept = {path: path.stat().st_mtime_ns for path in entries(project / ".cudalint_cache")}
    assert {path.parent.parent.name for path in kept} == {"entries", "facts", "modules", "places", "results", "runs"}
    assert lines() == first
    assert {path: path.stat().st_mtime_ns for path in entries(project / ".cudalint_cache")} == kept


# -- lowered files -------------------------------------------------------------------------------------------------


def same(left: Any, right: Any) -> bool:
    """Whether two forms are made of the same nodes; nodes themselves compare by identity."""
    if isinstance(left, Postponed) or isinstance(right, Postponed):
        return all(isinstance(s, Postponed | ir.Code) for s in (left, right)) and same(left.code(), right.code())
    if type(left) is not type(right):
        return False
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if not isinstance(left, Struct):
        return repr(left) == repr(right) if isinstance(left, float | complex) else left == right
    names = left.__struct_fields__
    return all(same(getattr(left, name), getattr(right, name)) for name in names)


def test_sameness_sees_a_difference() -> None:
    first, second = lower("f(1, -0.0)\n", "a.py", "a"), lower("f(1, -0.0)\n", "a.py", "a")
    assert same(first, second)
    assert first != second
    assert not same(first, lower("f(2, -0.0)\n", "a.py", "a"))
    assert not same(first, lower("f(1, -0.0)\n", "b.py", "a"))


def test_stored_forms_are_those_that_lowering_gives() -> None:
    for path in FIXTURES[::4]:
        text = path.read_text(encoding="utf-8")
        module = lower(text, str(path), "name")
        data = stored.encoded(module)
        assert data is not None
        assert same(decoded(data), module), path


CONSTANTS = "x = (1, 1.5, -0.0, 2j, 'a', b'a', True, None, ..., 10**30, 1e999, '\\ud800')\n"
STATEMENTS = """
async def f(a, *b, c=1, **d):
    async with a as x, b: await x
    async for y in a: yield y
    match a:
        case 1 | 2 if b: pass
        case {"k": v}: return
class C(Base, metaclass=M):
    x: int
    def m(self): nonlocal_ = lambda *a: (z := a); del nonlocal_; raise E from None
try: pass
except* (A, B) as e: assert e
else: global g
finally: g += f"{x!r:>{w}}"
while a if b else not c: break
for i, *j in {1: 2, **k}: continue
from . import *
from ..a import b as c
import a.b as d, e
[x async for x in y if x for z in x]; {x for x in y}; {x: y for x in y}; a[1:2, ...]; a @ b < c < d and e or ~f
"""


@pytest.mark.parametrize("text", [CONSTANTS, STATEMENTS, ""])
def test_all_that_python_says_comes_back(text: str, store: Store) -> None:
    first = read(text, "a.py", "a", store)
    again = read(text, "a.py", "a", store)
    assert (first.is_fresh, again.is_fresh) == (True, False)
    assert same(first.module, again.module)
    assert same(again.module, lower(text, "a.py", "a"))


def test_a_form_does_not_depend_on_where_its_file_lies(store: Store) -> None:
    read("x = 1\n", "a.py", "a", store)
    form = read("x = 1\n", "/b/c.py", "b.c", store)
    assert not form.is_fresh
    assert same(form.module, lower("x = 1\n", "/b/c.py", "b.c"))


def test_syntax_errors_are_kept(store: Store) -> None:
    first, again = (read("def (:\n", "a.py", "a", store) for _ in range(2))
    assert isinstance(first.module, Unparsable)
    assert again == replace(first, is_fresh=False)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="pickle minds the stack of the process there, not the limit")
def test_what_is_nested_too_deeply_for_pickle_is_lowered_each_time(store: Store) -> None:
    text = "x" + ".f()" * 400 + "\n"
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 250)
    try:
        forms = [read(text, "a.py", "a", store) for _ in range(2)]
    finally:
        sys.setrecursionlimit(limit)
    assert [form.is_fresh for form in forms] == [True, True]
    assert all(isinstance(form.module, ir.Module) for form in forms)
    with room(MACHINE):
        assert [read(text, "a.py", "a", store).is_fresh for _ in range(2)] == [True, False]


def test_places_are_those_of_the_text(store: Store) -> None:
    text = STATEMENTS
    expected = all_spans(text, "a.py", "a")
    every = [*expected, max(expected) + 1]
    some = list(expected)[::7]
    assert placed(text, "a.py", "a", some, store) == {ordinal: expected[ordinal] for ordinal in some}
    assert placed(text, "a.py", "a", every, store) == expected
    assert placed(text, "a.py", "a", some, store) == {ordinal: expected[ordinal] for ordinal in some}
    moved = placed(text, "b.py", "b", some, store)
    assert {span.filename for span in moved.values()} == {"b.py"}


def test_places_that_are_known_ask_no_parser(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = sorted(all_spans(STATEMENTS, "a.py", "a"))[3:6]
    expected = placed(STATEMENTS, "a.py", "a", [first, second], store)

    def refuse(*_: object) -> object:
        raise AssertionError("parsed again")

    monkeypatch.setattr(stored, "spans", refuse)
    assert placed(STATEMENTS, "a.py", "a", [first], store) == {first: expected[first]}
    with pytest.raises(AssertionError, match="parsed again"):
        placed(STATEMENTS, "a.py", "a", [first, third], store)
