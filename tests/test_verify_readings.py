"""What notes of processes say of a finding, where paper CUDA has no such machine: memory, several GPUs, signals.

And what is reported of a run in which all of it came together.
"""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from cudalint.finding import Finding, Position, Severity, Span, Step, StepKind
from cudalint.structs import replace
from cudalint.verify import Format, evidence, journal
from cudalint.verify.gpus import Gpu, Gpus
from cudalint.verify.headers import Outcome
from cudalint.verify.observe import Observation
from cudalint.verify.program import Judged, Program, Status, Trial
from cudalint.verify.program_report import render
from cudalint.verify.readings import Readings
from cudalint.verify.runner import Run
from cudalint.verify.sayings import shown_by
from cudalint.verify.surroundings import Footprint
from cudalint.verify.violations import Kind, Violation

PROGRAM = "/project/train.py"
MACHINE = (Gpu(0, "H", 1000, "GPU-aa"), Gpu(1, "H", 1000, "GPU-bb"))
PARENT, ONE, TWO = 10, 11, 12
LAUNCH, WORK = [(PROGRAM, 20, "main")], [(PROGRAM, 5, "work")]
FORKS = [
    ("init", PARENT, "torch.cuda.init", LAUNCH),
    ("fork", PARENT, "a", 1, LAUNCH),
    ("fork", PARENT, "b", 1, LAUNCH),
    ("born", ONE, "a"),
    ("born", TWO, "b"),
]
AA, BB, BOTH = ("aa",), ("bb",), ("aa", "bb")


def finding(code: str, outcome: str = "crash") -> Finding:
    """It is about a launch in row 20, whose worker does something in row 5."""

    def span(row: int) -> Span:
        return Span(PROGRAM, Position(row, 1), Position(row, 9))

    launch = Step(span(20), "forks", StepKind.LAUNCH, "main process")
    effect = Step(span(5), "uses CUDA", StepKind.EFFECT, "pool worker")
    return Finding(code, "a-name", Severity.ERROR, "it fails", span(20), trace=(launch, effect), outcome=outcome)


def readings(*events: tuple[Any, ...], **seen: Any) -> Readings:
    run = Run("ended", 0, 1.0, journal=tuple(f"event {event!r}" for event in events), **seen)
    return Readings(run, journal.read(run.journal), MACHINE)


def said(found: Readings, code: str, outcome: str = "crash") -> tuple[bool | None, str] | None:
    reading = found.of(finding(code, outcome))
    return None if reading is None else (reading.agrees, reading.text)


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        ((700, 100), (True, "one of 2 workers held 700 MiB of its GPU")),
        ((300, 100), (False, "no worker held more than 300 MiB")),
        ((550, 100), (None, "no worker held more than 550 MiB")),
        ((700,), (None, "one of 1 workers held 700 MiB of its GPU")),
        ((), None),
    ],
)
def test_a_worker_is_greedy_by_what_it_held(held: tuple[int, ...], expected: tuple[bool | None, str] | None) -> None:
    footprints = tuple(Footprint(pid, 0, mib) for pid, mib in zip((ONE, TWO), held, strict=False))
    assert said(readings(*FORKS, footprints=footprints), "CUD206", "cost") == expected


def test_workers_share_a_gpu_or_have_their_own() -> None:
    for gpus, expected in (((0, 0), (True, "processes 11 and 12 use the same GPU")),
                           ((0, 1), (False, "2 workers use a GPU of their own each"))):  # fmt: skip
        footprints = tuple(Footprint(pid, gpu) for pid, gpu in zip((ONE, TWO), gpus, strict=True))
        assert said(readings(*FORKS, footprints=footprints), "CUD201", "cost") == expected
    assert said(readings(*FORKS, footprints=(Footprint(ONE, 0),)), "CUD201", "cost") is None


def test_ranks_share_a_gpu_or_have_their_own() -> None:
    def ranks(*gpus: tuple[str, ...]) -> Readings:
        used = [("usage", pid, 1, (0, {0: 2}, gpu)) for pid, gpu in zip((ONE, TWO), gpus, strict=True)]
        return readings(*(("group", pid) for pid in (ONE, TWO)), *used)

    assert said(ranks(AA, AA), "CUD502", "hang") == (True, "processes 11 and 12 use the same GPU")
    assert said(ranks(AA, BB), "CUD502", "hang") == (False, "2 ranks use a GPU of their own each")
    assert said(ranks(AA, BB), "CUD503", "latent") == (None, "2 ranks use a GPU of their own each")


def test_a_child_ends_by_a_signal_or_in_its_own_way() -> None:
    died = readings(*FORKS, deaths={ONE: -11})
    assert said(died, "CUD103", "child-death") == (True, "process 11, which it started, died of signal 11")
    assert said(died, "CUD505") is None  # what it predicts is an exception
    told = (None, "process 12, which it started, ended with exit code 3")
    assert said(readings(*FORKS, deaths={TWO: 3}), "CUD103", "child-death") == told


def test_a_statement_that_was_to_fail_was_passed_or_did_not_have_to() -> None:
    passed = ("passed 5", ONE, PROGRAM)
    expected = (False, "process 11 passed train.py:5 without an exception and ended well")
    assert said(readings(*FORKS, passed), "CUD101") == expected
    assert said(readings(*FORKS, passed, deaths={TWO: 1}), "CUD505") is None
    innocent = [(*event[:3], 0, LAUNCH) if event[0] == "fork" else event for event in FORKS]
    assert said(readings(*innocent, passed), "CUD101") is None
    # It passed the launch as well: the effect is in the worker, and this is who started it.
    both = (("reached 20", ONE, PROGRAM), passed)
    assert said(readings(*FORKS, *both), "CUD101") is None


def test_a_forked_child_used_cuda_all_the_same() -> None:
    used = ("worked", TWO, "torch.ones", WORK)
    expected = (False, "process 12, which it started, used CUDA without an error")
    assert said(readings(*FORKS, used), "CUD101") == expected
    assert said(readings(*FORKS, used, ("failed", ONE, "torch.ones", WORK)), "CUD101") is None


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ((0, {0: 1}, BOTH), (True, "GPU 1 was asked for, and what was allocated next is on GPU 0")),
        ((1, {1: 1}, BOTH), (False, "GPU 1 was asked for, and all that was allocated next is there")),
        ((0, {}, BOTH), (None, "nothing was seen to be allocated afterwards")),
    ],
)
def test_what_a_bare_device_statement_selected(
    after: tuple[int, dict[int, int], tuple[str, ...]], expected: tuple[bool | None, str]
) -> None:
    asked = ("asked", PARENT, "device 1", 7, (0, {}, BOTH), LAUNCH)
    assert said(readings(asked, ("usage", PARENT, 7, after)), "CUD204", "wrong-device") == expected
    other_thread = readings(asked, ("usage", PARENT, 8, (0, {0: 1}, BOTH)))
    assert said(other_thread, "CUD204", "wrong-device") == (None, "nothing was seen to be allocated afterwards")


def test_a_statement_that_selects_or_makes_no_difference() -> None:
    current = ("asked", PARENT, "device 0", 7, (0, {}, BOTH), LAUNCH)
    told = "GPU 0 was asked for, which was the current one: it made no difference"
    assert said(readings(current), "CUD204", "wrong-device") == (None, told)
    asked = ("asked", PARENT, "device 1", 7, (0, {}, BOTH), LAUNCH)
    here = ("select", PARENT, "device 1", 7, (0, {}, BOTH), (None, None), LAUNCH)
    assert said(readings(asked, here), "CUD204", "wrong-device") == (False, "the statement selected GPU 1")
    elsewhere = ("select", PARENT, "device 1", 7, (0, {}, BOTH), (None, None), WORK)
    told = "nothing was seen to be allocated afterwards"
    assert said(readings(asked, elsewhere), "CUD204", "wrong-device") == (None, told)


@pytest.mark.parametrize(
    ("chosen", "after", "expected"),
    [
        ("device 1", (0, {0: 3}, BOTH), (True, "GPU 1 had been chosen, and the thread allocated on GPU 0")),
        ("device 1", (1, {1: 3}, BOTH), (False, "the thread itself was on GPU 1")),
        ("device 1", (1, {0: 1, 1: 3}, BOTH), (None, "the thread itself was on GPU 1")),
        ("device 1", (0, {}, BOTH), (None, "the thread was not seen to use a GPU")),
        ("device 0", (0, {0: 3}, BOTH), (None, "GPU 0 had been chosen")),
    ],
)
def test_which_gpu_a_thread_used(
    chosen: str, after: tuple[int, dict[int, int], tuple[str, ...]], expected: tuple[bool | None, str]
) -> None:
    select = ("select", PARENT, chosen, 1, (0, {}, BOTH), (None, None), WORK)
    thread = ("thread", PARENT, 2, (0, {}, BOTH), after, LAUNCH)
    assert said(readings(select, thread), "CUD205", "wrong-device") == expected


def test_what_was_allocated_before_a_gpu_was_chosen() -> None:
    def select(used: dict[int, int]) -> tuple[Any, ...]:
        return ("select", ONE, "device 1", 1, (0, used, BOTH), (None, None), WORK)

    early = (True, "process 11 had made 2 allocations on GPU 0 before it chose GPU 1")
    assert said(readings(select({0: 2})), "CUD504", "wrong-device") == early
    reached, used = ("reached 5", ONE, PROGRAM), ("usage", ONE, 1, (1, {1: 4}, BOTH))
    never = (False, "process 11 allocated on GPU 1 and never on GPU 0")
    assert said(readings(select({}), reached, used), "CUD504", "wrong-device") == never
    assert said(readings(select({}), used), "CUD504", "wrong-device") is None


@pytest.mark.parametrize(
    ("chosen", "ranks", "expected"),
    [
        (3, ("3", "1"), (True, "rank 3, which is 1 on its machine, chose GPU 3")),
        (1, ("3", "1"), (False, "rank 3, which is 1 on its machine, chose GPU 1")),
        (1, ("1", "1"), (None, "its global and its local rank are the same here, or not known")),
        (1, (None, "1"), (None, "its global and its local rank are the same here, or not known")),
        (0, ("3", "1"), None),
    ],
)
def test_by_which_number_a_rank_chose(
    chosen: int, ranks: tuple[str | None, str], expected: tuple[bool | None, str] | None
) -> None:
    select = ("select", ONE, f"device {chosen}", 1, None, ranks, WORK)
    assert said(readings(select), "CUD506", "wrong-device") == expected


def test_owners_stay_until_all_was_received() -> None:
    sent, received, left = ("send", ONE), ("received", PARENT), ("left", ONE, 1, None)
    there = (False, "all values were received while their owner was still there")
    late = (None, "a value was received after its owner had ended, which went well this time")
    assert said(readings(sent, received, left), "CUD304") == there
    assert said(readings(sent, received), "CUD304") == there
    assert said(readings(sent, left, received), "CUD304") == late
    assert said(readings(sent, received, ("lost", PARENT)), "CUD304") is None
    assert said(readings(sent), "CUD304") is None


@pytest.mark.parametrize(
    ("asked", "got", "expected"),
    [
        ("1", BB, (False, "'1' was asked for, and the process has just that")),
        ("1", BOTH, (True, "'1' was asked for, and the process has GPU 0 and 1")),
        ("GPU-b,0", ("bb", "aa"), (False, "'GPU-b,0' was asked for, and the process has just that")),
        ("7,1", BOTH, None),  # it names no GPU of this machine, and so ends there
        ("0,1", BOTH, (None, "'0,1' was asked for, and the process has just that")),
    ],
)
def test_which_gpus_are_visible(asked: str, got: tuple[str, ...], expected: tuple[bool | None, str] | None) -> None:
    visible = ("visible", PARENT, asked, None, LAUNCH)
    assert said(readings(visible, ("usage", PARENT, 1, (0, {}, got))), "CUD202", "wrong-device") == expected


def test_who_waits_is_seen_to_wait() -> None:
    hang, reached = finding("CUD102", "hang"), ("reached 5", ONE, PROGRAM)
    waits = readings(*FORKS, reached, rested={ONE: 4.0}).waits(hang, ())
    assert waits == "process 11 had waited for 4 s without using the processor, when it was ended"
    gave_up = "queue.Empty: nothing came"
    told = readings(*FORKS, rested={ONE: 4.0}).waits(hang, ("ValueError: x", gave_up))
    assert (
        told == f"process 11 had waited for 4 s without using the processor, and who waited for it gave up ({gave_up})"
    )
    # Where nobody was started at its places, any process that was forked may be meant.
    anywhere = [("fork", PARENT, "a", 1, [("/project/other.py", 3, "f")]), ("born", ONE, "a")]
    assert readings(*anywhere, rested={ONE: 4.0}).waits(hang, (gave_up,)) == told
    assert readings(*anywhere, rested={ONE: 4.0}).waits(hang, ()) is None
    for rested in ({ONE: 0.5}, {}):
        assert readings(*FORKS, reached, rested=rested).waits(hang, ()) is None
    assert readings(*FORKS, reached, rested={ONE: 4.0}).waits(replace(hang, outcome="crash"), ()) is None


def test_what_a_process_sends_is_of_the_host_or_of_a_gpu() -> None:
    host = ("host", PARENT, LAUNCH)
    told = (False, "process 10 sent memory of the host, and none of a GPU")
    assert said(readings(host), "CUD302", "latent") == told
    assert said(readings(host, ("send", PARENT)), "CUD302", "latent") is None


SEEN = Violation(
    Kind.FORKED_CHILD, TWO, "RuntimeError: Cannot re-initialize", ((PROGRAM, 5, "work"),),
    journal.Event("query", PARENT, ("torch.cuda.is_available",), ((PROGRAM, 20, "main"),)), ((PROGRAM, 20, "main"),),
)  # fmt: skip
READ = Violation(Kind.EXCEPTION, 0, "RuntimeError: CUDA error", ((PROGRAM, 5, "work"),), None, ((PROGRAM, 20, "main"),))
TRIAL = Trial(
    Program(("train.py", "--quick"), Path(PROGRAM)),
    Observation(
        Outcome.CRASH, 1, "RuntimeError", "x | y", (), 3.0, "ended", left_behind=2,
        footprints=(Footprint(TWO, 1, 618), Footprint(ONE, 0)), spoiled=("the GPU was busy",),
    ),
    tuple(Judged(finding(code), Status.CONFIRMED, "a | b", SEEN) for code in ("CUD101", "CUD103")),
    (SEEN, READ),
    3,
    ("python -S worker.py",),
    left_out=("%matplotlib inline",),
)  # fmt: skip


@pytest.mark.parametrize("output_format", [Format.TABLE, Format.MARKDOWN])
def test_a_report_for_people_says_who_did_what_where(output_format: Format) -> None:
    place = evidence.this_place(Gpus(MACHINE, "580"))
    rows = render(TRIAL, place, output_format).splitlines()
    for row in (
        "  process 10 asked for CUDA (torch.cuda.is_available):", "  it forked:", "  process 12:",
        "  who waited for it:", "  a process:",
    ):  # fmt: skip
        assert row in rows
    told = "\n".join(rows)
    for words in (
        "RuntimeError: Cannot re-initialize", "RuntimeError: CUDA error",
        "2 processes went on after the program had ended, and had to be ended",
        "left out, as it needs IPython: %matplotlib inline", "the probe could not enter: python -S worker.py",
        "process 12: GPU 1, 618 MiB", "process 11: GPU 0", "the GPU was busy",
        "2 findings: 2 confirmed; 2 violations not predicted",
    ):  # fmt: skip
        assert words in told
    # The stacks of what shows two findings are told once, and once more as not predicted.
    assert rows.count("  process 10 asked for CUDA (torch.cuda.is_available):") == 2
    if output_format is Format.MARKDOWN:
        assert r"| a \| b |" in told


def test_a_report_for_programs_has_all_of_it() -> None:
    place = evidence.this_place(Gpus(MACHINE, "580"))
    document = json.loads(render(TRIAL, place, Format.JSON))
    assert [one["code"] for one in document["findings"]] == ["CUD101", "CUD103"]
    assert [one["said"] for one in document["unpredicted"]] == [SEEN.text, READ.text]
    cases = list(ET.fromstring(render(TRIAL, place, Format.JUNIT)).iter("testcase"))
    failures = {case.get("name"): len(case.findall("failure")) for case in cases}
    assert [count for name, count in failures.items() if "not predicted" in str(name)] == [1, 1]
    assert sum(failures.values()) == 2


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        # What Python 3.10 to 3.12, 3.13 and 3.14 say of the same two mistakes.
        ("AttributeError: Can't get attribute 'work' on <module '__main__' (built-in)>", {"CUD108"}),
        ("AttributeError: module '__main__' has no attribute 'work'", {"CUD108"}),
        ("AttributeError: module '__mp_main__' has no attribute 'work'", {"CUD108"}),
        ("AttributeError: Can't pickle local object 'main.<locals>.work'", {"CUD108", "CUD305"}),
        ("AttributeError: Can't get local object 'main.<locals>.work'", {"CUD108", "CUD305"}),
        ("_pickle.PicklingError: Can't pickle local object <function main.<locals>.work at 0x7>", {"CUD108", "CUD305"}),
        # A mistake of the program's own.
        ("AttributeError: module 'torch' has no attribute 'zeroes'", set()),
    ],
)
def test_each_python_has_its_words_for_what_a_fresh_process_does_not_find(text: str, codes: set[str]) -> None:
    assert shown_by(text) == codes
