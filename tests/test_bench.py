"""The benchmark measures what it says, and what runs may cost is bounded in counts, which no noise can touch."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import astuple
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest
from bench import __main__ as bench
from bench import chart, corpus, report, sizes
from bench.bounds import bounds, exceeded
from bench.runs import Counts, Kind, Project, Sample, Tools, counted, measured
from ecosystem import check, kept, packages
from ecosystem.usage import used

from cudalint import config
from cudalint.found import Effort
from cudalint.session import Session

if TYPE_CHECKING:
    from conftest import Run

PLAIN = "def process(rows):\n    return [row.strip() for row in rows]\n"
COUNTS = Counts(10, 1_000_000, 2, 500_000, 100, 10, 3, 1)


# -- bounds ------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("name", [package.name for package in packages.pinned() if package.tiny])
def test_a_small_package_is_as_reviewed_and_costs_no_more_than_it_may(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (package,) = (package for package in packages.pinned() if package.name == name)
    try:
        packages.unpacked(package, tmp_path)
    except packages.Unavailable as error:
        pytest.skip(f"{package.folder} could not be downloaded: {error}")
    failed = check.main(["--keep", str(tmp_path), "--tiny", "--only", name, "--limit", "600"])
    assert not failed, capsys.readouterr().out
    # What the same run says that it did.
    known = kept.read(tmp_path / "results" / f"{package.folder}.json")
    assert known is not None
    counts = counted(known.outcome.errors)
    assert counts is not None
    assert counts.files_read > 0
    assert exceeded(bounds()[name], Effort(*astuple(counts))) == []


def test_every_count_is_bounded_and_what_exceeds_one_is_named() -> None:
    for most in bounds().values():
        assert set(most) == {"files_parsed", "nodes_lowered", "functions", "entries", "cut"}
    assert exceeded({"entries": 3, "cut": 0}, Effort(entries=3, cut=1_000)) == ["cut: 1,000, at most 0"]


# -- what a run says of itself -----------------------------------------------------------------------------


def test_what_a_run_says_of_its_work_is_read_back(run: Run, tmp_path: Path, forked: str) -> None:
    text = forked + "\n\ndef never():\n    pass\n"
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    counts = counted(run("check", "--verbose").stderr)
    assert counts is not None
    effort = Session(config.load([str(tmp_path)])).check([str(tmp_path)]).effort
    assert counts == Counts(
        1, len(text), 1, len(text), effort.nodes_lowered, effort.functions, effort.entries, effort.cut
    )
    assert (counts.functions, counts.entries, counts.cut) == (1, 1, 0)


def test_an_entry_that_a_bound_ends_is_counted_as_cut(tmp_path: Path) -> None:
    calls = "\n".join(f"def f{number}():\n    f{number + 1}()\n" for number in range(60))
    text = (
        f"import multiprocessing\n\nimport torch\n\n{calls}\n\ndef f60():\n    torch.zeros(1, device='cuda')\n\n\n"
        "if __name__ == '__main__':\n    f0()\n    multiprocessing.Process(target=f60).start()\n"
    )
    (tmp_path / "deep.py").write_text(text, encoding="utf-8")
    report = Session(config.load([str(tmp_path)])).check([str(tmp_path)])
    assert [note.partition("cut off: ")[2] for note in report.notes] == ["calls nested too deeply"]
    assert (report.effort.entries, report.effort.cut) == (1, 1)


def test_what_other_programs_say_holds_no_counts() -> None:
    assert counted("") is None
    assert counted("cudalint: error: no such file or directory: x\n") is None


# -- measuring ---------------------------------------------------------------------------------------------


def test_a_program_that_takes_too_long_is_ended_and_what_it_used_is_known(tmp_path: Path) -> None:
    with open(os.devnull, "wb") as nothing:
        endless = [sys.executable, "-c", "while True: pass"]
        usage = used(endless, cwd=tmp_path, environment=os.environ, output=nothing, errors=nothing, limit=0.3)
        assert usage.over
        assert usage.code < 0
        assert usage.cpu > 0
        large = [sys.executable, "-c", "x = b'x' * 200_000_000"]
        usage = used(large, cwd=tmp_path, environment=os.environ, output=nothing, errors=nothing, limit=60)
        assert (usage.over, usage.code) == (False, 0)
        assert usage.peak > 200_000_000


def test_an_edit_changes_a_comment_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.py").write_text(PLAIN, encoding="utf-8")
    project = Project("project", folder, "a.py", tmp_path / "cache")
    texts = []
    for number in (1, 2):
        sample = measured(Tools("ruff", caches=False), Kind.TOUCHED, project, number, 60)
        assert (sample.failure, sample.round) == ("", number)
        texts.append((folder / "a.py").read_text(encoding="utf-8"))
    assert texts == [f"{PLAIN}\n# touched by round {number}\n" for number in (1, 2)]


def test_a_run_that_fails_says_why(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.cudalint]\nselekt = []\n", encoding="utf-8")
    project = Project("project", tmp_path, "a.py", tmp_path / "cache")
    sample = measured(Tools("ruff", caches=False), Kind.COLD, project, 1, 60)
    assert sample.failure.startswith("ended with 2: cudalint: error:")
    assert "selekt" in sample.failure


@pytest.fixture
def small(tmp_path: Path) -> list[str]:
    """The options for a corpus of two packages that are already there."""
    entries = []
    for name in ("first", "second"):
        folder = tmp_path / "corpus" / f"{name}-1.0"
        folder.mkdir(parents=True)
        (folder / "a.py").write_text(PLAIN, encoding="utf-8")
        size = f"files = 1\nbytes = {len(PLAIN)}"
        entries.append(f'[[package]]\nname = "{name}"\nversion = "1.0"\nkind = "sdist"\n{size}\nfile = "a.py"\n')
    (tmp_path / "list.toml").write_text("\n".join(entries), encoding="utf-8")
    return ["--corpus", str(tmp_path / "corpus"), "--list", str(tmp_path / "list.toml")]


def test_every_kind_of_run_is_measured_and_the_corpus_stays_as_it_is(
    small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result, docs = tmp_path / "result.json", tmp_path / "docs"
    assert bench.main([*small, "--rounds", "2", "--only", "first", "--json", str(result)]) == 0
    document = json.loads(result.read_text(encoding="utf-8"))
    kinds = [kind.value for kind in Kind]
    assert [(sample["round"], sample["kind"]) for sample in document["samples"]] == [
        (number, kind) for number in (1, 2) for kind in kinds
    ]
    cold = next(sample for sample in document["samples"] if sample["kind"] == "cold")
    assert cold["counts"]["files_read"] == 1
    assert cold["counts"]["bytes_read"] == len(PLAIN)
    assert "| first " in capsys.readouterr().out
    left = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "corpus" / "first-1.0").iterdir()}
    assert left == {"a.py": PLAIN}

    docs.mkdir()
    (docs / "benchmark.md").write_text(f"# Before\n\n{bench.BEGIN}\nold\n{bench.END}\nAfter\n", encoding="utf-8")
    assert bench.main([*small, "--rounds", "1", "--runs", "ruff", "cold", "--svg", str(docs)]) == 0
    page = (docs / "benchmark.md").read_text(encoding="utf-8")
    assert page.startswith(f"# Before\n\n{bench.BEGIN}\n")
    assert page.endswith(f"{bench.END}\nAfter\n")
    assert "\nold\n" not in page
    assert "| second " in page
    picture = ElementTree.parse(docs / "benchmark.svg").getroot()
    labels = {element.text for element in picture.iter() if element.tag.endswith("text")}
    assert {"ruff", "cudalint, cold"} <= labels
    assert "cudalint, warm" not in labels


def test_what_is_not_the_corpus_is_not_measured(
    small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.main([*small, "--only", "third"]) == 2
    assert "no package 'third' in corpus.toml: it has first, second" in capsys.readouterr().err
    (tmp_path / "corpus" / "first-1.0" / "b.py").write_text(PLAIN, encoding="utf-8")
    assert bench.main([*small, "--only", "first"]) == 2
    assert "holds 2 files" in capsys.readouterr().err


def test_the_corpus_is_large_pinned_and_agrees_with_what_is_reviewed() -> None:
    members = corpus.members()
    assert sum(member.size for member in members) >= 100_000_000
    reviewed = {package.name: package.version for package in packages.pinned()}
    shared = [member for member in members if member.name in reviewed]
    assert len(shared) >= 10
    assert [m.name for m in shared if m.package.version != reviewed[m.name]] == []


# -- reporting ---------------------------------------------------------------------------------------------


def sample(project: str, number: int, kind: Kind, seconds: float, failure: str = "") -> Sample:
    counts = COUNTS if kind is Kind.COLD else None
    return Sample(project, number, kind, seconds, 2 * seconds, 50_000_000, counts, failure)


def test_ratios_are_taken_within_a_round() -> None:
    """A round in which the machine is three times as slow is so for both."""
    every = []
    for number, slowness in ((1, 1.0), (2, 3.0), (3, 9.0)):
        every.append(sample("p", number, Kind.RUFF, 0.1 * slowness))
        every.append(sample("p", number, Kind.COLD, 0.4 * slowness))
    samples = report.Samples(tuple(every))
    assert samples.ratio(["p"], Kind.COLD, Kind.RUFF, report.cpu) == pytest.approx(4.0)
    assert samples.typical(["p"], Kind.COLD, report.cpu) == pytest.approx(1.2)
    assert samples.typical(["p"], Kind.COLD, report.wall) == pytest.approx(2.4)
    assert samples.typical(["p"], Kind.WARM, report.cpu) is None


def test_a_total_is_of_what_was_measured_to_the_end() -> None:
    every = (
        sample("p", 1, Kind.RUFF, 0.1),
        sample("p", 1, Kind.COLD, 1.0),
        sample("q", 1, Kind.RUFF, 0.3),
        sample("q", 1, Kind.COLD, 5.0),
        sample("endless", 1, Kind.RUFF, 7.0),
        sample("endless", 1, Kind.COLD, 9.0, "more than 9 s"),
    )
    text = report.tables(report.Samples(every))
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    totals = [row for row in rows if row[0] == "total"]
    assert totals[0] == ["total", "0.40", "6.00 (15.0)"]
    assert totals[1] == ["total", "0.80", "12.00 (15.0)"]
    assert totals[2][1:6] == ["20", "4", "2.0", "1.00", "50%"]
    assert ["endless", "7.00", "-"] in rows
    assert "- endless, cold: more than 9 s" in text.splitlines()
    work = next(row for row in rows if row[0] == "p" and len(row) > 3)
    assert work[-2:] == ["50", "100"]


def test_trees_grow_package_by_package() -> None:
    members = corpus.members()
    found = sizes.subsets(members, 100_000_000)
    assert found[0].members == (min(members, key=lambda member: member.size),)
    for smaller, larger in pairwise(found):
        assert set(smaller.members) < set(larger.members)
    for smaller, larger in pairwise(found[:-1]):
        assert larger.size >= 1.5 * smaller.size
    assert 50_000_000 < found[-1].size <= 100_000_000


def test_a_picture_shows_each_series_and_no_name_covers_another() -> None:
    series = {"a & b": [(1.0, 0.1), (10.0, 1.0)], "c": [(1.0, 0.2), (10.0, 1.01)], "empty": []}
    root = ElementTree.fromstring(chart.drawn(series, title="Cost", across="MB", up="seconds"))
    lines = [element for element in root.iter() if element.tag.endswith("polyline")]
    assert len(lines) == 2
    placed = {e.text: float(e.attrib["y"]) for e in root.iter() if e.tag.endswith("text") and e.text in series}
    assert set(placed) == {"a & b", "c"}
    assert abs(placed["a & b"] - placed["c"]) >= 12
    first, last = (tuple(map(float, point.split(","))) for point in lines[0].attrib["points"].split())
    assert last[0] > first[0]
    assert last[1] < first[1]  # more is further up
