"""Runs one program under a supervisor: in its own folder, within limits, and with nobody left afterwards."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from cudalint.structs import Frozen, asdict, field, replace
from cudalint.verify.supervise import descendants
from cudalint.verify.surroundings import HARDWARE, Footprint, Surroundings

_HERE = Path(__file__).resolve().parent
PROBE = _HERE / "probe"
_SUPERVISOR = _HERE / "supervise.py"
# What would change what a program does; every program starts as from a plain shell.
_SCRUBBED = frozenset(
    {
        "CUDA_DEVICE_ORDER",
        "CUDA_LAUNCH_BLOCKING",
        "CUDA_VISIBLE_DEVICES",
        "JAX_PLATFORMS",
        "LOCAL_RANK",
        "LOCAL_WORLD_SIZE",
        "MASTER_ADDR",
        "MASTER_PORT",
        "PYTHONSTARTUP",
        "PYTORCH_NVML_BASED_CUDA_CHECK",
        "RANK",
        "TF_FORCE_GPU_ALLOW_GROWTH",
        "WORLD_SIZE",
        "XLA_PYTHON_CLIENT_ALLOCATOR",
        "XLA_PYTHON_CLIENT_MEM_FRACTION",
        "XLA_PYTHON_CLIENT_PREALLOCATE",
    }
)
# Sockets live in the temporary folder, and their names may have 107 characters in all.
_LONGEST_TEMPORARY = 50
_TICK = 0.02
# Signals that ask a process to end.
_ENDING = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGKILL, signal.SIGTERM})
# Notes of the probe, whole ones: a kill may cut one short, and a program may write what it likes among them.
_NOTE = re.compile(r"(?:python|forked|stayed) \d+|(?:ended|told) \d+ -?\d+|replaced \d+ .+|event \(.+\)")
# Colours, which users and CI services can ask for also where no terminal is.
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Limits(Frozen):
    """How far a program may go: seconds, bytes kept of each output, bytes of memory, seconds for its orphans.

    ``echo`` passes its output on as it comes, ``input`` what comes in here, unless that is a terminal; ``census`` looks
    who its processes are. ``rest`` ends it once none of its processes has used a processor for so many seconds, and
    ``stopped`` where, besides, a signal has stopped one of them: who is looked at in one of these ways.
    ``shared`` is a folder that it uses with others: who ends it after this process was killed removes that as well.
    """

    seconds: float | None = 60.0
    output: int = 1 << 20
    memory: int | None = None
    linger: float = 0.5
    echo: bool = False
    input: bool = False
    census: bool = False
    rest: float | None = None
    stopped: float | None = None
    shared: str | None = None


class Run(Frozen):
    """What came of a program.

    ``end`` is ended, time, busy (the same, where somebody still computed), rest, stopped, memory, cancelled or lost
    (the supervisor itself was killed, or told to end). ``deaths`` are the processes that ended non-zero by themselves,
    the main one left out. ``spoiled`` says why it shows nothing.
    ``journal`` are the notes of the probe; ``seen`` are the processes of a census, by command line; ``rested``
    says of each for how many seconds it had used no processor when it was last seen; ``footprints`` say who used
    which GPU.
    """

    end: str
    code: int | None
    seconds: float
    stdout: str = ""
    stderr: str = ""
    deaths: Mapping[int, int] = field(default_factory=dict)
    left_behind: int = 0
    survivors: tuple[int, ...] = ()
    spoiled: tuple[str, ...] = ()
    journal: tuple[str, ...] = ()
    seen: Mapping[int, str] = field(default_factory=dict)
    rested: Mapping[int, float] = field(default_factory=dict)
    footprints: tuple[Footprint, ...] = ()


class Runner:
    """Runs programs, several at once from several threads, until it is told to stop."""

    def __init__(self, surroundings: Surroundings = HARDWARE, python: str = sys.executable) -> None:
        self._surroundings = surroundings
        self._python = python
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._folders: set[Path] = set()
        self._stopped = False

    def run(
        self,
        program: Path,
        limits: Limits,
        environment: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
    ) -> Run:
        """Run one program to its end or its limits."""
        if self._stopped:
            return Run("cancelled", None, 0.0)
        with self.folder() as folder:
            for name in ("cwd", "tmp"):
                (folder / name).mkdir()
            prepared = {**self._surroundings.enter(folder), **(environment or {})}
            command = [str(program.absolute()), *arguments]
            environment = _environment(folder, prepared)
            self._supervise(folder, command, limits, environment, folder / "cwd", subprocess.DEVNULL)
            return self._result(folder)

    def watch(
        self,
        command: Sequence[str],
        limits: Limits,
        places: Iterable[tuple[str, int, int]] = (),
        environment: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> Run:
        """Run Python with this command as it would run from the current directory (or ``cwd``), with the whole probe.

        It notes which ``places`` (files, first and last rows) are reached and passed, where Python can tell.

        Ctrl-C ends it; what was seen until then is given.
        """
        with self.folder() as folder:
            prepared = _beside(self._surroundings.enter(folder), environment or {})
            environment = _with_probe(folder, {**os.environ, **prepared})
            wanted = "\n".join(f"{first}-{last}:{name}" for name, first, last in places)
            environment.update(CUDALINT_WATCH="1", CUDALINT_PLACES=wanted, PYTHONUNBUFFERED="1")
            given = None if limits.input and not _is_terminal(0) else subprocess.DEVNULL
            with contextlib.suppress(KeyboardInterrupt):
                self._supervise(folder, command, limits, environment, cwd or Path.cwd(), given)
            return self._result(folder)

    @contextlib.contextmanager
    def folder(self) -> Iterator[Path]:
        """A temporary folder that is removed afterwards, by ``clear`` where its thread does not get to that."""
        made = Path(tempfile.mkdtemp(prefix="cudalint-"))
        with self._lock:
            self._folders.add(made)
        try:
            yield made
        finally:
            shutil.rmtree(made, ignore_errors=True)
            with self._lock:
                self._folders.discard(made)

    def clear(self) -> None:
        """Remove the folders that are left, for who does not wait for the threads of programs that were ended."""
        with self._lock:
            left = list(self._folders)
        for folder in left:
            shutil.rmtree(folder, ignore_errors=True)

    def stop(self, grace: float = 1.0, seconds: float = 2.5) -> None:
        """End all programs within so many seconds; those started later end at once.

        Supervisors know best how to end theirs. On a busy machine they may not get to it, and so what is left after the
        grace is killed from here.
        """
        with self._lock:
            self._stopped = True
            running = list(self._running)
        for supervisor in running:
            supervisor.send_signal(signal.SIGTERM)
        began = time.monotonic()
        while running := [supervisor for supervisor in running if supervisor.poll() is None]:
            passed = time.monotonic() - began
            if passed > grace:
                _kill_below(running)
            if passed > seconds:
                for supervisor in running:
                    supervisor.kill()
                return
            time.sleep(_TICK)

    def _result(self, folder: Path) -> Run:
        run = _read(folder)
        if run.end in ("lost", "cancelled"):
            # Who was told to end though nobody here said so was told by the program.
            run = replace(run, end="cancelled" if self._stopped else "lost")
        born = {int(line.split()[1]) for line in run.journal if line.startswith(("python ", "forked "))}
        where = self._surroundings
        return replace(run, spoiled=where.leave(folder), footprints=where.used(folder, born))

    def _supervise(
        self,
        folder: Path,
        program: Sequence[str],
        limits: Limits,
        environment: Mapping[str, str],
        cwd: Path,
        given: int | None,
    ) -> None:
        (folder / "limits.json").write_text(json.dumps({**asdict(limits), "parent": os.getpid()}))
        command = [self._python, "-I", "-S", str(_SUPERVISOR), str(folder), self._python, *program]
        with self._lock:
            if self._stopped:
                return
            supervisor = subprocess.Popen(
                command,
                cwd=cwd,
                env=environment,
                stdin=given,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
            self._running.add(supervisor)
        try:
            _wait(supervisor)
        except KeyboardInterrupt:
            self.stop()
            raise
        finally:
            with self._lock:
                self._running.discard(supervisor)
            if not (folder / "report.json").exists():
                _end_marked(folder)


def _wait(supervisor: subprocess.Popen[bytes]) -> None:
    """Until it has ended. A program may stop it, and none of its limits would hold then: it is told to go on."""
    while supervisor.returncode is None:
        try:
            found = os.waitid(os.P_PID, supervisor.pid, os.WEXITED | os.WSTOPPED | os.WNOWAIT)
        except ChildProcessError:  # another thread has asked how it ended
            break
        if found is None or found.si_code != os.CLD_STOPPED:
            break
        os.waitid(os.P_PID, supervisor.pid, os.WSTOPPED | os.WNOHANG)
        supervisor.send_signal(signal.SIGCONT)
    supervisor.wait()


def _kill_below(supervisors: Iterable[subprocess.Popen[bytes]]) -> None:
    for supervisor in supervisors:
        _kill(descendants(supervisor.pid))


def _end_marked(folder: Path, seconds: float = 2.0) -> None:
    """End whom a supervisor that was killed has left: who still has the run's folder in the environment."""
    mark = f"CUDALINT_JOURNAL={folder / 'journal'}".encode()
    until = time.monotonic() + seconds
    while (left := _carriers(mark)) and time.monotonic() < until:
        _kill(left)
        time.sleep(_TICK)


def _carriers(mark: bytes) -> list[int]:
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if mark in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                found.append(int(name))
    return found


def _kill(pids: Iterable[int]) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def _is_terminal(descriptor: int) -> bool:
    """Whether it is a terminal, which a session of its own cannot read."""
    try:
        return os.isatty(descriptor)
    except OSError:
        return False


def _environment(folder: Path, extra: Mapping[str, str]) -> dict[str, str]:
    made = {key: value for key, value in os.environ.items() if key not in _SCRUBBED}
    # Output that was printed before a kill must be there.
    made.update(PYTHONUNBUFFERED="1", JOBLIB_TEMP_FOLDER=str(folder / "tmp"))
    if len(str(folder)) < _LONGEST_TEMPORARY:
        made["TMPDIR"] = str(folder / "tmp")
    made.update(extra)
    return _with_probe(folder, made)


def _beside(prepared: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str]:
    """Both, where the surroundings have put folders before those in which a program looks for modules."""
    both = {**prepared, **wanted}
    ours, theirs = prepared.get("PYTHONPATH"), wanted.get("PYTHONPATH")
    if ours is not None and theirs is not None:
        both["PYTHONPATH"] = os.pathsep.join([ours.partition(os.pathsep)[0], *filter(None, [theirs])])
    return both


def _with_probe(folder: Path, made: dict[str, str]) -> dict[str, str]:
    others = made.get("PYTHONPATH")
    made["PYTHONPATH"] = str(PROBE) + (os.pathsep + others if others else "")
    made["CUDALINT_JOURNAL"] = str(folder / "journal")
    return made


def _read(folder: Path) -> Run:
    report_path = folder / "report.json"
    if not report_path.exists():
        return Run("lost", None, 0.0)
    report = json.loads(report_path.read_text())
    texts = ((folder / name).read_text("utf-8", "replace") for name in ("stdout", "stderr"))
    stdout, stderr = (_COLOUR.sub("", text) for text in texts)
    journal_path = folder / "journal"
    noted = journal_path.read_text("utf-8", "replace").split("\n") if journal_path.exists() else ()
    journal = tuple(filter(_NOTE.fullmatch, noted))
    reaped = {int(pid): int(code) for pid, code in report["deaths"].items()}
    return Run(
        end=report["end"],
        code=report["code"],
        seconds=report["seconds"],
        stdout=stdout,
        stderr=stderr,
        deaths=_deaths(journal, reaped, int(report["pid"])),
        left_behind=report["left_behind"],
        survivors=tuple(report["survivors"]),
        journal=journal,
        seen={int(pid): words for pid, words in report["seen"].items()},
        rested={int(pid): float(seconds) for pid, seconds in report["rested"].items()},
    )


def _deaths(journal: Sequence[str], reaped: Mapping[int, int], main: int) -> dict[int, int]:
    """Python processes that ended badly by themselves: not the main one, and none that was told to end."""
    lines = [line.split() for line in journal if not line.startswith(("event ", "replaced "))]
    notes = [(words[0], [int(word) for word in words[1:]]) for words in lines]
    codes = {pid: code for pid, code in reaped.items() if code}
    codes.update({numbers[0]: numbers[1] for what, numbers in notes if what == "ended"})
    born = {numbers[0] for what, numbers in notes if what in ("python", "forked")}
    told = {(numbers[0], numbers[1]) for what, numbers in notes if what == "told"}
    own = {pid: code for pid, code in sorted(codes.items()) if pid in born and pid != main}
    return {pid: code for pid, code in own.items() if not any((pid, one) in told for one in {*_ENDING, -code})}
