"""Of a module whose tests come to no end, those are still run that start something themselves."""

from __future__ import annotations

import pytest

from cudalint.project.analysis import Analysis, Options, analyse
from cudalint.project.patience import GIVEN_UP, MOST_IN_VAIN
from cudalint.text.source import SourceFile

# Each call calls the next three times, with other arguments each time, and in the end does something.
LONG = "".join(
    f"def step{i}(x):\n    step{i + 1}(3 * x)\n    step{i + 1}(3 * x + 1)\n    step{i + 1}(3 * x + 2)\n\n\n"
    for i in range(9)
)
USED = "    torch.zeros(1, device='cuda')\n"
HEAD = (
    "import multiprocessing\nimport os\n\nimport pytest\nimport torch\n\n\n"
    f"{LONG}def step9(x):\n    os.environ['STEP'] = str(x)\n\n\n"
    "def work(n):\n    return torch.ones(n, device='cuda')\n\n\n"
    "def started():\n    return multiprocessing.Pool(2)\n\n\n"
    "def indirectly():\n    return started()\n\n\n"
    f"@pytest.fixture\ndef pool():\n{USED}    yield started()\n\n\n"
    "class Pools:\n    def one(self):\n        return started()\n\n\n"
)
# Ways in which a test starts something, each a true CUD101.
STARTING = {
    "itself": f"def test_last():\n{USED}    multiprocessing.Pool(2).map(work, [1])\n",
    "by a function": f"def test_last():\n{USED}    started().map(work, [1])\n",
    "by a function of a function": f"def test_last():\n{USED}    indirectly().map(work, [1])\n",
    "by a class": f"def test_last():\n{USED}    Pools().one().map(work, [1])\n",
    "by a fixture": "def test_last(pool):\n    pool.map(work, [1])\n",
}


def checked(*tests: str) -> Analysis:
    text = HEAD + "\n\n".join(tests)
    return analyse([SourceFile("test_it.py", text, text.encode())], Options())


def endless(count: int) -> list[str]:
    return [f"def test_{i}():\n    step0({i})\n" for i in range(count)]


@pytest.mark.parametrize("way", STARTING)
def test_what_starts_something_is_run_after_tests_in_vain(way: str) -> None:
    found = checked(*endless(MOST_IN_VAIN + 2), STARTING[way])
    assert [f.code for f in found.findings] == ["CUD101"]
    assert any(GIVEN_UP in note for note in found.notes)


def test_what_starts_nothing_is_given_up_and_counted_as_cut() -> None:
    some, more = (checked(*endless(MOST_IN_VAIN + n)) for n in (0, 20))
    assert more.work.cut == some.work.cut + 20
    assert more.work.functions == some.work.functions
    assert not any(GIVEN_UP in note for note in some.notes)
    assert any(GIVEN_UP in note for note in more.notes)


def test_tests_that_come_to_an_end_are_all_run() -> None:
    short = [f"def test_short_{i}():\n    step8({i})\n" for i in range(30)]
    found = checked(*endless(MOST_IN_VAIN - 1), *short)
    assert found.work.cut == MOST_IN_VAIN - 1
