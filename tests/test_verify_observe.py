"""What a verification sees beside how programs end: who used which GPU, how far it is, what a repair changes."""

from __future__ import annotations

import io
import json
import sys
import time
import types
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from cudalint.finding import Severity
from cudalint.verify import Format, headers, verify
from cudalint.verify.headers import Outcome
from cudalint.verify.observe import Observation
from cudalint.verify.predict import Prediction
from cudalint.verify.progress import progress
from cudalint.verify.sampling import Hardware
from cudalint.verify.surroundings import Footprint
from cudalint.verify.verdict import Status, judge

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="programs are run on Linux")

PINNED = """\
# /// script
# dependencies = ["torch"]
# [tool.cudalint]
# outcome = "crash"
# message = "cannot pin 'torch.cuda"
# ///
import torch
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    data = TensorDataset(torch.ones(4, 2, device="cuda"))
    for batch in DataLoader(data, batch_size=2, pin_memory=True):
        print(batch[0].shape)
"""


class Driver(types.ModuleType):
    """A management library with one GPU, on which two processes hold more and more."""

    NVMLError = OSError

    def __init__(self) -> None:
        super().__init__("pynvml")
        self.asked = 0
        self.nvmlInit = self.nvmlShutdown = lambda: None
        self.nvmlDeviceGetCount = lambda: 1
        self.nvmlDeviceGetHandleByIndex = lambda index: index

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[Any]:
        self.asked += 1
        held = {7: min(self.asked, 2) * 600 << 20, 8: None}
        return [types.SimpleNamespace(pid=pid, usedGpuMemory=size) for pid, size in held.items()]


def test_the_most_that_a_process_held_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver()
    monkeypatch.setitem(sys.modules, "pynvml", driver)
    monkeypatch.setattr("cudalint.verify.sampling._SECONDS", 0.01)
    with Hardware() as hardware:
        until = time.monotonic() + 60
        while driver.asked < 4 and time.monotonic() < until:
            time.sleep(0.01)
    assert hardware.footprints({7, 9}) == (Footprint(7, 0, 1200),)
    assert hardware.footprints({7, 8}) == (Footprint(8, 0, 0),)


def test_without_the_library_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with Hardware() as hardware:
        assert hardware.footprints({1}) == ()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_a_bar_on_a_terminal_and_lines_elsewhere() -> None:
    for err in (io.StringIO(), Terminal()):
        with progress(err, 2) as shown:
            shown.say("begins [y]")
            shown.step("one: confirmed", False)
            shown.step("two: refuted [x]", True)
        told = err.getvalue()
        assert "cudalint: begins [y]\n" in told
        assert ("cudalint: [1/2] one: confirmed\n" in told) is not err.isatty()
        assert "two: refuted [x]" in told


def test_terse_lines_are_what_stands_out_and_ten_milestones() -> None:
    err = io.StringIO()
    with progress(err, 40, terse=True) as shown:
        for number in range(40):
            shown.step(f"{number}: fine", number == 5)
    lines = err.getvalue().splitlines()
    assert lines[:3] == ["cudalint: [4/40]", "cudalint: [6/40] 5: fine", "cudalint: [8/40]"]
    assert (len(lines), lines[-1]) == (11, "cudalint: [40/40]")


def test_the_repaired_program_runs_too_and_all_reports_tell(tmp_path: Path) -> None:
    program = tmp_path / "broken_pinned.py"
    program.write_text(PINNED)
    out = io.StringIO()
    assert verify([str(program)], on_paper=True, output_format=Format.JSON, out=out, err=io.StringIO()) == 0
    (entry,) = json.loads(out.getvalue())["fixtures"].values()
    assert (entry["run"]["end"], entry["run"]["processes"]) == ("crash (exit 1)", {"0": [None]})
    assert entry["fixed"]["end"] == "ok"
    assert program.read_text() == PINNED


def seen(outcome: Outcome, **measured: str) -> Observation:
    return Observation(outcome, 0, "", "", (), 1.0, "ended", measured=measured)


@pytest.mark.parametrize(
    ("header", "fixed", "reason"),
    [
        ('outcome = "wrong-device"\n# measure = "n == 1"', seen(Outcome.OK, n="2"), ""),
        ('outcome = "wrong-device"\n# measure = "n == 1"', seen(Outcome.OK, n="1"), "repaired, it still shows n == 1"),
        ('outcome = "wrong-device"\n# measure = "n == 1"', seen(Outcome.HANG), "repaired, it ends with hang"),
        ('outcome = "cost"\n# measure = "n == 1"', seen(Outcome.OK, n="1"), ""),
    ],
)
def test_a_repair_must_end_well(tmp_path: Path, header: str, fixed: Observation, reason: str) -> None:
    path = tmp_path / "broken.py"
    path.write_text(f"# /// script\n# [tool.cudalint]\n# {header}\n# ///\n")
    fixture = headers.load(path)
    assert fixture is not None
    severity = Severity.ERROR if "wrong" in header else Severity.WARNING
    predicted = [Prediction("CUD503", 1, 1, severity, fixture.header.outcome.value)]
    verdict = judge(fixture, predicted, seen(Outcome.OK, n="1"), None, fixed)
    assert reason in "".join(verdict.reasons)
    assert verdict.status is (Status.REFUTED if reason else Status.CONFIRMED)


def test_junit_and_before_and_after(tmp_path: Path) -> None:
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    (shelf / "far.py").write_text("# /// script\n# [tool.cudalint]\n# outcome = 'ok'\n# start-method = 'x'\n# ///\n")
    (shelf / "bad.py").write_text(
        "# /// script\n# [tool.cudalint]\n# outcome = 'ok'\n# ///\nraise ValueError('\x07 \uffff')\n"
    )
    out = io.StringIO()
    assert verify([str(shelf)], on_paper=True, output_format=Format.JUNIT, out=out, err=io.StringIO()) == 1
    (suite,) = ET.fromstring(out.getvalue().encode()).iter("testsuite")
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("2", "1", "1")
