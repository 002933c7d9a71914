"""A changed program: only what runs the changed functions is run again, and what stays undone is still seen."""

from __future__ import annotations

import pytest
from small_projects import ROOT, sources

from cudalint.ir.lower import lower
from cudalint.ir.walk import functions
from cudalint.project.analysis import MOST_OTHERS, Options, analyse, analyse_again
from cudalint.project.changes import renumbered, touched

TEXT = """\
import os

LIMIT = 3


def first(x):
    a = x
    return a


class Thing:
    size = 1

    def second(self):
        def inner():
            return 1
        return inner()


@os.fspath
def third(x=LIMIT):
    return x
"""


def names(after: str) -> set[str] | None:
    module = lower(TEXT, "/p/m.py", "m")
    found = touched(TEXT, after, module)
    if found is None:
        return None
    known = {("m", f.ordinal): f.qualname for f in functions(module.body)}
    return {known[place] for place in found}


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("    a = x\n", "    a = x + 1\n", {"first"}),
        ("    a = x\n", "    b = 0\n    a = x\n", {"first"}),
        ("    return a\n", "    return a\n    print(a)\n", {"first"}),
        ("            return 1\n", "            return 2\n", {"Thing.second"}),
        ("import os\n", "import os\nimport sys\n", set()),
        ("import os\n", "", None),
        ("LIMIT = 3", "LIMIT = 4", None),
        ("size = 1", "size = 2", None),
        ("def first(x):", "def first(x, y=0):", None),
        ("@os.fspath\n", "", None),
        ("x=LIMIT", "x=1", None),
        ("import os\n", "import os\nos.fork()\n", None),
        ("    a = x\n", "a = (\n", {"first"}),
    ],
)
def test_where_a_change_lies(old: str, new: str, wanted: set[str] | None) -> None:
    assert TEXT.count(old) == 1
    assert names(TEXT.replace(old, new)) == wanted


def test_several_changes_lie_in_several_functions() -> None:
    assert names(TEXT.replace("a = x", "a = 1").replace("return x", "return 1")) == {"first", "third"}
    assert names(TEXT) == set()


def test_a_file_that_is_not_python_may_mean_anything() -> None:
    assert touched("def f(:\n    pass\n", "x = 1\n", lower("x = 1\n", "/p/m.py", "m")) is None


def test_functions_are_found_again_by_their_names() -> None:
    before = lower(TEXT, "/p/m.py", "m")
    after = lower(TEXT.replace("import os\n", "import os\nimport sys\nprint(sys.path)\n"), "/p/m.py", "m")
    now = {f.ordinal: f.qualname for f in functions(after.body)}
    moved = renumbered(before, after)
    assert [now[moved[f.ordinal]] for f in functions(before.body)] == ["first", "Thing.second", "third"]
    assert renumbered(before, None) == {}


CONFTEST_PATH = f"{ROOT}/conftest.py"
CONFTEST = """\
import multiprocessing
import pytest
import torch

def double(x):
    return (torch.ones(1, device="cuda") * x).item()

@pytest.fixture
def gpu():
    torch.cuda.init()
    return 1

@pytest.fixture
def pool(gpu):
    with multiprocessing.get_context("fork").Pool(1) as workers:
        yield workers.map(double, [1, 2])

@pytest.fixture
def plain():
    return multiprocessing.cpu_count()
"""
USER = "import torch\n\ndef test_{n}_pool(pool):\n    assert pool\n\ndef test_{n}_gpu(gpu):\n    assert gpu\n"
OTHER = "import torch\n\n" + "".join(f"def test_{{n}}_{i}(plain):\n    assert torch.ones(1)\n\n" for i in range(9))


def test_only_tests_that_reach_a_change_are_run_again() -> None:
    texts = {"conftest.py": CONFTEST}
    texts |= {f"test_user{n}.py": USER.format(n=n) for n in range(2)}
    texts |= {f"test_other{n}.py": OTHER.format(n=n) for n in range(4)}
    first = analyse(sources(texts), Options(), root=ROOT)
    [finding] = first.findings
    assert finding.code == "CUD101"
    assert first.basis is not None
    mended = CONFTEST.replace('get_context("fork")', 'get_context("spawn")')
    again = analyse_again(first.basis, {CONFTEST_PATH: mended}, finding)
    assert again.findings == ()
    # Of seven files the collection, and of six all tests; then of two of them the collection and the test of the pool.
    assert (first.work.entries, again.work.entries) == (7 + 2 * 2 + 4 * 9, 2 * 2)
    # A change of what the others use as well, in the program as it is now.
    assert again.basis is not None
    undone = mended.replace('get_context("spawn")', 'get_context("fork")').replace("cpu_count()", "cpu_count() + 1")
    last = analyse_again(again.basis, {CONFTEST_PATH: undone}, finding)
    assert [found.code for found in last.findings] == ["CUD101"]
    # All but a few tests reach it: those that are left out of a trial are named.
    assert last.basis is not None
    assert last.work.entries == 5 + MOST_OTHERS
    # Three modules are not even collected.
    assert last.work.entries + len(last.basis.untried) == first.work.entries - 3 - 3
