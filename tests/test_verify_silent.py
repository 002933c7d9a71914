"""``cudalint --verify`` on programs that end well and are wrong, or that end badly in a way of their own, on paper."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from verify_programs.run import Sample, samples, statuses

from cudalint.verify import Format, script, verify_program
from cudalint.verify.gpus import Gpu
from cudalint.verify.paper import Paper
from cudalint.verify.runner import Limits, Runner

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="programs are run on Linux")

ONE_GPU = (Gpu(0, "none", 80000),)
# One of each kind of reading, with its contradiction; tests/verify_programs/run.py runs them all.
CHOSEN = {
    "broken_101_gives_up",
    "broken_107_caught",
    "broken_108_guarded_name",
    "broken_202_too_late",
    "broken_204_statement",
    "broken_205_thread",
    "broken_305_other_words",
    "broken_305_stream_in_queue",
    "broken_504_early",
    "broken_506_global_rank",
    "ok_101_nvml_check",
    "ok_101_own_error",
    "ok_201_hidden_gpus",
    "ok_202_nvml_check",
    "ok_204_current",
    "ok_204_replaced",
    "ok_205_hidden_choice",
    "ok_302_host",
    "ok_304_owner_waits",
    "ok_502_hidden_choice",
    "ok_506_same_number",
}


@pytest.mark.parametrize("sample", [one for one in samples() if one.name in CHOSEN], ids=lambda one: one.name)
def test_a_prediction_is_confirmed_or_refuted_by_what_was_read(monkeypatch: pytest.MonkeyPatch, sample: Sample) -> None:
    monkeypatch.chdir(sample.path.parent)
    found, why = statuses(sample, on_paper=True)
    assert found == sample.expected, why


def run(path: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> tuple[int, dict[str, Any], str]:
    monkeypatch.chdir(path.parent)
    out, err = io.StringIO(), io.StringIO()
    code = verify_program(script(path.name, []), output_format=Format.JSON, out=out, err=err, **options)
    return code, json.loads(out.getvalue()), err.getvalue()


FORKS = """\
import os

import torch

torch.cuda.init()
child = os.fork()
if child == 0:
    try:
        torch.ones(1).cuda()
    finally:
        os._exit(0)
os.waitpid(child, 0)
"""


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python cannot tell which lines were passed")
@pytest.mark.parametrize(("raises", "status"), [("pass", "refuted"), ("raise OSError", "reached")])
def test_a_line_that_was_to_fail_is_refuted_only_where_it_was_passed_without_an_exception(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raises: str, status: str
) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "torch.py").write_text(
        "class _C:\n    _cuda_init = staticmethod(lambda: None)\n"
        "class cuda:\n    init = staticmethod(lambda: _C._cuda_init())\n"
        f"class ones:\n    def __init__(self, n): pass\n    def cuda(self): {raises}\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    (tmp_path / "train.py").write_text(FORKS)
    _, told, _ = run(tmp_path / "train.py", monkeypatch, gpus_available=ONE_GPU)
    assert [(one["code"], one["status"]) for one in told["findings"]] == [("CUD101", status)]


def test_a_failure_that_a_finding_may_predict_is_not_called_the_program_s_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        "import multiprocessing\nimport torch\n\n\ndef work(n):\n    SAID\n"
        "    return torch.ones(n, device='cuda').sum().item()\n\n\nif __name__ == '__main__':\n    torch.cuda.init()\n"
        "    print(multiprocessing.get_context('fork').Pool(1).map(work, [1]))\n"
    )
    for said, expected in (
        ("n and (_ for _ in ()).throw(SystemError('neither text nor type is known'))", "CUD101 at train.py:12:11"),
        ("n = {}[n]", "the program failed for reasons of its own"),
    ):
        (tmp_path / "train.py").write_text(text.replace("SAID", said))
        code, told, err = run(tmp_path / "train.py", monkeypatch, on_paper=True)
        assert (code, [one["status"] for one in told["findings"]]) == (2, ["reached"])
        assert expected in err


FULL = """\
import multiprocessing
import queue

import torch


class Shared:
    def __reduce__(self):
        raise RuntimeError("CUDA error: out of memory")


def work(tasks, out):
    try:
        out.put(str(tasks.get(timeout=3)))
    except queue.Empty:
        out.put("nothing came")


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    tasks, out = context.Queue(), context.Queue()
    worker = context.Process(target=work, args=(tasks, out))
    worker.start()
    tasks.put((Shared(), torch.cuda.Stream()))
    print(out.get(timeout=60))
    worker.join()
"""


def test_a_full_gpu_confirms_nothing_about_what_pickles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream that was sent would have been refused; that no room was left says nothing of it."""
    (tmp_path / "train.py").write_text(FULL)
    _, told, _ = run(tmp_path / "train.py", monkeypatch, on_paper=True)
    assert [(one["code"], one["status"]) for one in told["findings"]] == [("CUD305", "reached")]


ASKS = """\
import multiprocessing
import os
import threading

import torch


def work(n):
    torch.cuda.set_device(n)
    return torch.cuda.current_device(), torch.ones(1, device="cuda").get_device()


if __name__ == "__main__":
    print(torch.cuda.is_initialized())
    multiprocessing.get_context("spawn").SimpleQueue().put(torch.ones(1))
    print(torch.cuda.is_initialized(), torch.cuda.device_count())
    torch.cuda.init()
    os.environ["CUDA_VISIBLE_DEVICES"] = "1"
    thread = threading.Thread(target=work, args=(0,))
    thread.start()
    thread.join()
    print(torch.cuda.device_count(), torch.cuda.current_device(), torch.cuda.memory_allocated())
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(work, [0, 0]))
"""


def test_looking_at_devices_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(ASKS)
    runner = Runner(Paper(2))
    watched = runner.watch(["train.py"], Limits(), [(str(tmp_path / "train.py"), 9, 10)])
    plain = runner.run(tmp_path / "train.py", Limits())
    assert any("'usage'" in line for line in watched.journal)
    assert not any("'usage'" in line for line in plain.journal)
    assert (watched.stdout, watched.code) == (plain.stdout, plain.code) != ("", 0)


DAEMON = """\
import os, time

if os.fork():
    os._exit(0)
os.setsid()
for number in (0, 1, 2):
    os.close(number)
time.sleep(60)
"""
CHILD_OF_DAEMON = """\
import os, time
import torch

torch.zeros(1, device="cuda")
if os.fork():
    os._exit(0)
os.setsid()
time.sleep(60)
torch.ones(1, device="cuda")
"""
THREAD = """\
import os, threading, time

thread = threading.Thread(target=lambda: os.fork() or time.sleep(60))
thread.start()
thread.join()
"""
CLOSES = "import os\nprint('before', flush=True)\nos.closerange(0, 256)\n"
REPLACED = "import os\nos.execv('/bin/sh', ['sh', '-c', 'echo another; exit 4'])\n"
GROUP = "import os\nos.setpgrp()\nassert os.getpgrp() == os.getpid() != os.getsid(0)\nprint('its own', flush=True)\n"
# Only where the parent is the process that watches this one.
WATCHED = "import os, signal\nown = os.getppid()\nassert b'supervise' in open(f'/proc/{own}/cmdline', 'rb').read()\n"
STOPS = WATCHED + "os.kill(own, signal.SIGSTOP)\nprint('goes on', flush=True)\n"
TELLS = WATCHED + "os.kill(own, signal.SIGTERM)\nsignal.pause()\n"
KILLS = WATCHED + "os.killpg(os.getpgid(own), signal.SIGKILL)\nsignal.pause()\n"
GARBLED = (
    "import os\nnotes = os.open(os.environ['CUDALINT_JOURNAL'], os.O_WRONLY | os.O_APPEND)\n"
    "os.write(notes, bytes(range(256)) * 9 + b'\\nended x\\nforked\\npython 1 2\\nevent (\\n')\n"
    "print('noted', flush=True)\n"
)
CLEARED = "import os, shutil\nshutil.rmtree(os.path.dirname(os.environ['CUDALINT_JOURNAL']))\n"


@pytest.mark.parametrize(
    ("text", "end", "left_behind", "code", "said"),
    [
        pytest.param(DAEMON, "ok", 1, 0, "", id="daemon"),
        pytest.param(THREAD, "ok", 1, 0, "", id="fork in a thread"),
        pytest.param(CLOSES, "ok", 0, 0, "before\n", id="descriptors"),
        pytest.param(REPLACED, "crash (exit 4)", 0, 2, "failed for reasons of its own", id="exec"),
        pytest.param(GROUP, "ok", 0, 0, "its own\n", id="group"),
        pytest.param(STOPS, "ok", 0, 0, "goes on\n", id="who watches is stopped"),
        pytest.param(TELLS, "broken off (lost)", 0, 2, "was killed or told to end", id="who watches is told"),
        pytest.param(KILLS, "broken off (lost)", 0, 2, "was killed or told to end", id="group of who watches"),
        pytest.param(GARBLED, "ok", 0, 0, "noted\n", id="notes"),
        pytest.param(CLEARED, "broken off (lost)", 0, 2, "nothing is known of the program", id="folder"),
    ],
)
def test_what_programs_do_to_themselves_gets_a_verdict_and_leaves_nobody(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    text: str,
    end: str,
    left_behind: int,
    code: int,
    said: str,
) -> None:
    # Tests run beside each other: this one looks for its own program.
    program = tmp_path / f"odd_program_{os.getpid()}.py"
    program.write_text(text)
    ended, told, err = run(program, monkeypatch, gpus_available=ONE_GPU)
    assert (told["end"], told["left behind"], ended) == (end, left_behind, code)
    assert said in err + capfd.readouterr().err
    commands = (path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists())
    assert not any(program.name.encode() in command for command in commands)


STOPS_ITSELF = "import os, signal\nprint('before', flush=True)\nos.kill(os.getpid(), signal.SIGSTOP)\n"
STOPS_A_CHILD = (
    "import os, signal\nchild = os.fork()\nif child == 0:\n    signal.pause()\n"
    "print('before', flush=True)\nos.kill(child, signal.SIGSTOP)\nos.waitpid(child, 0)\n"
)
GOES_ON = (
    "import os, signal, time\nchild = os.fork()\n"
    "if child == 0:\n    os.kill(os.getpid(), signal.SIGSTOP)\n    os._exit(0)\n"
    "os.waitpid(child, os.WUNTRACED)\nbegan = time.process_time()\nwhile time.process_time() < began + 2.0:\n    pass\n"
    "os.kill(child, signal.SIGCONT)\nos.waitpid(child, 0)\n"
)


@pytest.mark.parametrize(
    ("text", "end", "code", "said"),
    [
        pytest.param(STOPS_ITSELF, "stopped", 2, "and nobody let it go on for 1 s", id="itself"),
        pytest.param(STOPS_A_CHILD, "stopped", 2, "and nobody let it go on for 1 s", id="child"),
        pytest.param(GOES_ON, "ended", 0, "", id="goes on"),
    ],
)
def test_a_program_that_a_signal_has_stopped_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, end: str, code: int, said: str
) -> None:
    monkeypatch.setattr("cudalint.verify.program.LONGEST_STOP", 1.0)
    program = tmp_path / f"stopped_program_{os.getpid()}.py"
    program.write_text(text)
    ended, told, err = run(program, monkeypatch, gpus_available=ONE_GPU)
    shown = "hang (a signal has stopped it, and all its processes waited)" if end == "stopped" else "ok"
    assert (told["end"], ended, said in err) == (shown, code, True)
    commands = (path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists())
    assert not any(program.name.encode() in command for command in commands)


@pytest.mark.parametrize("output_format", ["table", "json", "junit", "markdown"])
def test_a_program_that_removes_the_folder_it_began_in_is_told_of(
    tmp_path: Path, process: Callable[..., subprocess.CompletedProcess[str]], output_format: str
) -> None:
    removes = "import os, shutil\n\nshutil.rmtree(os.path.dirname(os.path.abspath(__file__)))\n"
    (tmp_path / "train.py").write_text(removes + FORKS)
    done = process("--verify", "--paper", "--output-format", output_format, "train.py")
    assert (done.returncode, "internal error" in done.stderr) == (0, False)
    assert "CUD101" in done.stdout
    assert not tmp_path.exists()


def test_what_a_daemon_did_not_show_before_it_was_ended_is_not_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").write_text(CHILD_OF_DAEMON)
    code, told, err = run(tmp_path / "train.py", monkeypatch, on_paper=True)
    ((status, why),) = [(finding["status"], finding["why"]) for finding in told["findings"]]
    assert (code, status, "went on in the background" in err) == (2, "reached", True)
    assert "was ended before anything showed it" in why


def test_a_daemon_that_may_yet_have_done_what_is_predicted_shows_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").write_text(
        "import os, time\nimport torch\n\n\ndef main():\n    torch.cuda.init()\n    if os.fork() == 0:\n"
        "        torch.ones(1).cuda()\n\n\nif os.fork():\n    os._exit(0)\ntime.sleep(60)\nmain()\n"
    )
    code, told, err = run(tmp_path / "train.py", monkeypatch, on_paper=True)
    assert [one["status"] for one in told["findings"]] == ["not reached"]
    assert (code, "went on in the background" in err) == (2, True)
