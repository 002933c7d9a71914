"""The runner and the verdicts of ``cudalint --verify``, on programs of the CPU that end in every bad way."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from marked_processes import alive, started

from cudalint.finding import Severity
from cudalint.structs import replace
from cudalint.verify import EvidenceError, Format, HeaderError, evidence, gpus, headers, verify, verify_repairs
from cudalint.verify.economy import economical, keeps_nothing
from cudalint.verify.examine import Examiner
from cudalint.verify.gpus import Gpu, Gpus, Need, Pool
from cudalint.verify.headers import Outcome
from cudalint.verify.needs import manners, need
from cudalint.verify.observe import Observation, observe
from cudalint.verify.predict import Prediction
from cudalint.verify.report import render
from cudalint.verify.runner import Limits, Run, Runner
from cudalint.verify.surroundings import HARDWARE, Footprint
from cudalint.verify.verdict import Status, Verdict, judge

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="programs are run on Linux")

GPUS = (Gpu(0, "none", 80000), Gpu(1, "none", 80000))
EVIDENCE = Path(__file__).resolve().parent.parent / "docs" / "evidence"

Start = Callable[..., Run]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Run a program under the runner; nobody may be left afterwards."""

    def run(text: str, seconds: float = 60.0, **limits: int) -> Run:
        program = tmp_path / "program.py"
        program.write_text(textwrap.dedent(text))
        mark = f"MARK={tmp_path}"
        done = Runner().run(program, Limits(seconds=seconds, **limits), {"MARK": str(tmp_path)})
        assert alive(mark) == []
        assert done.survivors == ()
        return done

    return run


def fixture(folder: Path, name: str, header: str, body: str) -> Path:
    folder.mkdir(exist_ok=True)
    lines = ["# /// script", "# dependencies = []", "# [tool.cudalint]", *(f"# {line}" for line in header.split("; "))]
    path = folder / f"{name}.py"
    path.write_text("\n".join([*lines, "# ///", textwrap.dedent(body)]))
    return path


def wait_for(happened: Callable[[], bool], seconds: float = 60.0) -> None:
    """A busy machine takes its time."""
    until = time.monotonic() + seconds
    while not happened() and time.monotonic() < until:
        time.sleep(0.05)


# ---------------------------------------------------------------- programs that end badly


def test_a_crash_has_its_exception_and_message(start: Start) -> None:
    seen = observe(start("print('so far')\nraise ValueError('the reason')"))
    assert (seen.outcome, seen.code, seen.exception, seen.message) == (Outcome.CRASH, 1, "ValueError", "the reason")
    assert seen.text.startswith("so far\n")


def test_a_message_in_the_source_of_a_traceback_is_none(start: Start) -> None:
    seen = observe(start("def work():\n    {}['the key']  # says boom\nwork()"))
    assert seen.quote("boom") is None
    assert seen.quote("the k.y") == "KeyError: 'the key'"


def test_a_signal_is_a_crash(start: Start) -> None:
    assert observe(start("import os; os.abort()")).code == -signal.SIGABRT


def test_a_hang_ends_at_its_limit(start: Start) -> None:
    seen = observe(start("import time; print('waits'); time.sleep(600)", seconds=3.0))
    assert (seen.outcome, seen.text) == (Outcome.HANG, "waits\n")
    assert 3.0 <= seen.seconds < 60


def test_who_ignores_sigterm_is_killed(start: Start) -> None:
    text = """
        import signal, time
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        while True:
            time.sleep(1)
        """
    assert observe(start(text, seconds=0.5)).outcome is Outcome.HANG


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_the_death_of_a_child_alone_is_seen(start: Start, method: str) -> None:
    text = f"""
        import multiprocessing
        def work():
            raise KeyError("child")
        if __name__ == "__main__":
            process = multiprocessing.get_context("{method}").Process(target=work)
            process.start()
            process.join()
        """
    seen = observe(start(text))
    assert (seen.outcome, seen.code, seen.deaths) == (Outcome.CHILD_DEATH, 0, (1,))
    assert (seen.exception, seen.message) == ("KeyError", "'child'")


def test_children_that_nobody_waits_for_and_signals_are_seen(start: Start) -> None:
    text = """
        import os, signal, sys
        if os.fork() == 0:
            sys.exit(3)
        if os.fork() == 0:
            os.kill(os.getppid(), 0)
            os.abort()
        """
    assert observe(start(text, linger=60)).deaths == (-signal.SIGABRT, 3)


def test_children_that_are_told_to_end_are_no_deaths(start: Start) -> None:
    text = """
        import multiprocessing, subprocess, sys, time
        if __name__ == "__main__":
            context = multiprocessing.get_context("spawn")
            with multiprocessing.get_context("fork").Pool(2) as pool:
                print(pool.map(abs, [-1]))
            process = context.Process(target=time.sleep, args=(60,))
            process.start()
            process.terminate()
            process.join()
            sleeper = subprocess.Popen(["sleep", "60"])
            sleeper.kill()
            sleeper.wait()
            subprocess.run(["false"])  # what is no Python process is not ours
        """
    seen = observe(start(text))
    assert (seen.outcome, seen.deaths, seen.text) == (Outcome.OK, (), "[1]\n")


def test_programs_may_say_anything_to_the_system(start: Start) -> None:
    """What the probe wraps takes whatever it took, also where nothing can be written, and notes what it means."""
    done = start(
        """
        import os, resource, signal, sys, time

        def child(work):
            pid = os.fork()
            if pid:
                return os.waitpid(pid, 0)[1]
            work()
            os._exit(0)

        os.environ.clear()
        for odd in (lambda: os._exit("x"), lambda: os.kill("a", 9), lambda: os.kill(os.getpid(), 0.5)):
            try:
                odd()
            except TypeError as error:
                print(type(error).__name__)
        print(child(lambda: os._exit(True)), child(lambda: os._exit(256)))
        print(child(lambda: os.kill(os.getpid(), signal.SIGKILL)))
        ready, told = os.pipe(), os.pipe()
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGUSR1, lambda *_: os.write(told[1], b"."))
            os.write(ready[1], b".")
            os.read(told[0], 1)
            os._exit(7)
        os.read(ready[0], 1)
        os.kill(pid, signal.SIGUSR1)  # tells it something, and not to end
        os.waitpid(pid, 0)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        print(child(lambda: os._exit(3)))
        os._exit(5)
        """
    )
    assert done.stdout.splitlines() == ["TypeError"] * 3 + ["256 0", "9", "768"], done.stderr
    assert (done.code, done.stderr) == (5, "")
    assert sorted(done.deaths.values()) == [-9, 1, 7]


def test_colours_are_left_out(start: Start) -> None:
    done = start(r"print('\x1b[1;31mTypeError\x1b[0m: red'); raise SystemExit('\x1b[35mValueError: \x1b[0mpink')")
    assert (done.stdout, done.stderr) == ("TypeError: red\n", "ValueError: pink\n")
    assert observe(done).exception == "ValueError"


def test_who_kills_its_supervisor_is_ended_all_the_same(start: Start) -> None:
    done = start(
        """
        import os, signal, time
        supervisor = os.getppid()
        if os.fork() == 0:
            os.setsid()
            time.sleep(0.1)
            os.kill(supervisor, signal.SIGKILL)
        time.sleep(99)
        """
    )
    assert (done.end, done.code) == ("lost", None)


def test_a_gigabyte_of_output_is_read_and_not_kept(start: Start) -> None:
    text = """
        import os
        os.write(1, b"first\\n")
        block = b"x" * (1 << 20)
        for _ in range(1024):
            left = block
            while left:
                left = left[os.write(1, left):]
        os.write(1, b"\\nmeasured: devices = 2\\n")
        """
    run = start(text, output=1 << 16)
    seen = observe(run)
    assert (seen.outcome, seen.measured) == (Outcome.OK, {"devices": "2"})
    assert run.stdout.startswith("first\n")
    assert "bytes left out" in run.stdout
    assert len(run.stdout) < 1 << 18


@pytest.fixture
def small_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file system of a few megabytes, on which all temporary files lie."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("who may not mount has no small disk")
    monkeypatch.setattr(tempfile, "tempdir", str(disk))
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_who_fills_the_disk_is_seen_all_the_same(start: Start, small_disk: Path) -> None:
    run = start(
        f"""
        import os, sys
        print("begins")
        stream = open({str(small_disk / "much")!r}, "wb", buffering=0)
        try:
            while True:
                stream.write(b"x" * (1 << 20))
        except OSError as error:
            print(error.strerror)
        if os.fork() == 0:
            os._exit(5)
        os.wait()
        sys.exit(3)
        """
    )
    assert (run.end, run.code, run.stdout) == ("ended", 3, "begins\nNo space left on device\n")
    assert list(run.deaths.values()) == [5]


def test_closed_outputs_do_not_end_the_run(start: Start) -> None:
    run = start("import os, sys, time\nos.close(1); os.close(2)\ntime.sleep(0.4)\nos._exit(7)")
    assert run.code == 7
    assert run.seconds >= 0.4


def test_daemons_that_leave_the_group_are_caught(start: Start) -> None:
    text = """
        import os, time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(300)
            os._exit(0)
        os.wait()
        print("gone")
        """
    run = start(text)
    assert (run.end, run.code, run.left_behind) == ("ended", 0, 1)
    assert run.seconds < 60


def test_a_fork_bomb_is_ended(start: Start) -> None:
    text = """
        import os, time
        for _ in range(7):
            os.fork()
        until = time.monotonic() + 8
        while time.monotonic() < until:
            if os.fork() == 0:
                time.sleep(0.5)
                os._exit(0)
            time.sleep(0.1)
        """
    assert observe(start(text, seconds=1.0)).outcome is Outcome.HANG


def test_who_only_waits_is_ended_before_the_limit(start: Start) -> None:
    text = """
        import os, threading
        if os.fork() == 0:
            print("child", flush=True)
        threading.Event().wait()
        """
    run = start(text, seconds=60.0, rest=1)
    assert (run.end, run.stdout) == ("rest", "child\n")
    assert run.seconds < 30
    assert observe(run).outcome is Outcome.HANG
    assert observe(run).summary == "hang (all its processes waited)"


def test_who_waits_for_one_that_works_is_not_ended(start: Start) -> None:
    text = """
        import os, time
        if os.fork() == 0:
            until = time.monotonic() + 2.5
            while time.monotonic() < until:
                pass
            os._exit(0)
        os.wait()
        """
    run = start(text, seconds=60.0, rest=1)
    assert (run.end, run.code) == ("ended", 0)


def test_programs_of_a_campaign_share_what_they_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, program = tmp_path / "compiled", tmp_path / "program.py"
    (tmp_path / "imported.py").write_text("")
    program.write_text("import sys, imported\nprint(imported.__cached__, 'imported' in sys.modules)")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    for _ in range(2):
        cached, _ = Runner().run(program, Limits(), economical(folder)).stdout.split()
        assert cached.startswith(str(folder))
        assert Path(cached).exists()
    assert keeps_nothing()
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    assert not keeps_nothing()
    assert "PYTHONPYCACHEPREFIX" not in economical(None)


def test_memory_can_be_limited(start: Start) -> None:
    run = start("import time\nkept = bytearray(300 << 20)\ntime.sleep(30)", memory=200 << 20)
    assert run.end == "memory"
    assert observe(run).outcome is Outcome.CRASH


def test_each_run_has_its_folder_and_a_plain_environment(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RANK", "3")
    run = start("import os, tempfile\nprint(os.listdir('.'), os.environ.get('LOCAL_RANK'), tempfile.gettempdir())")
    listing, rank, temporary = run.stdout.split()
    assert (listing, rank) == ("[]", "None")
    assert not os.path.exists(temporary)


def test_the_probe_runs_the_sitecustomize_that_it_hides(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text("import os; os.environ['CHAINED'] = 'yes'; print(__file__)")
    monkeypatch.setenv("PYTHONPATH", str(site))
    run = start("import os, sys; print(os.environ['CHAINED'], 'multiprocessing' in sys.modules)")
    assert run.stdout.splitlines() == [str(site / "sitecustomize.py"), "yes False"]


# ---------------------------------------------------------------- who runs where


def test_gpus_are_shared_until_somebody_must_be_alone() -> None:
    pool = Pool(GPUS, places=4)
    both = pool.lease(Need(2))
    assert both is not None
    assert (both.gpus, dict(pool.environment(both))) == ((0, 1), {})
    assert pool.lease(Need(1, alone=True)) is None
    pool.give_back(both)
    alone, shared = pool.lease(Need(1, alone=True)), pool.lease(Need(1))
    assert alone is not None
    assert shared is not None
    assert (alone.gpus, shared.gpus) == ((0,), (1,))
    assert pool.environment(shared)["CUDA_VISIBLE_DEVICES"] == "1"
    assert pool.lease(Need(2)) is None
    assert pool.lease(Need(3)) is None


@pytest.mark.parametrize(
    ("visible", "left"),
    [(None, "0 1 2"), ("2,0", "0 2"), ("1", "1"), ("", ""), ("1,-1,2", "1"), ("GPU-b", "1"), ("MIG-1", "0 1 2")],
)
def test_the_user_says_which_gpus_may_be_used(monkeypatch: pytest.MonkeyPatch, visible: str | None, left: str) -> None:
    class Driver(types.ModuleType):
        NVMLError = ValueError

        def __getattr__(self, name: str) -> Callable[..., Any]:
            told: dict[str, Callable[..., Any]] = {
                "nvmlDeviceGetCount": lambda: 3,
                "nvmlDeviceGetHandleByIndex": lambda index: index,
                "nvmlDeviceGetMemoryInfo": lambda _: types.SimpleNamespace(total=80000 << 20),
                "nvmlDeviceGetUUID": lambda index: f"GPU-{'abc'[index]}0",
            }
            return told.get(name, lambda *_: "none")

    monkeypatch.setitem(sys.modules, "pynvml", Driver("pynvml"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    found = gpus.discover()
    indices = left.split()
    assert [str(gpu.index) for gpu in found.devices] == indices
    assert found.hidden == 3 - len(indices)
    pool = Pool(found.devices, 4, found.hidden)
    lease = pool.lease(Need(len(indices)))
    shown = ",".join(indices) if indices and found.hidden else None
    assert lease is not None
    assert pool.environment(lease).get("CUDA_VISIBLE_DEVICES") == shown
    assert (found.environment.get("CUDA_VISIBLE_DEVICES") or None) == shown


def test_gpus_that_are_not_to_be_used_are_hidden() -> None:
    some = Gpus(GPUS).first(1)
    pool = Pool(some.devices, places=2, hidden=some.hidden)
    lease = pool.lease(Need(1))
    assert lease is not None
    assert pool.environment(lease)["CUDA_VISIBLE_DEVICES"] == "0"


# ---------------------------------------------------------------- verdicts


def seen(outcome: Outcome, **more: object) -> Observation:
    values: dict[str, object] = {
        "code": 0,
        "exception": "",
        "message": "",
        "deaths": (),
        "seconds": 1.0,
        "end": "ended",
    }
    return Observation(outcome, **{**values, **more})  # type: ignore[arg-type]


ERROR = Prediction("CUD101", 3, 1, Severity.ERROR, "crash")
WARNING = Prediction("CUD201", 3, 1, Severity.WARNING, "cost")


@pytest.mark.parametrize(
    ("header", "predictions", "run", "status", "reason"),
    [
        ('outcome = "crash"; message = "bo+m"', [ERROR], seen(Outcome.CRASH, text="boom"), Status.CONFIRMED, ""),
        ('outcome = "crash"; message = "bo+m"', [ERROR], seen(Outcome.CRASH, text="bang"), Status.REFUTED, "no 'bo+m'"),
        ('outcome = "crash"', [ERROR], seen(Outcome.OK), Status.REFUTED, "the header says crash, observed ok"),
        ('outcome = "crash"', [], seen(Outcome.CRASH), Status.REFUTED, "nothing was predicted"),
        ('outcome = "hang"', [ERROR], seen(Outcome.HANG), Status.CONFIRMED, ""),
        ('outcome = "hang"', [ERROR], seen(Outcome.CRASH), Status.REFUTED, "the header says hang"),
        ('outcome = "ok"', [], seen(Outcome.OK), Status.CONFIRMED, ""),
        ('outcome = "ok"', [WARNING], seen(Outcome.OK), Status.CONFIRMED, ""),
        ('outcome = "ok"', [ERROR], seen(Outcome.OK), Status.REFUTED, "an error was predicted (CUD101@3:1)"),
        (
            'outcome = "cost"; measure = "n >= 2"',
            [WARNING],
            seen(Outcome.OK, measured={"n": "3"}),
            Status.CONFIRMED,
            "",
        ),
        (
            'outcome = "cost"; measure = "n >= 2"',
            [WARNING],
            seen(Outcome.OK, measured={"n": "1"}),
            Status.REFUTED,
            "n = 1",
        ),
        ('outcome = "cost"; measure = "n >= 2"', [WARNING], seen(Outcome.OK), Status.REFUTED, "printed no"),
    ],
)
def test_verdicts(
    tmp_path: Path, header: str, predictions: list[Prediction], run: Observation, status: Status, reason: str
) -> None:
    loaded = headers.load(fixture(tmp_path / "programs", "broken", header, ""))
    assert loaded is not None
    verdict = judge(loaded, predictions, run)
    assert verdict.status is status
    assert reason in "".join(verdict.reasons)


def test_a_latent_program_works_and_its_trigger_fails(tmp_path: Path) -> None:
    loaded = headers.load(fixture(tmp_path / "programs", "broken", 'outcome = "latent"; trigger = { A = "1" }', ""))
    assert loaded is not None
    assert judge(loaded, [WARNING], seen(Outcome.OK), seen(Outcome.CRASH)).status is Status.LATENT
    assert judge(loaded, [WARNING], seen(Outcome.OK), seen(Outcome.OK)).status is Status.REFUTED
    assert judge(loaded, [WARNING], seen(Outcome.CRASH), seen(Outcome.CRASH)).status is Status.REFUTED


# ---------------------------------------------------------------- the whole


KNOWN = "# expect-missing: CUD101 (no CUDA here)\n"


def programs(folder: Path) -> Path:
    shelf = folder / "programs"
    fixture(shelf, "crash", 'outcome = "crash"; message = "boom"', KNOWN + "raise ValueError('boom')")
    fixture(shelf, "fine", 'outcome = "ok"', "import os; print(os.environ['CUDA_VISIBLE_DEVICES'])")
    body = KNOWN + "import os; os.environ.get('BAD') and print(1 / 0)"
    fixture(shelf, "latent", 'outcome = "latent"; message = "ZeroDivision"; trigger = { BAD = "1" }', body)
    fixture(shelf, "many", 'outcome = "ok"; gpus = 4', "")
    (shelf / "helper.py").write_text("raise SystemExit(1)")
    return shelf


def test_everything_confirmed_is_zero_and_leaves_evidence(tmp_path: Path) -> None:
    shelf, out = programs(tmp_path), io.StringIO()
    folder = tmp_path / "evidence"
    arguments = {"gpus_available": GPUS, "out": out, "err": io.StringIO()}
    done = verify([str(shelf)], evidence_folder=str(folder), output_format=Format.JSON, **arguments)  # type: ignore[arg-type]
    assert done == 0
    printed = json.loads(out.getvalue())["fixtures"]
    assert {name: entry["verdict"] for name, entry in printed.items()} == {
        "programs/crash.py": "confirmed",
        "programs/fine.py": "confirmed",
        "programs/latent.py": "latent",
        "programs/many.py": "not run",
    }
    (written,) = folder.iterdir()
    kept = json.loads(written.read_text())["fixtures"]
    assert kept["programs/crash.py"]["run"]["said"] == "ValueError: boom"
    assert kept["programs/many.py"]["reasons"] == ["needs 4 GPUs, there are 2"]


def test_a_refutation_is_one(tmp_path: Path) -> None:
    shelf, out = tmp_path / "programs", io.StringIO()
    fixture(shelf, "fine", 'outcome = "ok"', "raise ValueError('not at all')")
    err = io.StringIO()
    assert verify([str(shelf)], gpus_available=GPUS, out=out, err=err) == 1
    assert "the header says ok, observed crash (exit 1): ValueError: not at all" in out.getvalue()
    assert out.getvalue().splitlines()[-1].startswith("1 fixture: 0 confirmed broken, 0 confirmed ok, 1 refuted")


@pytest.mark.parametrize(
    ("header", "gpus", "why"),
    [
        ('outcome = "ok"', (), "no GPU was found"),
        ('outcome = "ok"; gpus = 4', GPUS, "nothing could run here"),
        ('outcome = "ok"; start-method = "sideways"', GPUS, "nothing could run here"),
    ],
)
def test_nothing_run_is_two_and_one_line(tmp_path: Path, header: str, gpus: tuple[Gpu, ...], why: str) -> None:
    fixture(tmp_path / "programs", "fine", header, "raise SystemExit(1)")
    err = io.StringIO()
    assert verify([str(tmp_path)], gpus_available=gpus, out=io.StringIO(), err=err) == 2
    assert why in err.getvalue().splitlines()[-1]


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ('outcome = "bang"', "outcome must be one of crash, hang"),
        ('outcome = "crash"; mesage = "boom"', "unknown key 'mesage' (did you mean 'message'?)"),
        ('outcome = "crash"; message = "("', "message is not a regular expression"),
        ('outcome = "hang"; limit = 0', "limit must be a number of seconds, not 0"),
        ('outcome = "hang"; limit = nan', "limit must be a number of seconds, not nan"),
        ('outcome = "ok"; gpus = 1.5', "gpus must be a whole number, not 1.5"),
        ('outcome = "ok"; network = "yes"', "network must be true or false, not 'yes'"),
        ('outcome = "cost"', "outcome 'cost' is shown by 'measure', which is missing"),
        ('outcome = "latent"', "outcome 'latent' is shown by 'trigger', which is missing"),
        ("outcome", "the header is not valid TOML"),
    ],
)
def test_a_header_that_cannot_be_followed_is_one_line(tmp_path: Path, lines: str, why: str) -> None:
    with pytest.raises(HeaderError, match=r"^.*$") as raised:
        headers.load(fixture(tmp_path, "program", lines, ""))
    assert why in str(raised.value)
    assert "\n" not in str(raised.value)


def test_dependencies_are_a_list_and_other_tools_have_headers_of_their_own() -> None:
    with pytest.raises(HeaderError, match="dependencies must be a list of strings, not 'torch'"):
        headers.parse('# /// script\n# dependencies = "torch"\n# [tool.cudalint]\n# outcome = "ok"\n# ///\n')
    assert headers.parse("# /// script\n# tool = 1\n# ///\n") is None
    assert headers.parse("# /// script\n# [tool.uv]\n# cudalint = 1\n# ///\n") is None


def test_what_is_no_file_is_no_fixture(tmp_path: Path) -> None:
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "link.py").symlink_to("nowhere")
    path = fixture(tmp_path, "fine", 'outcome = "ok"', "")
    assert [found.path for found in headers.find([tmp_path])] == [path]


@pytest.mark.parametrize("obstacle", ["a file", "no evidence"])
def test_evidence_that_cannot_be_kept_stops_before_anything_runs(tmp_path: Path, obstacle: str) -> None:
    shelf, kept = programs(tmp_path), tmp_path / "evidence"
    if obstacle == "a file":
        kept.touch()
    else:
        kept.mkdir()
        (kept / evidence.this_place(Gpus(GPUS)).file_name).write_text("{")
    err = io.StringIO()
    with pytest.raises(EvidenceError, match=obstacle.replace("a file", "evidence cannot be kept here: File exists")):
        verify([str(shelf)], gpus_available=GPUS, evidence_folder=str(kept), err=err)
    assert err.getvalue() == ""


def test_a_file_without_a_header_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "plain.py"
    program.write_text("print()")
    with pytest.raises(HeaderError, match="header says how this program ends"):
        verify([str(program)], gpus_available=GPUS)


def test_an_interruption_ends_everything_and_shows_what_is_known(tmp_path: Path) -> None:
    shelf = tmp_path / "programs"
    fixture(shelf, "fine", 'outcome = "ok"', "")
    stubborn = (
        "import os, signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nos.fork(); os.fork()\ntime.sleep(99)"
    )
    for index in range(3):
        fixture(shelf, f"hang{index}", 'outcome = "hang"; limit = 90', KNOWN + stubborn)
    text = f"""
        from cudalint.verify import verify
        from cudalint.verify.gpus import Gpu
        raise SystemExit(verify([{str(shelf)!r}], gpus_available=[Gpu(i, "none", 80000) for i in range(2)]))
        """
    environment = {**os.environ, "MARK": str(tmp_path), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", textwrap.dedent(text)]
    with started(command, env=environment) as process:
        wait_for(lambda: len(alive(f"MARK={tmp_path}")) >= 10)  # two programs of four processes each
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)  # the programs would take longer
    assert alive(f"MARK={tmp_path}") == []
    assert list(tmp_path.glob("cudalint-*")) == []
    assert process.returncode == 2
    assert "3 not run" in out or "4 not run" in out
    assert "\nNot run:\n  3 more: interrupted\n" in out or "\nNot run:\n  4 more: interrupted\n" in out
    assert err.splitlines()[-1] == "cudalint: error: interrupted: what had run is shown"


@pytest.mark.parametrize("kept", ["", "1"])
def test_nothing_is_left_of_who_is_killed(tmp_path: Path, kept: str) -> None:
    """Nobody can clear up after a kill but the supervisor."""
    program = fixture(tmp_path / "programs", "waits", 'outcome = "ok"', "import time\ntime.sleep(99)")
    text = f"from cudalint.verify import verify\nverify([{str(program)!r}], gpus_available={GPUS!r})"
    environment = {**os.environ, "MARK": str(tmp_path), "TMPDIR": str(tmp_path), "PYTHONDONTWRITEBYTECODE": kept}
    command = [sys.executable, "-c", f"from cudalint.verify.gpus import Gpu\n{text}"]
    with started(command, env=environment) as process:
        wait_for(lambda: len(alive(f"MARK={tmp_path}")) == 3)
        process.kill()
    wait_for(lambda: not alive(f"MARK={tmp_path}"))
    assert list(tmp_path.glob("cudalint-*")) == []


def test_who_does_not_end_its_program_in_time_has_it_ended(tmp_path: Path) -> None:
    """A supervisor that does not get to it: here it is stopped."""
    program = tmp_path / "program.py"
    program.write_text(
        "import os, time\nif os.fork() == 0:\n    os.setsid()\nprint('there', flush=True)\ntime.sleep(99)\n"
    )
    runner, mark = Runner(), f"MARK={tmp_path}"
    thread = threading.Thread(target=runner.run, args=(program, Limits(), {"MARK": str(tmp_path)}))
    thread.start()
    while len(alive(mark)) < 3:
        time.sleep(0.02)
    (supervisor,) = (pid for pid in alive(mark) if b"supervise" in Path(f"/proc/{pid}/cmdline").read_bytes())
    os.kill(int(supervisor), signal.SIGSTOP)
    began = time.monotonic()
    runner.stop(grace=0.1, seconds=0.4)
    thread.join()
    assert time.monotonic() - began < 60  # the program would take longer
    assert alive(mark) == []


def test_the_markdown_report_says_who_used_which_gpu_and_what_a_repair_saves(tmp_path: Path) -> None:
    path = fixture(tmp_path / "CUD201", "broken_many", 'outcome = "cost"; measure = "workers == 2"', "")
    (costly,) = headers.find([path])
    run = Observation(
        Outcome.COST, 0, "", "", (), 3.0, "ended", measured={"workers": "2"},
        footprints=(Footprint(11, 0, 618), Footprint(12, 0, 837), Footprint(13, 1)),
    )  # fmt: skip
    fixed = replace(run, measured={"workers": "1"}, footprints=(Footprint(14, 0, 618),))
    verdict = Verdict(costly, Status.CONFIRMED, run=run, fixed=fixed)
    place = evidence.this_place(Gpus((Gpu(0, "NVIDIA H200", 1),), "580"))
    told = render([verdict], place, Format.MARKDOWN, 3.0)
    assert f"| {costly.name} | 0 | 2 | 837 + 618 |\n| {costly.name} | 1 | 1 |  |\n" in told
    assert f"- {costly.name}: workers 2 -> 1, 3.0 -> 3.0 s, GPU 0: 837 + 618 MiB -> GPU 0: 618 MiB\n" in told
    kept = json.loads(render([verdict], place, Format.JSON, 3.0))["fixtures"][costly.name]
    assert (kept["run"]["processes"], kept["fixed"]["processes"]) == ({"0": [837, 618], "1": [None]}, {"0": [618]})


def test_what_is_to_run_is_there_and_chosen_by_its_rules(tmp_path: Path) -> None:
    fixture(tmp_path / "CUD201", "ok_one", 'outcome = "ok"', "print(1)")
    with pytest.raises(FileNotFoundError, match="gone"):
        verify([str(tmp_path / "gone")], on_paper=True)
    for select, said in ((("CUD3",), "no fixtures were found"), (("CUD2",), "")):
        err = io.StringIO()
        code = verify([str(tmp_path)], select=select, on_paper=True, out=io.StringIO(), err=err)
        assert (code, said in err.getvalue()) == (2 if said else 0, True)
    err = io.StringIO()
    assert verify_repairs([], gpus_available=(), err=err) == 2
    assert err.getvalue().endswith("nothing was verified\n")


def test_evidence_merges_and_what_ran_stays() -> None:
    ran = {"sha256": "a", "verdict": "confirmed"}
    older = {"fixtures": {"one": ran, "two": ran}}
    newer = {"fixtures": {"one": {"sha256": "a", "verdict": "not run"}, "two": {"sha256": "b", "verdict": "not run"}}}
    merged = evidence.merge(older, newer)["fixtures"]
    assert merged == {"one": ran, "two": newer["fixtures"]["two"]}


def test_evidence_keeps_the_versions_of_libraries_that_are_not_there_now() -> None:
    older = {"versions": {"torch": "2.10", "tensorflow": "2.21"}, "fixtures": {}}
    newer = {"versions": {"torch": "2.11"}, "fixtures": {}}
    assert evidence.merge(older, newer)["versions"] == {"tensorflow": "2.21", "torch": "2.11"}


GREEDY = """\
# /// script
# dependencies = ["jax"]
#
# [tool.cudalint]
# outcome = "ok"
# ///
\"\"\"JAX.\"\"\"
"""


def test_jax_is_told_to_share_unless_a_fixture_is_about_that(tmp_path: Path) -> None:
    (tmp_path / "ok_sum.py").write_text(GREEDY)
    (tmp_path / "ok_fraction.py").write_text(GREEDY + "# XLA_PYTHON_CLIENT_MEM_FRACTION\n")
    polite, greedy = headers.load(tmp_path / "ok_sum.py"), headers.load(tmp_path / "ok_fraction.py")
    assert polite is not None
    assert greedy is not None
    assert (need(polite).alone, manners(polite)) == (False, {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"})
    assert (need(greedy).alone, manners(greedy)) == (True, {})


def test_a_port_that_another_took_is_no_failure(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    program = tmp_path / "ok_port.py"
    program.write_text(
        GREEDY.replace('["jax"]', "[]") + "import os, sys\n"
        f"open({str(runs)!r}, 'a').write('.')\n"
        f"if os.path.getsize({str(runs)!r}) < 3:\n"
        "    sys.exit('OSError: [Errno 98] Address already in use')\n"
    )
    fixture = headers.load(program)
    assert fixture is not None
    verdict = Examiner(Runner(), HARDWARE, Limits()).examine(fixture, {})
    assert verdict is not None
    assert verdict.status is Status.CONFIRMED


def test_the_name_of_a_place_says_gpus_and_versions() -> None:
    place = evidence.this_place(Gpus((Gpu(0, "NVIDIA H200", 1), Gpu(1, "NVIDIA H200", 1)), "580"))
    assert place.file_name.startswith("2x-nvidia-h200-py3.")


@pytest.mark.skipif(not EVIDENCE.is_dir(), reason="no evidence has been collected")
def test_no_fixture_changed_since_it_was_measured() -> None:
    documents = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(EVIDENCE.glob("*.json"))]
    measured = {(name, entry["sha256"]) for document in documents for name, entry in document["fixtures"].items()}
    stale = [one.name for one in headers.find([headers.default_folder()]) if (one.name, one.digest) not in measured]
    assert stale == []


# ---------------------------------------------------------------- on paper


def test_on_paper_the_same_programs_end_as_measured_and_it_is_said(child: Callable[..., Any]) -> None:
    shelf = headers.default_folder() / "CUD101"
    chosen = [str(shelf / name) for name in ("broken_os_fork.py", "ok_thread_pool.py")]
    done = child("--verify", "--paper", "--output-format", "json", *chosen)
    told = json.loads(done.stdout)
    assert (done.returncode, told["paper"], told["versions"]) == (0, True, {})
    assert [entry["verdict"] for entry in told["fixtures"].values()] == ["confirmed", "confirmed"]


def test_what_paper_does_not_know_is_no_proof(tmp_path: Path) -> None:
    body = "import torch\ntry:\n    torch.fancy_thing(1)\nexcept Exception:\n    pass"
    fixture(tmp_path / "programs", "gap", 'outcome = "ok"', body)
    out = io.StringIO()
    assert verify([str(tmp_path)], on_paper=True, out=out, err=io.StringIO()) == 1
    assert "paper CUDA does not know torch.fancy_thing" in out.getvalue()


def test_paper_without_numpy_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("cudalint.verify.paper.HARDWARE.has_module", lambda name: name != "numpy")
    fixture(tmp_path / "programs", "fine", 'outcome = "ok"', "")
    err = io.StringIO()
    assert verify([str(tmp_path)], on_paper=True, out=io.StringIO(), err=err) == 2
    assert err.getvalue().startswith("cudalint: error: paper CUDA needs NumPy")


def test_paper_gives_no_evidence(child: Callable[..., Any], tmp_path: Path) -> None:
    done = child("--verify", "--paper", "--evidence", str(tmp_path / "evidence"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("cudalint: error: what runs on paper is no evidence")
    assert not (tmp_path / "evidence").exists()
