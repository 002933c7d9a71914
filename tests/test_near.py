"""Which modules' entries run for the sake of one file: those that lead to it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from sampling import every
from small_projects import FOLDER, ROOT, cases, files, sources

from cudalint.finding import Finding
from cudalint.limits import DEFAULT, Limits
from cudalint.models.library import load
from cudalint.project.analysis import Options, analyse
from cudalint.project.assembling import program
from cudalint.project.import_graph import ImportGraph
from cudalint.project.near import naming, near
from cudalint.project.patience import LEFT_OUT, MOST_DETOURS
from cudalint.text.source import SourceFile

FILES = {
    "train.py": "import helper\nfrom lib import (\n    worker,\n)\n",
    "lib/__init__.py": "",
    "lib/worker.py": "import torch\n",
    "helper.py": "import torch\n",
    "other.py": "import helper\n",
    "tests/conftest.py": "from lib.worker import work\n",
    "tests/test_it.py": "def test_it(work):\n    pass\n",
    "unrelated/test_it.py": "def test_it(work):\n    pass\n",
    "gunicorn.conf.py": "wsgi_app = 'train:app'\n",
}


def around(*names: str) -> set[str]:
    texts = [SourceFile(f"/p/{name}", text, text.encode()) for name, text in FILES.items()]
    read = program(texts, load(), "/p")
    found = near(read, [f"/p/{name}" for name in names])
    return {str(Path(read.sources[name].path).relative_to("/p")) for name in found}


def test_who_imports_a_file_is_near() -> None:
    assert {"train.py", "lib/worker.py"} <= around("lib/worker.py")


def test_who_shares_only_a_helper_is_not_near() -> None:
    assert not {"other.py", "helper.py"} & around("lib/worker.py")


def test_tests_below_a_conftest_that_leads_to_the_file_are_near() -> None:
    found = around("lib/worker.py")
    assert "tests/test_it.py" in found
    assert "unrelated/test_it.py" not in found


def test_a_servers_configuration_names_its_application_without_importing_it() -> None:
    assert "gunicorn.conf.py" in around("train.py")


def test_a_file_that_nothing_imports_is_near_itself_alone() -> None:
    assert around("other.py") == {"other.py", "gunicorn.conf.py"}


def test_of_a_whole_project_no_names_are_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take each module with each: two minutes for transformers."""
    texts = [SourceFile(f"/p/{name}", text, text.encode()) for name, text in FILES.items()]
    read = program(texts, load(), "/p")
    monkeypatch.setattr(ImportGraph, "below", None)
    assert naming(read, frozenset(read.sources), sorted(read.sources)) == read.sources.keys()


# Programs that reach the file through another module, and do other things: two hundred statements each.
BY_WAY = "import between\n\n" + "print(between.NAME)\n" * 200
LIB = """\
import multiprocessing

import torch


def work(n):
    return torch.ones(n, device="cuda").sum().item()


def start():
    torch.zeros(1, device="cuda")
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(work, [1, 2]))
"""
MANY = {
    "lib.py": LIB,
    "between.py": "import lib\n\nNAME = 'x'\n\n\ndef go():\n    lib.start()\n",
    "main.py": "import between\n\nbetween.go()\n",
    **{f"other{i}.py": BY_WAY for i in range(12)},
}


@pytest.mark.parametrize("about", [frozenset({"/p/lib.py"}), None])
def test_programs_that_come_to_nothing_of_the_file_have_steps_together(about: frozenset[str] | None) -> None:
    texts = [SourceFile(f"/p/{name}", text, text.encode()) for name, text in MANY.items()]
    # As a thousand steps of detours.
    small = Options(limits=Limits(steps=DEFAULT.steps * 1000 // MOST_DETOURS))
    analysis = analyse(texts, small, root="/p", about=about)
    assert [(one.code, one.span.start.row) for one in analysis.findings] == [("CUD101", 13)]
    left_out = [note for note in analysis.notes if LEFT_OUT in note]
    assert len(left_out) == (0 if about is None else 7)


# ---------------------------------------------------------------- a check of one file says what one of all says of it

# Who calls the launcher lies in the file, which no other module names; or a text names the file.
PAGE = (
    "a page hands over a function that starts workers in another module, in a method that nobody is seen to call "
    "(ddPn08/rvc-webui#20)"
)
LEFT_TO_A_WHOLE_CHECK = {
    ("caller in another module that nobody calls, guilty", "pkg/train.py"),
    ("caller in another module that nobody calls, clean: 102 once", "pkg/train.py"),
    ("guilty caller uncalled, class instantiated elsewhere", "lib/api.py"),
    ("names of a lazy package that are there", "pkg/machines.py"),
    ("a module that the fork server imports first asks for a GPU", "devices.py"),
    ("a program that sets Django up and starts workers", "scoring/models.py"),
    ("a configuration names the class of a handler", "handlers.py"),
    ("a module that another file imports late, by the text that it is handed", "lab/gpu.py"),
    # What is found stands in the module of the handler, or of the ranks; only its trace begins here.
    ("the same, where it chooses none", "pk/__init__.py"),
    ("the same, where it chooses none", "pk/parts.py"),
    ("a handler of a file that knows nothing of the application that names it", "main.py"),
    ("ranks that another program starts, all of which see all GPUs", "launcher.py"),
    (PAGE, "tab.py"),
    (PAGE, "shared.py"),
    ("the same of a handler that tells how far it is", "tab.py"),
    ("the same of a handler that tells how far it is", "shared.py"),
    (
        "plugins of a package that the program imports and hands on use the GPU, and nothing else names it",
        "plugins/gpu.py",
    ),
    ("plugins of a package that the program names by a word", "plugins/gpu.py"),
    ("plugins that the program names one by one", "plugins/gpu.py"),
    (
        "a walk with a prefix gives what lies deeper by its whole name, and nobody imports the one that is passed over",
        "plugins/gpu/arch.py",
    ),
}


def touching(found: Iterable[Finding], path: str) -> set[Finding]:
    return {one for one in found if path in {one.span.filename, *(step.span.filename for step in one.trace)}}


@pytest.mark.parametrize("table", sorted(path.name for path in FOLDER.glob("*.txt")))
def test_a_check_of_one_file_finds_what_a_check_of_all_finds_in_it(table: str) -> None:
    differing: set[tuple[str, str]] = set()
    known = {case for case, _ in LEFT_TO_A_WHOLE_CHECK}
    step = every(7)
    for number, (name, text) in enumerate(cases(table).items()):
        if number % step and name not in known:
            continue
        given = sources(files(text))
        everything = analyse(given, Options(), root=ROOT).findings if len(given) > 1 else ()
        for path in {source.path for source in given} if everything else ():
            alone = analyse(given, Options(), root=ROOT, about=frozenset({path})).findings
            if touching(alone, path) != touching(everything, path):
                differing.add((name, path.removeprefix(f"{ROOT}/")))
    assert differing == {left for left in LEFT_TO_A_WHOLE_CHECK if left[0] in cases(table)}
