"""Of tests that lead through much code, those are run that name what starts something, and a GPU near by."""

from __future__ import annotations

import pytest
from small_projects import ROOT, sources

from cudalint.project import distance
from cudalint.project.analysis import Analysis, Options, analyse
from cudalint.project.entries import FAR_TESTS

WORK = "import torch\n\n\ndef work(n):\n    return torch.ones(n, device='cuda')\n\n\n"
POOLS = (
    "from multiprocessing import Pool\n\nfrom app.models import work\n\n\n"
    "def through_a_pool(f, items):\n    with Pool(2) as pool:\n        return pool.map(f, items)\n\n\n"
    "def embedded(items):\n    return through_a_pool(work, items)\n\n\n"
    "class Embedder:\n    def run(self, items):\n        return embedded(items)\n\n\n"
    "def number_of(items):\n    return len(items)\n"
)
USED = "    torch.zeros(1, device='cuda')\n"
# Ways in which a test comes to a forked worker that uses CUDA after it did: all of them name what starts it.
NEAR = {
    "itself": (
        "from multiprocessing import Pool\n\nimport torch\nfrom app.models import work\n\n\n"
        f"def test_it():\n{USED}    Pool(2).map(work, [1])\n"
    ),
    "by a function": f"import torch\nfrom app.pools import embedded\n\n\ndef test_it():\n{USED}    embedded([1])\n",
    "by a class": f"import torch\nfrom app.pools import Embedder\n\n\ndef test_it():\n{USED}    Embedder().run([1])\n",
    "by a package": f"import torch\nfrom app import embedded\n\n\ndef test_it():\n{USED}    embedded([1])\n",
    "by a method of its class": (
        "import unittest\n\nimport torch\nfrom app.pools import embedded\n\n\nclass TestIt(unittest.TestCase):\n"
        f"    def embed(self):\n        return embedded([1])\n\n"
        f"    def test_it(self):\n    {USED}        self.embed()\n"
    ),
    "by a class above": (
        "import unittest\n\nimport torch\nfrom app.pools import embedded\n\n\nclass Case(unittest.TestCase):\n"
        f"    def setUp(self):\n    {USED}        embedded([1])\n\n\n"
        "class TestIt(Case):\n    def test_it(self):\n        pass\n"
    ),
}
# What names nothing of the kind; the helper comes to a launcher by a module in between.
FAR = f"import torch\nfrom app.middle import embed\n\n\ndef test_it():\n{USED}    embed([1])\n"
MIDDLE = "from app.pools import embedded\n\n\ndef embed(items):\n    return embedded(items)\n"


def project(test: str, conftest: str = "") -> dict[str, str]:
    return {
        "app/__init__.py": "from app.pools import embedded\n",
        "app/models.py": WORK,
        "app/pools.py": POOLS,
        "app/middle.py": MIDDLE,
        "tests/conftest.py": conftest,
        "tests/test_app.py": test,
    }


def checked(test: str, conftest: str = "") -> Analysis:
    return analyse(sources(project(test, conftest)), Options(), root=ROOT)


def by_the_test(analysis: Analysis) -> list[str]:
    """What is found on a path that begins in the test."""
    return [f.code for f in analysis.findings if any(s.span.filename.endswith("test_app.py") for s in f.trace)]


@pytest.fixture
def _much_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any code counts as much."""
    monkeypatch.setattr(distance, "MOST_BETWEEN", 0)


@pytest.mark.usefixtures("_much_code")
@pytest.mark.parametrize("way", NEAR)
def test_what_names_something_that_starts_workers_is_run_however_much_it_reaches(way: str) -> None:
    found = checked(NEAR[way])
    assert by_the_test(found) == ["CUD101"]
    assert not any(FAR_TESTS in note for note in found.notes)


@pytest.mark.usefixtures("_much_code")
def test_a_fixture_of_another_file_may_name_it() -> None:
    conftest = (
        "import pytest\nimport torch\n\nfrom app.pools import embedded\n\n\n@pytest.fixture\ndef embeddings():\n"
        f"{USED}    return embedded([1])\n"
    )
    found = checked("def test_it(embeddings):\n    assert embeddings\n", conftest)
    assert [f.code for f in found.findings] == ["CUD101"]


def test_a_test_that_names_nothing_is_run_in_a_small_program() -> None:
    assert by_the_test(checked(FAR)) == ["CUD101"]


@pytest.mark.usefixtures("_much_code")
def test_a_test_that_names_nothing_is_not_run_in_a_large_program_and_that_is_said() -> None:
    found = checked(FAR)
    assert by_the_test(found) == []
    assert f"1 test files {FAR_TESTS}" in found.notes


@pytest.mark.usefixtures("_much_code")
def test_beside_tests_that_name_something_the_others_are_not_run_and_that_is_said() -> None:
    plain = "\n\ndef test_plain():\n    assert number_of([1]) == 1\n"
    alone = checked(NEAR["by a function"])
    found = checked(NEAR["by a function"].replace("import embedded", "import embedded, number_of") + plain)
    assert by_the_test(found) == ["CUD101"]
    assert (found.work.entries, found.work.cut) == (alone.work.entries, alone.work.cut)
    assert any(note.endswith(f"test_app.py: tests {FAR_TESTS}") for note in found.notes)


@pytest.mark.usefixtures("_much_code")
def test_a_file_that_pytest_and_python_run_is_run_as_a_program() -> None:
    found = checked(f"{FAR}\n\nif __name__ == '__main__':\n    test_it()\n")
    assert "CUD101" in by_the_test(found)
