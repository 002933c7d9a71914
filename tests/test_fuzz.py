"""A seeded slice of the fuzzing that `python -m fuzz` does in this folder, and what it found before."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from fuzz.__main__ import main
from fuzz.case import Case
from fuzz.inputs import SOURCES, hostile
from fuzz.inputs.growing import draw as growing
from fuzz.inputs.growing import of
from fuzz.inputs.joined import joined
from fuzz.judge import Judge
from fuzz.properties import PROPERTIES
from fuzz.properties.formats import unreadable
from fuzz.shrink import shrunk
from fuzz.tally import kind

from cudalint.finding import Finding
from cudalint.found import Report
from cudalint.machine.heap import Sequence
from cudalint.machine.keys import as_key
from cudalint.machine.state import Process, State
from cudalint.machine.values import unknown
from cudalint.report.render import OutputFormat, Style, render

SEED, EVERY = 77_000, 6


def complaints(case: Case, *names: str) -> list[str]:
    return [f"{case.name}: {name}: {found}" for name in names for found in PROPERTIES[name].complaints(case)]


@pytest.mark.parametrize("seed", range(SEED, SEED + 5))
def test_mutants(seed: int) -> None:
    assert complaints(SOURCES["mutants"](seed), "survives", "repairs") == []


@pytest.mark.parametrize("shape", hostile.HOSTILE[SEED % EVERY :: EVERY], ids=lambda shape: shape.__name__)
def test_hostile_shapes(shape: hostile.Shape) -> None:
    assert complaints(hostile.made(shape, 7), "survives") == []


def test_findings_stay_where_the_meaning_stays() -> None:
    found = [
        complaint for seed in range(SEED, SEED + 3) for complaint in complaints(SOURCES["mutants"](seed), "meaning")
    ]
    assert found == []


def test_one_report_whatever_the_process() -> None:
    together = joined([SOURCES["mutants"](seed) for seed in range(SEED, SEED + 2)])
    assert complaints(together, "same") == []


def test_what_was_kept_before_an_edit_changes_no_report() -> None:
    found = [
        complaint for seed in range(SEED, SEED + 12) for complaint in complaints(SOURCES["mutants"](seed), "edits")
    ]
    assert found == []


# What once cost the square of its size or more, or twice as much for each one more.
FOUND = (hostile.elifs, hostile.forks, hostile.cases)


@pytest.mark.parametrize("shape", FOUND, ids=lambda shape: shape.__name__)
def test_cost_grows_as_the_program_does(shape: hostile.Shape) -> None:
    assert complaints(of(shape, 16), "growth") == []


def test_growth_that_is_too_fast_is_told() -> None:
    def squared(n: int) -> dict[str, str]:
        return hostile.functions(n * n)

    (told,) = complaints(of(squared, 3), "growth")
    assert "for the next 2n as for n" in told


def test_comprehensions_within_one_another_take_steps() -> None:
    """Each runs two rounds: so many of them would take 2 to the 24th."""
    assert complaints(hostile.made(hostile.nested_comprehensions, 24), "survives") == []


def test_what_an_unknown_is_known_by_stays_small() -> None:
    """It holds what it was made of, here twice each time: to compare it would take 2 to the 200th."""
    value = unknown("x")
    for number in range(200):
        value = unknown("is", "==", value, value, number)
    assert value == (*value,)
    assert len({value, unknown("is", "==", value, unknown("y"), 3)}) == 2


def test_a_tuple_of_itself_is_no_key() -> None:
    """What a loop makes of its own last value lies where that lay."""
    state = State(Process(), {})
    made = state.new("tuple", Sequence("tuple", (), ()))
    state.store(made, Sequence("tuple", ((made,),), (made,)))
    assert as_key((made,), state) == (made,)


def test_a_case_is_the_same_for_a_seed() -> None:
    for source in ("mutants", "hostile"):
        assert SOURCES[source](5) == SOURCES[source](5)
    assert growing(5) == growing(5)


def test_what_takes_too_long_is_told_and_the_next_case_judged() -> None:
    with Judge(seconds=0.3) as judge:
        large, small = hostile.made(hostile.launches_in_functions, 40), Case("small", {"a.py": b"x = 1\n"})
        (complaint,) = judge.complaints(large, ["survives"])["survives"]
        assert "more than 0.3 s of processor time, in " in complaint
    with Judge() as judge:
        assert judge.complaints(small, ["survives"]) == {}


def test_a_failing_case_becomes_small() -> None:
    case = hostile.made(hostile.functions, 12)
    text = case.files["program.py"]
    small = shrunk(case.with_files({"other.py": b"pass\n", "program.py": text}), lambda made: b"f7" in _all(made))
    assert _all(small).count(b"\n") <= 3
    assert b"f7" in _all(small)


def _all(case: Case) -> bytes:
    return b"".join(case.files.values())


def test_several_judges_say_what_one_says(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / f"program{number}.py").write_text("x = 1\n" * number, encoding="utf-8")
    told = []
    for jobs in ("1", "3"):
        # Programs in one size have no growth: each fails.
        assert main(["--properties", "growth", "--no-shrink", "--jobs", jobs, str(tmp_path)]) == 1
        out = capsys.readouterr().out
        told.append([kind(row) for row in out.splitlines() if not row.endswith(" s")])
        assert out.startswith(
            "growth: 8 judged, 8 failed\n    8 growth: it has one size, so that nothing is known of its growth"
        )
        assert f"{tmp_path / 'program0.py'}, {tmp_path / 'program0.py'} (driven), " in out
    assert told[0] == told[1]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for processes in /proc")
def test_who_ends_it_is_told_what_it_has_and_nobody_is_left(tmp_path: Path) -> None:
    arguments = ("--properties", "survives", "--count", "1000000", "--jobs", "2", "--verbose")
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    run = subprocess.Popen(
        [sys.executable, "-m", "fuzz", *arguments],
        cwd=Path(__file__).parent,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert run.stderr is not None
    assert run.stderr.readline().startswith("mutants ")
    judges = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
    run.send_signal(signal.SIGINT)
    run.send_signal(signal.SIGINT)
    out, _ = run.communicate()
    assert run.returncode == 130
    assert re.match(
        r"ended before all was judged: the first without an answer is mutants \d+\nsurvives: \d+ judged", out
    )
    assert len(judges) == 2
    assert not [pid for pid in judges if Path("/proc", pid).exists()]
    assert list(tmp_path.iterdir()) == []


def test_complaints_of_one_fault_are_of_one_kind() -> None:
    assert kind("a lost comment ('# a') of 'x.py' in f:17") == kind("a lost comment ('# b') of 'y.py' in f:4")


def test_a_report_that_lacks_a_finding_is_not_readable(finding: Finding) -> None:
    report = Report(findings=(finding,), texts={"/project/train.py": "\n" * 12, "/project/lib.py": "\n" * 3})
    for output_format in OutputFormat:
        told = render(report, output_format, Style(False, "/project"))
        assert unreadable(told, output_format, report) is None
        assert unreadable(render(Report(), output_format, Style(False, "/project")), output_format, report) is not None


def test_the_command_says_what_it_judged(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import torch\nx = 1\n", encoding="utf-8")
    assert main(["--properties", "survives", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("survives: 2 judged, 0 failed\n")
