"""The session: what it hands to the analysis, and what it makes of the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from cudalint import config
from cudalint.config import Config
from cudalint.finding import Finding, Position, Severity, Span, Step, StepKind
from cudalint.fixes import catalogue, engine
from cudalint.fixes.proposal import Repair
from cudalint.fixing.rounds import fix
from cudalint.found import Report
from cudalint.policy.selection import Layer, Selection
from cudalint.project import analysis, entering
from cudalint.project.entering import Entering
from cudalint.session import Session
from cudalint.structs import replace
from cudalint.text.source import SourceFile

Answer = Callable[[Sequence[SourceFile]], Sequence[Finding]]
Calls = list[tuple[list[str], bool]]


def at(
    path: Path, row: int, code: str = "CUD101", rows: tuple[int, int] | None = None, step: Path | None = None
) -> Finding:
    span = Span(str(path), Position(row, 1), Position(row, 2))
    trace = () if step is None else (Step(Span(str(step), *(Position(1, 1),) * 2), "", StepKind.CAUSE, "main"),)
    return Finding(code, "a-name", Severity.ERROR, "a message", span, trace=trace, noqa_rows=rows)


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Callable[[Answer], Calls]:
    """Put a function in the place of the analysis; gives the list of the calls it gets."""

    def install(function: Answer) -> Calls:
        calls: Calls = []

        def answered(sources: Sequence[SourceFile], alone: bool) -> analysis.Analysis:
            calls.append(([source.path for source in sources], alone))
            work = analysis.Work(len(sources), 0, 1, 10, 5)
            return analysis.Analysis(tuple(function(sources)), work, ("a note",))

        def analyse(
            sources: Sequence[SourceFile], options: object, *, alone: bool = False, **settings: object
        ) -> analysis.Analysis:
            return answered(sources, alone)

        def analyse_begun(
            begun: Entering, options: object, *, alone: bool = False, about: object = None, jobs: object = None
        ) -> analysis.Analysis:
            return answered([*begun.files.sources.values()], alone)

        begin = entering.entering
        monkeypatch.setattr(entering, "entering", lambda *given: replace(begin(*given), modules=("any",)))
        monkeypatch.setattr(analysis, "analyse", analyse)
        monkeypatch.setattr(analysis, "analyse_begun", analyse_begun)
        return calls

    return install


def write(path: Path, text: str = "import torch\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def check(*paths: Path, found: Config | None = None) -> Report:
    names = [str(path) for path in paths]
    return Session(found or config.load(names)).check(names)


def codes(report: Report) -> list[str]:
    return [finding.code for finding in report.findings]


def test_findings_come_in_order_and_once(tmp_path: Path, answer: Callable[[Answer], Calls]) -> None:
    first, second = write(tmp_path / "a.py"), write(tmp_path / "b.py")
    answer(lambda _: [at(second, 1), at(first, 3), at(first, 2), at(first, 2)])
    report = check(second, first)
    assert [(Path(f.span.filename).name, f.span.start.row) for f in report.findings] == [
        ("a.py", 2),
        ("a.py", 3),
        ("b.py", 1),
    ]
    assert report.effort.files_parsed == 1
    assert report.notes == ("a note",)


def test_the_project_is_context_and_only_what_touches_a_selected_file_is_shown(
    tmp_path: Path, answer: Callable[[Answer], Calls]
) -> None:
    write(tmp_path / "pyproject.toml", "")
    train = write(tmp_path / "train.py", "import torch\nimport helper\nfrom lib import (\n    worker,\n)\n")
    worker, helper, package = (write(tmp_path / name) for name in ("lib/worker.py", "helper.py", "lib/__init__.py"))
    other = write(tmp_path / "other.py", "import helper\n")
    calls = answer(lambda _: [at(train, 1, step=worker), at(train, 2), at(other, 1)])
    report = check(worker)
    assert sorted(calls[0][0]) == sorted(map(str, (train, worker, helper, package, other)))
    assert [(finding.span.filename, finding.span.start.row) for finding in report.findings] == [(str(train), 1)]
    assert set(report.texts) == {str(train), str(worker)}


def test_no_context_without_a_project_or_a_reason(tmp_path: Path, answer: Callable[[Answer], Calls]) -> None:
    first = write(tmp_path / "a.py")
    write(tmp_path / "b.py")
    calls = answer(lambda _: [])
    check(first, found=Config())
    assert calls == [([str(first)], False)]
    calls.clear()
    write(tmp_path / "pyproject.toml", "")
    assert check(write(tmp_path / "plain.py", "x = 1\n")).effort.files_read == 1
    assert calls == []


def test_fixtures_of_a_test_that_mentions_nothing_are_looked_at(tmp_path: Path) -> None:
    write(tmp_path / "pyproject.toml", "")
    pool = (
        "import multiprocessing\nimport pytest\nimport torch\n@pytest.fixture\ndef workers():\n"
        "    torch.zeros(1).cuda()\n    with multiprocessing.Pool(2) as pool:\n        yield pool\n"
    )
    fixtures = write(tmp_path / "tests" / "conftest.py", pool)
    write(tmp_path / "app.py", "import torch\ndef score(n):\n    return torch.ones(n).cuda().sum().item()\n")
    test = "from app import score\ndef test_all(workers):\n    assert workers.map(score, [1, 2]) == [1, 2]\n"
    written = write(tmp_path / "tests" / "unit" / "test_score.py", test)
    assert codes(check(written)) == ["CUD101"]
    # What is kept of the test alone does not outlive its fixtures.
    write(fixtures, "import pytest\n@pytest.fixture\ndef workers():\n    return None\n")
    report = check(written)
    assert codes(report) == []
    assert report.effort.files_read == 1


def test_without_a_project_what_a_file_imports_from_beside_it_is_read(
    tmp_path: Path, answer: Callable[[Answer], Calls]
) -> None:
    main = write(tmp_path / "main.py", "import torch\nfrom app.launch import go\n")
    package = write(tmp_path / "app" / "__init__.py", "")
    launch = write(tmp_path / "app" / "launch.py", "from .deep import work\n")
    work = write(tmp_path / "app" / "deep" / "work.py")
    write(tmp_path / "helper.py", "import main\n")
    calls = answer(lambda _: [])
    check(main, found=Config())
    assert sorted(calls[0][0]) == sorted(map(str, (main, package, launch, work)))
    calls.clear()
    write(work, "import torch\nimport helper\n")
    check(work, found=Config())
    # A folder without __init__.py holds no package around it: a script's own folder is all that it imports from.
    assert calls[0][0] == [str(work)]


def test_files_without_markers_are_context_for_those_with(tmp_path: Path, answer: Callable[[Answer], Calls]) -> None:
    write(tmp_path / "a.py")
    write(tmp_path / "__init__.py", "from .a import work\n")
    calls = answer(lambda _: [])
    check(tmp_path)
    assert [Path(name).name for name in calls[0][0]] == ["__init__.py", "a.py"]


@pytest.mark.parametrize(
    ("comment", "code", "silenced"),
    [
        ("# noqa", "CUD101", True),
        ("# noqa: CUD101", "CUD101", True),
        ("# noqa: CUD102", "CUD101", True),
        ("# noqa: CUD101", "CUD102", True),
        ("# noqa: CUD1", "CUD103", True),
        ("# noqa: CUD101", "CUD103", False),
        ("# noqa: E501", "CUD101", False),
        ("# noqa", "CUD901", False),
    ],
)
def test_suppression_on_any_row_of_the_anchor(
    tmp_path: Path, answer: Callable[[Answer], Calls], comment: str, code: str, silenced: bool
) -> None:
    path = write(tmp_path / "a.py", f"import torch\nf(\n    1,  {comment}\n)\n")
    answer(lambda _: [at(path, 2, code, rows=(2, 4))])
    assert (code not in codes(check(path))) is silenced
    answer(lambda _: [at(path, 2, code, rows=(2, 2))])
    assert code in codes(check(path))


def test_a_suppression_that_silences_nothing_is_a_finding(tmp_path: Path, answer: Callable[[Answer], Calls]) -> None:
    path = write(tmp_path / "a.py", "import torch  # noqa: CUD101,E501\nf()  # noqa: CUD201,CUD301\n")
    with path.open("a") as more:
        more.write("g()  # noqa: CUD101, CUD102, CUD101\nh()  # noqa: CUD1, CUD2, CUD3, CUD4, CUD5, CUD6\n")
    answer(lambda _: [at(path, 2, "CUD301")])
    report = check(path)
    assert [finding.message for finding in report.findings] == [
        "the noqa on line 1 names CUD101, which reports nothing there",
        "the noqa on line 2 names CUD201, which reports nothing there",
        "the noqa on line 3 names CUD101 and CUD102, which report nothing there",
        "the noqa on line 4 names CUD1, CUD2, CUD3, CUD4 and 2 others, which report nothing there",
    ]
    assert {finding.code for finding in report.findings} == {"CUD902"}
    places = [finding.span.start for finding in report.findings]
    assert places == [Position(1, 15), Position(2, 6), Position(3, 6), Position(4, 6)]


def test_a_suppression_of_a_rule_that_is_not_shown_is_not_judged(
    tmp_path: Path, answer: Callable[[Answer], Calls]
) -> None:
    path = write(tmp_path / "a.py", "import torch  # noqa: CUD101\n")
    answer(lambda _: [])
    assert codes(check(path, found=Config(selection=Selection((Layer(ignore=("CUD101",)),))))) == []
    # Nor in a file that could not be read as a program.
    answer(lambda _: [at(path, 1, "CUD901")])
    assert codes(check(path)) == ["CUD901"]


def test_one_file_alone_judges_no_suppression(tmp_path: Path, answer: Callable[[Answer], Calls]) -> None:
    calls = answer(lambda _: [])
    report = Session(Config()).check_alone(str(tmp_path / "x.py"), b"import torch  # noqa: CUD101\n")
    assert codes(report) == []
    assert calls[0][1] is True


def test_a_host_with_its_own_noqa_gets_everything(tmp_path: Path, answer: Callable[[Answer], Calls]) -> None:
    path = tmp_path / "x.py"
    answer(lambda _: [at(path, 1)])
    session = Session(Config())
    assert codes(session.check_alone(str(path), "import torch  # noqa\n")) == []
    assert codes(session.check_alone(str(path), "import torch  # noqa\n", honour_noqa=False)) == ["CUD101"]


def test_per_file_ignores(tmp_path: Path, answer: Callable[[Answer], Calls]) -> None:
    write(tmp_path / "pyproject.toml", '[tool.cudalint.per-file-ignores]\n"tests/*" = ["CUD1"]\n')
    source, test = write(tmp_path / "src.py"), write(tmp_path / "tests/a.py")
    answer(lambda _: [at(source, 1), at(test, 1), at(test, 1, "CUD301")])
    assert [(Path(f.span.filename).name, f.code) for f in check(tmp_path).findings] == [
        ("src.py", "CUD101"),
        ("a.py", "CUD301"),
    ]


def test_an_internal_error_costs_one_file(tmp_path: Path, answer: Callable[[Answer], Calls]) -> None:
    good, bad = write(tmp_path / "good.py"), write(tmp_path / "bad.py", "import torch  # noqa\n")

    def fail(sources: Sequence[SourceFile]) -> Sequence[Finding]:
        if any(source.path == str(bad) for source in sources):
            raise RecursionError("too\ndeep")
        return [at(good, 1)]

    answer(fail)
    report = check(tmp_path)
    assert [(Path(f.span.filename).name, f.code) for f in report.findings] == [
        ("bad.py", "CUD900"),
        ("good.py", "CUD101"),
    ]
    assert report.findings[0].message == "cudalint failed on this file: RecursionError: too deep"
    assert "Traceback" in report.failures[0]


def test_an_internal_error_between_files_is_not_lost(tmp_path: Path, answer: Callable[[Answer], Calls]) -> None:
    write(tmp_path / "pyproject.toml", "")
    write(tmp_path / "a.py", "import torch, b\n")
    named = write(tmp_path / "b.py")

    def fail(sources: Sequence[SourceFile]) -> Sequence[Finding]:
        if len(sources) > 1:
            raise KeyError("x")
        return []

    answer(fail)
    assert codes(check(named)) == ["CUD900"]


def test_an_error_in_a_repair_costs_the_repairs_of_one_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forks = "import multiprocessing, torch\nif __name__ == '__main__':\n    torch.ones(1).cuda()\n"
    good = write(tmp_path / "good.py", f"{forks}    multiprocessing.Pool(2).map(torch.cuda.synchronize, [0])\n")
    bad = write(tmp_path / "bad.py", "import torch\ntorch.cuda.device(1)\n")

    def repairs(code: str) -> tuple[Repair, ...]:
        if code == "CUD204":
            raise RecursionError("too\ndeep")
        return catalogue.repairs(code)

    monkeypatch.setattr(engine, "repairs", repairs)
    report = check(tmp_path)
    assert [(f.span.filename, f.code, f.fix is not None) for f in report.findings] == [
        (str(bad), "CUD900", False),
        (str(bad), "CUD204", False),
        (str(good), "CUD101", True),
    ]
    assert report.findings[0].message == "cudalint failed to look for repairs in this file: RecursionError: too deep"
    assert "Traceback" in report.failures[0]


def test_internal_errors_are_shown_whatever_is_selected(tmp_path: Path, answer: Callable[[Answer], Calls]) -> None:
    path = write(tmp_path / "a.py")
    answer(lambda _: [at(path, 1, "CUD900"), at(path, 1, "CUD901"), at(path, 1)])
    selection = Selection((Layer(select=("CUD2",)),))
    assert codes(check(path, found=replace(Config(), selection=selection))) == ["CUD900", "CUD901"]


def test_unsaved_texts_stand_for_files_on_the_disk_also_for_new_ones(tmp_path: Path, forked: str) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.cudalint]\nextend-exclude = ["gen"]\n')
    (tmp_path / "old.py").write_text(forked)
    unsaved = {
        str(tmp_path / "old.py"): b"x = 1\n",
        str(tmp_path / "new.py"): forked.encode(),
        str(tmp_path / "gen" / "new.py"): forked.encode(),
        str(tmp_path.parent / "beside.py"): forked.encode(),
    }
    session = Session(config.load([str(tmp_path)]), unsaved=unsaved)
    assert session.selected([str(tmp_path)]) == (str(tmp_path / "new.py"), str(tmp_path / "old.py"))
    (found,) = session.check([str(tmp_path)]).findings
    assert found.span.filename == str(tmp_path / "new.py")
    (change,) = fix(session, [str(tmp_path / "new.py")]).changes
    assert (change.before, change.after) == (forked.encode(), forked.replace('"fork"', '"spawn"').encode())
    assert not (tmp_path / "new.py").exists()
    assert "CUDA: untouched in this process" in "\n".join(session.explain(str(tmp_path / "new.py"), 11))
