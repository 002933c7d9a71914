"""``cudalint --verify train.py``: a program of one's own under the probe, on paper CUDA and on plain Python."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from marked_processes import started

from cudalint.hosts.cli import main
from cudalint.verify import Format, script, verify_program
from cudalint.verify.gpus import Gpu
from cudalint.verify.runner import Limits, Runner

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="programs are run on Linux")

Command = Callable[..., "subprocess.CompletedProcess[str]"]
ONE_GPU = (Gpu(0, "none", 80000),)

TRAIN = """\
import multiprocessing
import sys

import torch


def work(n):
    return torch.ones(n, device="cuda").sum().item()


def never():
    multiprocessing.get_context("fork").Pool(1).map(work, [1])


if __name__ == "__main__":
    torch.zeros(1, device="cuda")
    print("arguments", sys.argv[1:])
    if "--twice" in sys.argv:
        never()
    print(multiprocessing.get_context("fork").Pool(1).map(work, [1, 2, 3]))
"""

# The worker stands in a file that is no module, where no linter looks.
HIDDEN = """\
import os

import torch

torch.cuda.init()
child = os.fork()
if child == 0:
    try:
        exec(compile(open("worker.txt").read(), os.path.abspath("worker.txt"), "exec"))
    except RuntimeError:
        pass
    os._exit(0)
os.waitpid(child, 0)
"""


def try_out(path: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> tuple[int, dict[str, Any], str]:
    monkeypatch.chdir(path.parent)
    out, err = io.StringIO(), io.StringIO()
    code = verify_program(script(path.name, []), output_format=Format.JSON, out=out, err=err, **options)
    return code, json.loads(out.getvalue()), err.getvalue()


def test_a_finding_that_comes_true_is_confirmed_with_the_stacks_of_parent_and_child(
    process: Command, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    done = process("--verify", "--paper", "train.py", "--", "--epochs", "1")
    lines = done.stdout.splitlines()
    assert done.returncode == 0
    assert "arguments ['--epochs', '1']" in done.stderr
    assert [line.split(": ")[:2] for line in lines if line.startswith("train.py")] == [
        ["train.py:12:5", "CUD101 not reached"],
        ["train.py:20:11", "CUD101 confirmed"],
    ]
    parent = next(index for index, line in enumerate(lines) if "asked for CUDA" in line)
    assert lines[parent + 1] == '    train.py:16 in <module>: torch.zeros(1, device="cuda")'
    child = next(index for index, line in enumerate(lines) if line.startswith("  process") and index > parent)
    assert lines[child + 1] == '    train.py:8 in work: return torch.ones(n, device="cuda").sum().item()'
    assert lines[-1] == "2 findings: 1 confirmed, 1 not reached; 0 violations not predicted"
    assert "no GPU took part" in lines[-2]


def test_what_nobody_predicted_is_told_with_both_stacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hidden.py").write_text(HIDDEN)
    (tmp_path / "worker.txt").write_text("x = 1\ntorch.ones(1).cuda()\n")
    code, told, _ = try_out(tmp_path / "hidden.py", monkeypatch, on_paper=True)
    assert (code, told["findings"], told["end"]) == (1, [], "ok")
    (seen,) = told["unpredicted"]
    assert (seen["kind"], seen["said"].partition(".")[0]) == (
        "forked-child",
        "RuntimeError: Cannot re-initialize CUDA in forked subprocess",
    )
    rows = {leg: [(Path(f["filename"]).name, f["row"]) for f in seen[leg]] for leg in ("parent", "fork", "child")}
    assert ("hidden.py", 5) in rows["parent"]
    assert ("hidden.py", 6) in rows["fork"]
    assert ("worker.txt", 2) in rows["child"]


def test_a_finding_that_does_not_come_true_is_refuted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a fork the prediction is refuted, where Python can tell that the line which was to fail was passed."""
    status, refuted = ("refuted", 1) if sys.version_info >= (3, 12) else ("reached", 0)
    program = tmp_path / "train.py"
    program.write_text("import os\nimport torch\n\ntorch.cuda.init()\nif os.fork() == 0:\n    torch.ones(1).cuda()\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "torch.py").write_text(
        "class _C:\n    _cuda_init = staticmethod(lambda: None)\n"
        "class cuda:\n    init = staticmethod(lambda: _C._cuda_init())\n"
        "class ones:\n    def __init__(self, n): pass\n    cuda = lambda self: 0\n"
    )
    code, told, _ = try_out(program, monkeypatch, gpus_available=ONE_GPU)
    assert [(one["code"], one["status"]) for one in told["findings"]] == [("CUD101", status)]
    assert code == refuted
    program.write_text(program.read_text().replace("fork() == 0:", "fork() == 0:  # noqa"))
    code, told, _ = try_out(program, monkeypatch, gpus_available=ONE_GPU)
    assert [(one["status"], one["silenced"]) for one in told["findings"]] == [(status, True)]
    assert code == 0


# Two launches on one row: the one that is predicted to fail, and one that this run does not get to.
FORK_OR_SPAWN = """\
import multiprocessing
import sys

import torch


def work(n):
    return torch.ones(n, device="cuda").sum().item()


if __name__ == "__main__":
    torch.zeros(1, device="cuda")
    fork, other = multiprocessing.get_context("fork"), multiprocessing.get_context("spawn")
    print(other.Pool(2).map(work, [1, 2]) if "--other" in sys.argv else fork.Pool(2).map(work, [1, 2]))
"""
LOADER = """\
import sys

import torch
from torch.utils.data import DataLoader as Loader, TensorDataset

if __name__ == "__main__":
    data = TensorDataset(torch.ones(4, 2, device="cuda"))
    fork = "--spawn" not in sys.argv
    spawned = lambda: Loader(data, num_workers=1, multiprocessing_context="spawn")
    print(list(Loader(data, num_workers=1, multiprocessing_context="fork") if fork else spawned()))
"""
DAEMON = """\
import multiprocessing


def inner():
    pass


def work(n):
    multiprocessing.Process(target=inner).start()


if __name__ == "__main__":
    import torch

    print(multiprocessing.get_context("spawn").Pool(1).map(work, [1]))
"""


CHOSEN = """\
import argparse
import multiprocessing

import torch


def work(n):
    return torch.ones(n, device="cuda").sum().item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--start", choices=["fork", "spawn"], default="spawn")
    args = parser.parse_args()
    torch.zeros(1, device="cuda")
    print(multiprocessing.get_context(args.start).Pool(1).map(work, [1]))
"""


@pytest.mark.parametrize(
    ("words", "status", "why"),
    [
        ([], "not reached", "the program was run without --start fork"),
        (["--start=spawn"], "not reached", "the program was run without --start fork"),
        (["--start", "fork"], "confirmed", "Cannot re-initialize CUDA in forked subprocess"),
    ],
)
def test_what_an_option_leads_to_is_not_reached_without_it(
    child: Command, tmp_path: Path, words: list[str], status: str, why: str
) -> None:
    (tmp_path / "train.py").write_text(CHOSEN, encoding="utf-8")
    done = child("--verify", "--paper", "train.py", "--output-format", "json", "--", *words)
    (finding,) = json.loads(done.stdout)["findings"]
    assert (finding["code"], finding["status"]) == ("CUD102", status)
    assert why in finding["why"]


@pytest.mark.parametrize(
    ("text", "statuses"),
    [
        pytest.param(FORK_OR_SPAWN, {"CUD101": "confirmed", "CUD201": "reached"}, id="contexts"),
        pytest.param(LOADER, {"CUD402": "confirmed", "CUD302": "reached"}, id="value"),
        pytest.param(
            TRAIN.replace("torch.ones(n,", "torch.ones(n // 0,"),
            {"CUD101": "reached"},
            id="own error",
        ),
    ],
)
def test_an_exception_confirms_what_it_says_and_nothing_else_at_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, statuses: dict[str, str]
) -> None:
    (tmp_path / "train.py").write_text(text)
    _, told, _ = try_out(tmp_path / "train.py", monkeypatch, on_paper=True)
    reached = [one for one in told["findings"] if one["status"] != "not reached"]
    assert {one["code"]: one["status"] for one in reached} == statuses
    assert all("whether the crash" in one["why"] for one in reached if one["status"] == "reached")


@pytest.mark.parametrize("output_format", ["table", "markdown"])
def test_what_shows_two_findings_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], output_format: str
) -> None:
    (tmp_path / "train.py").write_text(FORK_OR_SPAWN.replace("spawn", "fork"))
    monkeypatch.chdir(tmp_path)
    assert main(["--verify", "--paper", "train.py", "--output-format", output_format]) == 0
    out = capsys.readouterr().out
    assert "2 findings: 2 confirmed" in out
    assert out.count("it forked:") == 1
    named = "Shows CUD101 at train.py:14:11, CUD101 at train.py:14:73."
    assert (named if output_format == "markdown" else "  seen above, of CUD101 at train.py:14:11") in out.splitlines()


def test_stacks_are_of_the_program_and_not_of_the_probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.py").write_text(DAEMON)
    _, told, _ = try_out(tmp_path / "train.py", monkeypatch, on_paper=True)
    ((code, status, seen),) = ((one["code"], one["status"], one["seen"]) for one in told["findings"])
    assert (code, status) == ("CUD107", "confirmed")
    names = [Path(frame["filename"]).name for frame in seen["child"]]
    # Where the program asks for a child that is refused, and what led there.
    assert names[0] == "train.py"
    assert "_cudalint_watch.py" not in names


@pytest.mark.parametrize("by", ["comment", "configuration"])
def test_what_was_silenced_was_predicted(child: Command, tmp_path: Path, by: str) -> None:
    comment = "  # noqa: CUD101" if by == "comment" else ""
    (tmp_path / "train.py").write_text(TRAIN.replace("[1, 2, 3]))", f"[1, 2, 3])){comment}"))
    (tmp_path / "pyproject.toml").write_text('[tool.cudalint]\nignore = ["CUD101"]\n' if by == "configuration" else "")
    done = child("--verify", "--paper", "train.py")
    assert "\ntrain.py:20:11: CUD101 confirmed (silenced): " in done.stdout
    assert done.stdout.splitlines()[-1] == (
        "1 finding: 1 not reached; 1 silenced finding: 1 confirmed; 0 violations not predicted"
        if by == "comment"
        else "0 findings; 2 silenced findings: 1 confirmed, 1 not reached; 0 violations not predicted"
    )
    assert done.returncode == 0


def test_modules_are_run_as_python_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "go.py").write_text("import sys\nprint('went', __name__, sys.argv[1:])\n")
    monkeypatch.chdir(tmp_path)
    assert main(["--verify", "--paper", "-m", "package.go", "--", "-m", "x"]) == 0
    assert "went __main__ ['-m', 'x']" in capfd.readouterr().err
    assert main(["--verify", "--paper", "-m", "package.gone"]) == 2
    assert capfd.readouterr() == ("", "cudalint: error: no module named 'package.gone' that Python could run\n")


@pytest.mark.parametrize(
    ("package", "says"),
    [("import sys\nsys.exit(3)", "exit 3"), ("raise RuntimeError('at import')", "at import"), (None, "exit 7")],
)
def test_the_package_of_a_module_is_imported_by_the_run_alone(
    child: Command, tmp_path: Path, package: str | None, says: str
) -> None:
    folder = tmp_path / "top" / "inner"
    folder.mkdir(parents=True)
    (folder / "go.py").write_text("raise SystemExit(7)")
    if package is not None:
        (folder / "__init__.py").write_text(f"print('loud')\n{package}\n")
    done = child("--verify", "--paper", "-m", "top.inner.go", "--output-format", "junit")
    assert done.returncode == 2
    suite = ET.fromstring(done.stdout)[0]
    assert "on paper" in suite.attrib["name"]
    (case,) = suite
    assert says in case[0].attrib["message"]
    assert ("loud" in done.stderr) is (package is not None)
    assert done.stderr.endswith("cudalint: error: the program failed for reasons of its own: nothing was verified\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("train.py", "--", "1"), "no GPU was found (--paper needs none): nothing was verified"),
        (("-m", "train", "train.py"), "name one program"),
        (("--paper", ".", "--", "1"), "arguments after -- are for one program of your own"),
        (("--paper", "train.py", "--select", "CUD1"), "--select is for fixtures"),
        (("--paper", "train.py", "--no-fixed"), "--no-fixed is for fixtures"),
        (("--paper", "train.py", "--limit-scale", "2"), "--limit-scale is for fixtures"),
        (("train.py", "--gpus", "1"), "CUDA_VISIBLE_DEVICES tells your own program"),
        (("--paper", "--limit", "3"), "--limit is for a program of your own"),
        (("--paper", "train.py", "--limit", "nan"), "--limit: must be greater than 0"),
        (("--paper", "train.py", "--epochs", "1"), "unknown option --epochs"),
        (("--paper", "train.py", "--epochs", "1"), "options of your own program follow --"),
        (("--paper", "loop.py"), "no such file or directory: loop.py"),
        (("--models", "--", "1"), "--models measures expressions"),
        (("--models", "--paper", "--no-fixed"), "--no-fixed is for programs"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_runs_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    said: str,
) -> None:
    (tmp_path / "train.py").write_text("print('ran')\n")
    (tmp_path / "loop.py").symlink_to("loop.py")
    monkeypatch.chdir(tmp_path)
    assert main(["--verify", *arguments]) == 2
    out, err = capsys.readouterr()
    assert (out, "ran" in err, len(err.splitlines())) == ("", False, 1)
    assert said in err


def test_a_program_that_fails_for_reasons_of_its_own_shows_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").write_text("raise SystemExit('usage: train.py DATA')\n")
    code, told, err = try_out(tmp_path / "train.py", monkeypatch, gpus_available=ONE_GPU)
    assert (code, told["end"]) == (2, "crash (exit 1)")
    assert "the program failed for reasons of its own" in err


# Lives until the process that watches it has woken up so often: it looks at all that run each time, however seldom.
LOOKED_AT = """\
import sys, time
def woken():
    rows = open(f"/proc/{sys.argv[1]}/status").read().splitlines()
    return int(next(row for row in rows if row.startswith("voluntary_ctxt_switches")).split()[1])
before = woken()
while woken() < before + 20:
    time.sleep(0.05)
"""


def test_processes_that_the_probe_cannot_enter_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.py").write_text(
        "import os, subprocess, sys\n"
        "for flags in (['-I'], []):\n"
        f"    subprocess.run([sys.executable, *flags, '-c', {LOOKED_AT!r}, str(os.getppid())])\n"
    )
    _, told, _ = try_out(tmp_path / "train.py", monkeypatch, gpus_available=ONE_GPU)
    assert told["processes"] == 2
    (unseen,) = told["not entered"]
    assert " -I -c " in unseen


REPLACED = """\
import multiprocessing, os, sys

import torch


def work(n):
    return torch.ones(n, device="cuda").sum().item()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        os.{call}
    torch.zeros(1, device="cuda")
    with multiprocessing.get_context("fork").Pool(1) as pool:
        print(pool.map(work, [1]))
"""


def test_a_program_that_becomes_another_was_not_verified(child: Command, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(REPLACED.format(call='execvp("true", ["true"])'))
    done = child("--verify", "--paper", "train.py")
    assert done.returncode == 2
    assert "true, into which the probe does not look" in done.stdout
    assert "nothing was verified" in done.stderr


@pytest.mark.parametrize("call", ["execv(sys.executable, [sys.executable, __file__, 'x'])", "path"])
def test_a_program_that_becomes_python_again_is_followed(child: Command, tmp_path: Path, call: str) -> None:
    failed = "try:\n            os.execv('/nowhere', ['nowhere'])\n        except OSError:\n            pass"
    text = REPLACED.format(call=call)
    (tmp_path / "train.py").write_text(text.replace("os.path\n", failed + "\n"))
    done = child("--verify", "--paper", "train.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 finding: 1 confirmed" in done.stdout
    assert "does not look" not in done.stdout


def test_what_a_program_says_gives_a_terminal_no_commands(child: Command, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("raise RuntimeError('\\x1b[2J ##[error] \\u202e')\n")
    done = child("--verify", "--paper", "train.py")
    assert "\x1b" not in done.stdout
    assert "RuntimeError: \\x1b[2J #\ufffd[error] \\u202e" in done.stdout


WORKING = """\
    import multiprocessing, os, sys, threading

    def work(queue, n):
        queue.put((n, os.environ.get("CUDA_VISIBLE_DEVICES"), len(threading.enumerate())))
        raise ValueError(n)

    if __name__ == "__main__":
        os.environ["CUDA_VISIBLE_DEVICES"] = "0"
        for method in ("fork", "spawn"):
            context = multiprocessing.get_context(method)
            queue = context.Queue()
            process = context.Process(target=work, args=(queue, 3))
            process.start()
            print(method, queue.get(), process.join(), process.exitcode)
        print(os.environ.__class__.__setitem__.__name__, multiprocessing.Process.start.__qualname__)
        print("the end", file=sys.stderr)
        sys.exit(5)
    """


def test_programs_end_the_same_with_and_without_the_probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(textwrap.dedent(WORKING))
    plain = subprocess.run([sys.executable, "train.py"], capture_output=True, text=True, timeout=60, check=False)
    watched = Runner().watch(["train.py"], Limits(seconds=60))
    assert (watched.code, watched.stdout) == (plain.returncode, plain.stdout)
    assert plain.stderr.replace("\n", "").endswith("the end")
    assert [line for line in watched.stderr.splitlines() if "_cudalint" not in line and "original(" not in line][
        -1
    ] == (plain.stderr.splitlines()[-1])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_ends_the_program_and_shows_what_was_seen(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "train.py").write_text(
        "import os, signal, time\nimport torch\n\ntorch.cuda.init()\nchild = os.fork()\nif child == 0:\n"
        "    try:\n        torch.ones(1).cuda()\n    except RuntimeError:\n        pass\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('waits', flush=True)\ntime.sleep(99)\n"
    )
    command = [sys.executable, "-m", "cudalint", "--verify", "--paper", "train.py"]
    with started(command, cwd=tmp_path) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "waits\n"
        assert process.stderr.readline() == "waits\n"
        process.send_signal(number)
        time.sleep(0.1)
        process.send_signal(number)  # as timeout(1) says it to the process and to its group
        out, err = process.communicate(timeout=60)  # the program would take longer
    assert process.returncode == 2
    assert "CUD101 confirmed" in out
    assert err.splitlines()[-1] == "cudalint: error: interrupted: what had been seen is shown"


def test_junit_and_markdown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    monkeypatch.chdir(tmp_path)
    assert main(["--verify", "--paper", "train.py", "--output-format", "junit"]) == 0
    (suite,) = ET.fromstring(capsys.readouterr().out.encode()).iter("testsuite")
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "0", "1")
    assert main(["--verify", "--paper", "train.py", "--output-format", "markdown"]) == 0
    assert "| CUD101 | train.py:20:11 | confirmed |" in capsys.readouterr().out


RANK = """\
import torch
import torch.distributed as dist

dist.init_process_group("nccl")
dist.all_reduce(torch.ones(1, device="cuda"))
"""
# Starts two ranks, as torchrun does.
LAUNCHER = """\
import os, subprocess, sys

world = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29533"}
ranks = [
    subprocess.Popen([sys.executable, NAME], env={**world, "RANK": str(rank), "LOCAL_RANK": str(rank)})
    for rank in range(2)
]
sys.exit(max(rank.wait() for rank in ranks))
"""


def test_a_program_is_all_that_it_imports_whatever_else_lies_around(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "my programs"
    package = folder / "app"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (folder / "my train.py").write_text("from app.run import main\n\nif __name__ == '__main__':\n    main()\n")
    (folder / "another.py").write_text(TRAIN)
    (package / "run.py").write_text(
        "import multiprocessing\nimport torch\nfrom .work import work\n\n\ndef main():\n    torch.cuda.init()\n"
        "    child = multiprocessing.get_context('fork').Process(target=work)\n    child.start()\n    child.join()\n"
    )
    (package / "work.py").write_text("import torch\n\n\ndef work():\n    return torch.ones(1, device='cuda')\n")
    code, told, _ = try_out(folder / "my train.py", monkeypatch, on_paper=True)
    assert [(Path(one["filename"]).name, one["code"], one["status"]) for one in told["findings"]] == [
        ("run.py", "CUD101", "confirmed")
    ]
    assert (code, told["unpredicted"]) == (0, [])


@pytest.mark.parametrize(
    ("name", "findings", "unpredicted", "code"),
    [
        pytest.param("'rank.py'", [("CUD503", "confirmed")], [], 0, id="named"),
        pytest.param("'rank' + '.py'", [], ["same-gpu"], 1, id="hidden"),
    ],
)
def test_scripts_that_a_launcher_names_are_part_of_the_program(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    findings: list[tuple[str, str]],
    unpredicted: list[str],
    code: int,
) -> None:
    (tmp_path / "rank.py").write_text(RANK)
    (tmp_path / "launch.py").write_text(LAUNCHER.replace("NAME", name))
    ended, told, _ = try_out(tmp_path / "launch.py", monkeypatch, on_paper=True)
    assert [(one["code"], one["status"]) for one in told["findings"]] == findings
    assert [one["kind"] for one in told["unpredicted"]] == unpredicted
    assert ended == code


def test_what_comes_in_here_comes_in_there(child: Command, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import sys\nprint('lines', sys.stdin.read().split())\n")
    done = child("--verify", "--paper", "train.py", stdin="a\nb\n")
    assert (done.returncode, done.stderr) == (0, "lines ['a', 'b']\n")


def test_who_does_not_read_what_a_program_prints_keeps_nobody_from_ending_it(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("while True:\n    print('x' * 1000)\n")
    command = [sys.executable, "-m", "cudalint", "--verify", "--paper", "--limit", "1", "train.py"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        # Whether it had come to wait for its reader by then is a question of how fast the machine is.
        verdicts = b"the program: hang (time limit) after ", b"the program: still running (time limit) after "
        assert process.stdout.readline().startswith(verdicts)


def test_a_report_that_nobody_reads_is_no_verdict(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    command = [sys.executable, "-m", "cudalint", "--verify", "--paper", "train.py"]
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(command, cwd=tmp_path, stdout=writing, stderr=subprocess.PIPE, timeout=60, check=False)
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (2, b"")


def test_a_program_that_computes_at_its_limit_is_no_hang(child: Command, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('computes')\nwhile True:\n    pass\n")
    done = child("--verify", "--paper", "train.py", "--limit", "3")
    assert done.returncode == 2
    assert ended_at_its_limit("still running", "computes").match(done.stdout), done.stdout
    assert done.stderr.endswith("error: the program was ended after 3 s: what had been seen is shown\n")


def ended_at_its_limit(how: str, text: str) -> re.Pattern[str]:
    """What is said of a program that was ended after three seconds, or a little later where the machine is busy."""
    return re.compile(rf"the program: {how} \(time limit\) after (?:[3-9]|\d\d)\.\d s, 1 Python process: {text}\n")


def test_a_program_that_does_not_end_is_ended_and_it_is_said(child: Command, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import time\nprint('waits')\ntime.sleep(600)\n")
    done = child("--verify", "--paper", "train.py", "--limit", "3")
    assert done.returncode == 2
    assert ended_at_its_limit("hang", "waits").match(done.stdout), done.stdout
    assert done.stderr.endswith("error: the program was ended after 3 s: what had been seen is shown\n")
