"""Generated projects with cycles and deep calls: work grows with their size and no faster, and what was cut is said.

Seconds and memory of the largest one are measured by `python -m bench.large_project`.
"""

from __future__ import annotations

import pytest
from bench.bounds import bounds, exceeded
from bench.large_project import measure

from cudalint.project.analysis import Analysis, Options, analyse
from cudalint.text.source import SourceFile

pytestmark = pytest.mark.long

FEW, MANY = 20, 60


@pytest.fixture(scope="module")
def few() -> Analysis:
    return measure(FEW)[0]


@pytest.fixture(scope="module")
def many() -> Analysis:
    return measure(MANY)[0]


def test_work_grows_with_the_project_and_no_faster(few: Analysis, many: Analysis) -> None:
    assert few.work.entries
    assert many.work.entries
    assert many.work.entries <= MANY * 2
    assert many.work.steps <= many.work.entries * 13_000
    assert many.work.steps / MANY <= 3 * few.work.steps / FEW
    assert many.work.files_parsed <= many.work.files_read
    assert many.work.nodes_lowered / MANY <= 1.5 * few.work.nodes_lowered / FEW


def test_a_generated_project_costs_no_more_than_it_may(few: Analysis, many: Analysis) -> None:
    for modules, found in ((FEW, few), (MANY, many)):
        assert exceeded(bounds()[f"generated-{modules}"], found.work) == []


def test_what_a_bound_cut_is_said_once_per_entry(many: Analysis) -> None:
    cut = [note for note in many.notes if "cut off" in note]
    assert any("calls nested too deeply" in note for note in cut)
    assert len(cut) == len(set(cut)) <= many.work.entries


def test_an_expression_of_many_alternatives_keeps_few_paths() -> None:
    options = ", ".join(f"given.a{number} or given.b{number}" for number in range(18))
    text = (
        "import multiprocessing\n\nimport torch\n\n\ndef work(i):\n    return torch.ones(1, device='cuda')\n\n\n"
        f"def main(given):\n    settings = [{options}]\n    torch.zeros(1, device='cuda')\n"
        "    with multiprocessing.Pool(2) as pool:\n        pool.map(work, settings)\n\n\n"
        "if __name__ == '__main__':\n    import options\n\n    main(options.read())\n"
    )
    found = analyse([SourceFile("options_of_many.py", text, text.encode())], Options())
    assert [finding.code for finding in found.findings] == ["CUD101"]
    assert found.notes == ()
