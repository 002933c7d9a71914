"""``cudalint explain``: what is believed of the processes at a line, of every kind of state that there is."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cudalint import config
from cudalint.session import Session

Run = Callable[..., "subprocess.CompletedProcess[str]"]
WORK = "def work(n):\n    return torch.ones(n, device='cuda')\n\n\n"
# What a program does before the line that is asked about, and what is then said of its process there.
STATES = {
    "multiprocessing.set_start_method('spawn')": "start method of multiprocessing: spawn",
    "multiprocessing.get_start_method()": "start method of multiprocessing: settled as the default",
    "torch.cuda.set_device(1)": "device: 1 selected",
    "torch.cuda.set_device(int(os.environ['LOCAL_RANK']))": "device: one per rank selected",
    "torch.distributed.init_process_group('gloo')": "process group: gloo",
    "os.environ['CUDA_VISIBLE_DEVICES'] = '0'": "CUDA_VISIBLE_DEVICES is set by the program",
    "torch.cuda.is_available()": "CUDA: queried: torch.cuda.is_available() asks the driver",
    "torch.zeros(1, device='cuda')": "CUDA: initialised by torch: torch.zeros() initialises CUDA",
    "pass": "CUDA: untouched in this process",
}


def program(before: str, after: str = "print('here')") -> str:
    body = f"    {before}\n    {after}\n"
    head = "import multiprocessing\nimport os\n\nimport torch\nimport torch.distributed\n\n\n"
    return f"{head}{WORK}if __name__ == '__main__':\n{body}"


def row(text: str, words: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if words in line)


@pytest.mark.parametrize("before", STATES)
def test_each_kind_of_state_is_named(run: Run, tmp_path: Path, before: str) -> None:
    text = program(before)
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    done = run("explain", f"train.py:{row(text, 'here')}")
    assert done.returncode == 0
    assert f"  {STATES[before]}\n" in done.stdout


def test_what_initialised_cuda_is_told_apart_from_what_asked_first(run: Run, tmp_path: Path) -> None:
    text = program("print(torch.cuda.is_available(), torch.cuda.get_device_name())")
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    said = run("explain", f"train.py:{row(text, 'here')}").stdout
    assert "  CUDA: initialised by torch: torch.cuda.get_device_name() initialises CUDA\n" in said
    assert "  CUDA: queried: torch.cuda.is_available() asks the driver\n" in said


def test_a_place_may_have_a_column_as_reports_print_it(run: Run, tmp_path: Path) -> None:
    text = program("torch.cuda.set_device(1)")
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    (tmp_path / "train.py:3").write_text(text, encoding="utf-8")
    place = f"train.py:{row(text, 'here')}"
    assert run("explain", f"{place}:5").stdout == run("explain", place).stdout
    # Unless it is the name of a file: that is no Python, and nothing is known of it.
    assert run("explain", "train.py:3:1").stdout != run("explain", "train.py:3").stdout
    done = run("explain", f"{place}:0")
    assert done.returncode == 2
    assert "expected FILE:LINE, not" in done.stderr
    done = run("explain", ".:1")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "cudalint: error: . is a folder: name a file, or ask for its --functions\n"


def test_a_worker_knows_of_its_parent(run: Run, tmp_path: Path) -> None:
    text = program("torch.cuda.init()", "multiprocessing.get_context('fork').Process(target=work, args=(1,)).start()")
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    told = run("explain", f"train.py:{row(text, 'return')}").stdout
    assert "the parent used CUDA before the fork" in told
    assert "started by" in told
    assert "(fork)" in told


LAUNCHES = {
    "multiprocessing.get_context('spawn').Pool(4).map(work, [1])": "4 processes by spawn; CUDA untouched before",
    "multiprocessing.get_context('fork').Process(target=work).start()": "a process by fork; CUDA untouched before",
}


@pytest.mark.parametrize("launch", LAUNCHES)
def test_a_line_with_a_launch_says_how_many_and_how(tmp_path: Path, launch: str) -> None:
    text = program("pass", launch)
    path = tmp_path / "train.py"
    path.write_text(text, encoding="utf-8")
    seen = Session(config.load([str(path)])).seen(str(path))
    assert LAUNCHES[launch] in [words for _, words in seen.launches]


def test_cuda_on_some_ways_to_a_launch_is_said(tmp_path: Path) -> None:
    text = program(
        "if len(os.sys.argv) > 1:\n        torch.zeros(1, device='cuda')",
        "multiprocessing.get_context('spawn').Pool(4).map(work, [1])",
    )
    path = tmp_path / "train.py"
    path.write_text(text, encoding="utf-8")
    seen = Session(config.load([str(path)])).seen(str(path))
    assert any("CUDA used before on some paths: line " in words for _, words in seen.launches)


def test_a_finding_is_told_at_each_row_of_its_call(run: Run, tmp_path: Path) -> None:
    launch = "multiprocessing.get_context('fork').Pool(\n        1,\n        initializer=work,\n    )"
    text = program("torch.cuda.init()", launch.replace("initializer=work,", "initializer=work, initargs=(1,),"))
    (tmp_path / "train.py").write_text(f"{text}    print('here')\n", encoding="utf-8")
    begin = row(text, "Pool(")
    said = f"error[CUD101] at {begin}:5: "
    shown = [said in run("explain", f"train.py:{begin + more}").stdout for more in range(-1, 5)]
    assert shown == [False, True, True, True, True, False]


def test_no_repair_is_tried_out_for_a_line(
    run: Run, tmp_path: Path, forked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").write_text(forked, encoding="utf-8")
    monkeypatch.setitem(sys.modules, "cudalint.fixes.engine", None)
    done = run("explain", f"train.py:{row(forked, 'Pool(')}")
    assert done.returncode == 0, done.stderr
    assert "error[CUD101]" in done.stdout


def test_what_is_believed_of_several_processes_is_said_once(run: Run, tmp_path: Path) -> None:
    write_program = tmp_path / "train.py"
    asks = "if torch.cuda.is_available():\n        print(torch.cuda.get_device_name())"
    text = program(asks, "with multiprocessing.Pool(4) as pool:\n        pool.map(work, [1, 2])")
    write_program.write_text(text)
    done = run("explain", f"{write_program}:{row(text, 'return torch.ones')}")
    assert done.stdout.count("pool worker, started by Pool.map (fork)") == 1
