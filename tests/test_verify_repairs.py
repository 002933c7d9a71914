"""``cudalint --verify --fixes``: programs of one's own as they are and as repairs leave them, on paper."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from cudalint.hosts.cli import main
from cudalint.verify import paper
from cudalint.verify.own_campaign import compare_all
from cudalint.verify.own_repairs import Comparer, Comparison, Status
from cudalint.verify.program import Manner, script
from cudalint.verify.runner import Runner

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="programs are run on Linux")

FORKS = """\
import multiprocessing

import torch
from helper import READ


def work():
    torch.ones(3, device="cuda")


if __name__ == "__main__":
    torch.cuda.init()
    child = multiprocessing.get_context("fork").Process(target=work)
    child.start()
    child.join()
    print(READ, child.exitcode)
"""
STATEMENT = """\
import torch

torch.cuda.device(1)
print("on", torch.ones(3, device="cuda").get_device())
"""


def told(arguments: list[str], capsys: pytest.CaptureFixture[str], code: int) -> dict[str, Any]:
    assert main(["--verify", "--fixes", "--paper", "--gpus", "2", *arguments, "--output-format", "json"]) == code
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_repaired_programs_run_beside_what_they_use_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text(FORKS)
    (tmp_path / "helper.py").write_text("READ = open('data/words.txt').read()\nopen('new.txt', 'w').close()\n")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "words.txt").write_text("some words")
    monkeypatch.chdir(tmp_path)
    (program,) = told(["train.py"], capsys, 0)["programs"]
    (repair,) = program["repairs"]
    assert (program["as it is"]["end"], program["as it is"]["output"]) == ("child-death (1)", ["some words 1"])
    assert (repair["status"], repair["end"], repair["output"]) == ("repaired", "ok", ["some words 0"])
    assert [one["code"] for one in repair["findings"]] == ["CUD101"]
    assert (tmp_path / "train.py").read_text() == FORKS
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "helper.py", "train.py"]


def test_a_module_runs_as_its_repair_leaves_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    (tmp_path / "package" / "train.py").write_text(STATEMENT)
    monkeypatch.chdir(tmp_path)
    (program,) = told(["-m", "package.train"], capsys, 0)["programs"]
    assert [one["output"] for one in (program["as it is"], *program["repairs"])] == [["on 0"], ["on 1"]]


def test_what_an_unsafe_repair_changes_is_shown_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text(STATEMENT)
    monkeypatch.chdir(tmp_path)
    assert main(["--verify", "--fixes", "--paper", "--gpus", "2", "train.py"]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert "output differs: ok after" in "\n".join(lines)
    assert "not safe: what follows then runs on that GPU, where it ran on another" in lines
    assert {"-on 0", "+on 1"} <= set(lines)
    assert f"{'on 0':56} | on 1" in lines
    assert lines[-1] == "1 program, 1 repair: 1 output differs"


def test_a_repair_that_leaves_its_program_broken_fails_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken.py").write_text(FORKS.replace("from helper import READ\n", "").replace("READ", "1 // 0"))
    (tmp_path / "fine.py").write_text("print('no repairs')\n")
    monkeypatch.chdir(tmp_path)
    command = ["--verify", "--fixes", "--paper", "broken.py", "fine.py", "--output-format"]
    assert main([*command, "junit"]) == 1
    ((case,),) = ET.fromstring(capsys.readouterr().out.encode())
    assert case[0].attrib["message"].startswith("still broken: crash (exit 1)")


def test_a_program_that_fails_by_itself_blames_no_repair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text("import sys\n\nprint(int(sys.argv[1]))\n" + STATEMENT)
    monkeypatch.chdir(tmp_path)
    assert main(["--verify", "--fixes", "--paper", "train.py"]) == 2
    seen = capsys.readouterr()
    assert "fails by itself: crash (exit 1)" in seen.out
    assert seen.err.splitlines()[-1].endswith("fails for reasons of its own, with and without its repairs")
    assert main(["--verify", "--fixes", "--paper", "--gpus", "2", "train.py", "--", "3"]) == 0


def test_a_repair_for_more_gpus_than_there_are_is_not_called_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text(STATEMENT)
    monkeypatch.chdir(tmp_path)
    assert main(["--verify", "--fixes", "--paper", "--gpus", "1", "train.py"]) == 2
    seen = capsys.readouterr()
    assert "needs more GPUs: crash (exit 1)" in seen.out
    assert "invalid device ordinal" in seen.out
    assert seen.err.splitlines()[-1].endswith("asks for a GPU that is not there: a machine with more of them can tell")


def test_what_both_print_first_stands_in_one_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = "for row in range(40):\n    print('row', row)\n"
    (tmp_path / "train.py").write_text(STATEMENT.replace("torch.cuda.device(1)", f"{first}torch.cuda.device(1)"))
    monkeypatch.chdir(tmp_path)
    assert main(["--verify", "--fixes", "--paper", "--gpus", "2", "train.py"]) == 0
    beside = [line.split("|") for line in capsys.readouterr().out.splitlines() if " | " in line][1:]
    rows = [tuple(side.strip() for side in sides) for sides in beside]
    assert rows == [*((f"row {n}", f"row {n}") for n in range(29, 40)), ("on 0", "on 1")]


def test_several_repairs_run_each_by_itself_and_all_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text(STATEMENT + STATEMENT.partition("\n")[2].replace("1)", "0)"))
    monkeypatch.chdir(tmp_path)
    (program,) = told(["train.py"], capsys, 0)["programs"]
    assert [one["output"] for one in program["repairs"]] == [["on 1", "on 1"], ["on 0", "on 0"], ["on 1", "on 0"]]
    assert [one["status"] for one in program["repairs"]] == ["still broken", "still broken", "output differs"]
    assert program["repairs"][-1]["message"] == "all repairs together"


def test_markdown_holds_both_outputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text(STATEMENT)
    monkeypatch.chdir(tmp_path)
    assert main(["--verify", "--fixes", "--paper", "--gpus", "2", "train.py", "--output-format", "markdown"]) == 0
    out = capsys.readouterr().out
    assert "| output differs | ok after" in out
    assert "```diff\n--- as it is\n+++ repaired\n@@ -1 +1 @@\n-on 0\n+on 1\n```" in out
    assert "### As it is\n\n```text\non 0\n```" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "--fixes runs programs of your own: name one or more"),
        ((".",), "--fixes runs programs of your own: . is a folder"),
        (("fixture.py",), "fixture.py is a fixture, which runs repaired anyway"),
        (("train.py", "other.py", "--", "1"), "arguments after -- are for one program of your own"),
        (("-m", "train", "other.py"), "name one program"),
        (("train.py", "--select", "CUD1"), "--select is for fixtures"),
        (("train.py", "--evidence", "x"), "--evidence"),
        (("train.py", "--no-fixed"), "--no-fixed is for fixtures"),
        (("train.py", "--limit-scale", "2"), "--limit-scale is for fixtures"),
        (("--models",), "--fixes is for programs"),
        (("gone.py",), "no such file or directory: gone.py"),
        (("other.py",), "there are no repairs: nothing was run"),
    ],
)
def test_what_does_not_fit_together_is_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    said: str,
) -> None:
    (tmp_path / "train.py").write_text(STATEMENT)
    (tmp_path / "other.py").write_text("")
    (tmp_path / "fixture.py").write_text('# /// script\n#\n# [tool.cudalint]\n# outcome = "ok"\n# ///\n')
    monkeypatch.chdir(tmp_path)
    assert main(["--verify", "--fixes", "--paper", *arguments]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert len(err.splitlines()) == 1


WAITS = """\
import multiprocessing
import pathlib
import sys
import time

import torch


def work(results):
    results.put(torch.ones(3, device="cuda").sum().item())


def meet(own, other):
    pathlib.Path(own).touch()
    until = time.monotonic() + 20
    while not pathlib.Path(other).exists() and time.monotonic() < until:
        time.sleep(0.01)
    print("met" if pathlib.Path(other).exists() else "alone")


if __name__ == "__main__":
    torch.cuda.init()
    meet("OWN", "OTHER")
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    child = context.Process(target=work, args=(results,))
    child.start()
    print(results.get())
    child.join()
"""


def test_programs_run_beside_each_other_and_a_hang_ends_when_all_its_processes_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for own, other in ("ab", "ba"):
        text = WAITS.replace("OWN", str(tmp_path / own)).replace("OTHER", str(tmp_path / other))
        (tmp_path / f"{own}.py").write_text(text)
    (tmp_path / "calm.py").write_text("print('calm')\n")
    programs = [script(f"{name}.py", ()) for name in ("b", "calm", "a")]
    told: list[str] = []

    def tell(one: Comparison) -> None:
        told.append(one.program.name)

    comparer = Comparer(Runner(paper.Paper(2)), None, paper.machine(2).devices, Manner(rest=4.0))
    done = compare_all(programs, comparer, tell)
    assert [one.program.name for one in done.comparisons] == ["b.py", "calm.py", "a.py"]
    assert sorted(told) == ["a.py", "b.py", "calm.py"]
    assert not done.interrupted
    for one in (done.comparisons[0], done.comparisons[2]):
        assert one.before is not None
        assert one.before.seen.summary == "hang (all its processes waited)"
        assert one.before.printed == ("met",)
        assert [(attempt.status, attempt.trial.printed) for attempt in one.attempts] == [
            (Status.REPAIRED, ("met", "3.0"))
        ]


def test_a_program_that_ends_who_watches_it_is_not_said_to_be_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kills = "import os, signal\n\nwatches = os.getppid()\n"
    kills += "assert b'supervise' in open(f'/proc/{watches}/cmdline', 'rb').read()\nos.kill(watches, signal.SIGKILL)\n"
    (tmp_path / "train.py").write_text(kills + STATEMENT)
    monkeypatch.chdir(tmp_path)
    assert main(["--verify", "--fixes", "--paper", "--gpus", "2", "train.py"]) == 2
    err = capsys.readouterr().err
    assert "nothing is known of a program: its supervisor was killed" in err
    assert "interrupted" not in err
