"""Which modules' entries run for the sake of one file: those that lead to it, and what these import."""

from __future__ import annotations

from pathlib import Path

from cudalint.models.library import load
from cudalint.project.near import near
from cudalint.project.program import program
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
    sources = [SourceFile(f"/p/{name}", text, text.encode()) for name, text in FILES.items()]
    files = program(sources, load(), "/p")
    found = near(files, [f"/p/{name}" for name in names])
    return {str(Path(files.sources[name].path).relative_to("/p")) for name in found}


def test_who_imports_a_file_and_what_that_imports_is_near() -> None:
    found = around("lib/worker.py")
    assert {"train.py", "lib/__init__.py", "lib/worker.py", "helper.py"} <= found


def test_who_shares_only_a_helper_is_not_near() -> None:
    assert "other.py" not in around("lib/worker.py")


def test_tests_below_a_conftest_that_leads_to_the_file_are_near() -> None:
    found = around("lib/worker.py")
    assert "tests/test_it.py" in found
    assert "unrelated/test_it.py" not in found


def test_a_servers_configuration_names_its_application_without_importing_it() -> None:
    assert "gunicorn.conf.py" in around("train.py")


def test_a_file_that_nothing_imports_is_near_itself_alone() -> None:
    assert around("other.py") == {"other.py", "helper.py", "gunicorn.conf.py"}
