"""What looking for repairs costs, counted in trials, trees and nodes, for more and more findings in one file."""

from __future__ import annotations

import pytest

from cudalint.finding import Applicability, Finding, Fix
from cudalint.fixes import engine
from cudalint.fixes.engine import Run, repaired
from cudalint.fixes.view import MOST_VIEWS, Views
from cudalint.project import analysis
from cudalint.project.analysis import MOST_OTHERS, Analysis, Options, analyse
from cudalint.text.source import SourceFile

HEAD = "import multiprocessing\n\nimport torch\n\n\ndef work(n):\n    return torch.ones(n, device='cuda').item()\n"


def launches(count: int) -> SourceFile:
    tests = (
        f"\n\ndef test_launch{i}():\n    torch.zeros(1, device='cuda')\n"
        f"    with multiprocessing.Pool(2) as pool:\n        return pool.map(work, [{i}])\n"
        for i in range(count)
    )
    text = HEAD + "".join(tests)
    return SourceFile("test_launches.py", text, text.encode())


def trials(monkeypatch: pytest.MonkeyPatch) -> list[Analysis]:
    """The analyses that trials of repairs make from here on."""
    tried: list[Analysis] = []
    real = analysis.analyse_again

    def counted(*given: object) -> Analysis:
        tried.append(real(*given))  # type: ignore[arg-type]
        return tried[-1]

    monkeypatch.setattr(engine, "analyse_again", counted)
    return tried


def searched(count: int, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[Finding, Fix], Run, list[Analysis]]:
    """The repairs of so many launches, what the search kept, and the analyses that trials made."""
    tried = trials(monkeypatch)
    found, run = analyse([launches(count)], Options()), Run()
    return repaired(found, found.findings, run), run, tried


@pytest.mark.parametrize("count", [20, 40])
def test_a_finding_costs_the_same_however_many_there_are(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    fixes, run, tried = searched(count, monkeypatch)
    assert len(fixes) == run.trials == len(tried) == count
    # One for the file as it is: a repair of a file that was changed needs one more, and here none does.
    assert run.views.made == 1
    for trial in tried:
        # The collection, and the one test that the change reaches; of the files the changed one.
        assert trial.work.entries == 2
        assert trial.basis is not None
        assert len(trial.basis.files.parsed) == 1
    # Steps per trial do not grow with the findings: the collection binds names, ten statements to a step.
    assert max(trial.work.steps for trial in tried) <= 20 + count // 5


def test_trials_of_a_run_are_bounded_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MOST_TRIALS_OF_RUN", 6)
    fixes, run, tried = searched(10, monkeypatch)
    assert len(tried) == run.trials == 6
    assert len(fixes) == 6
    assert run.notes == (
        "test_launches.py: 6 repairs were tried out in this run, the most that it may cost, and none for 4 findings "
        "here: repair the others first, or check this file alone",
    )
    assert Run().notes == ()


def test_trials_of_a_run_cost_so_many_times_what_finding_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each trial of n launches costs n, so n of them must not all be tried out."""
    monkeypatch.setattr(engine, "MOST_WORK", 0)
    monkeypatch.setattr(engine, "MOST_TIMES", 1)
    done = []
    for count in (20, 40):
        found = analyse([launches(count)], Options())
        run = Run([found])
        fixes = repaired(found, found.findings, run)
        assert 0 < len(fixes) < count
        assert f"none for {count - len(fixes)} findings here" in "".join(run.notes)
        done.append(run.work)
    assert done[1] < 2.2 * done[0]


def test_views_are_made_once_and_few_are_kept() -> None:
    views = Views()
    sources = [SourceFile(f"f{i}.py", text := f"x = {i}\n", text.encode()) for i in range(MOST_VIEWS + 1)]
    first = views.of(sources[0], "f0")
    assert views.of(sources[0], "f0") is first
    for i, source in enumerate(sources[1:], 1):
        views.of(source, f"f{i}")
    assert views.made == MOST_VIEWS + 1
    assert views.of(sources[-1], f"f{MOST_VIEWS}") is not first
    assert views.made == MOST_VIEWS + 1
    assert views.of(sources[0], "f0") is not first
    assert views.made == MOST_VIEWS + 2


LIBRARY = HEAD + (
    "\n\ndef run(uses_gpu):\n    if uses_gpu:\n        torch.zeros(1, device='cuda')\n"
    "    with multiprocessing.Pool(2) as pool:\n        return pool.map(work, [1])\n"
)


@pytest.mark.parametrize(("others", "tried_out"), [(4, 4), (MOST_OTHERS, MOST_OTHERS), (MOST_OTHERS + 4, MOST_OTHERS)])
def test_of_the_modules_that_reach_a_change_only_some_try_it_out(
    others: int, tried_out: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = {
        f"main{i}.py": f"from library import run\n\nif __name__ == '__main__':\n    run({not i})\n"
        for i in range(others + 1)
    }
    sources = [SourceFile(p, t, t.encode()) for p, t in {"library.py": LIBRARY, **programs}.items()]
    tried = trials(monkeypatch)
    found = analyse(sources, Options(target_versions=((3, 11), (3, 11))))
    (fix,) = repaired(found, found.findings).values()
    assert [finding.code for finding in found.findings] == ["CUD101"]
    # The program that shows it, and others.
    assert tried[0].work.entries == 1 + tried_out
    left = others - tried_out
    assert fix.reason == (f"what is changed runs in {left} more ways than were tried out" if left else None)


STEP = """\
import multiprocessing
import os

import torch

from library import run


def step(weights):
    if os.fork() == 0:
        print(weights + 1)
        os._exit(0)


def main():
    weights = torch.zeros(1, device="cuda")
    run()
    step(weights)
"""
LOADING = """\
import torch
from torch.utils.data import DataLoader, Dataset


class Ones(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.ones(1, device="cuda").item()


def run():
    for batch in DataLoader(Ones(), num_workers=2):
        print(batch)
"""


def test_what_an_error_hides_from_its_function_is_seen_in_a_trial() -> None:
    """``step`` ran alone, for ``main`` did not come so far; after the repair it does, and the fork in it fails."""
    alone = "from library import run\n\nif __name__ == '__main__':\n    run()\n"
    programs = {"library.py": LOADING, "app.py": STEP, "alone.py": alone}
    sources = [SourceFile(p, t, t.encode()) for p, t in programs.items()]
    found = analyse(sources, Options(target_versions=((3, 11), (3, 11))))
    assert [finding.code for finding in found.findings] == ["CUD401"]
    (fix,) = repaired(found, found.findings).values()
    assert fix.applicability is Applicability.DISPLAY


def test_a_name_that_a_repair_brings_is_found_by_those_who_lacked_it() -> None:
    lifted = (
        "import multiprocessing\n\nimport torch\n\n\ndef run():\n    def work(n):\n"
        "        print(torch.zeros(n).cuda())\n"
        "\n    with multiprocessing.get_context('spawn').Pool(2) as pool:\n        pool.map(work, [1])\n"
        "\n\nif __name__ == '__main__':\n    run()\n"
    )
    lacking = (
        "import multiprocessing\n\nimport torch\n\nfrom library import work\n\nif __name__ == '__main__':\n"
        "    torch.cuda.init()\n    multiprocessing.get_context('fork').Process(target=work, args=(1,)).start()\n"
    )
    sources = [SourceFile(p, t, t.encode()) for p, t in {"library.py": lifted, "other.py": lacking}.items()]
    found = analyse(sources, Options())
    assert [finding.code for finding in found.findings] == ["CUD108"]
    (fix,) = repaired(found, found.findings).values()
    # With the function alone the other program would come to the next error.
    assert {edit.span.filename for edit in fix.edits} == {"library.py", "other.py"}
