"""The process between the runner and a program: reads its output, reaps every orphan, leaves nobody behind.

Run as ``python -I -S supervise.py FOLDER COMMAND...``; FOLDER holds ``limits.json`` and gets ``report.json``,
``stdout`` and ``stderr``. With ``echo`` in the limits the output also goes to this process's own standard error as it
comes, and with ``census`` all processes that were ever seen are reported. It is the subreaper of all that the program
starts, so that children which leave the program's process group are caught, and it dies with the process that started
it. Standard library only.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from typing import NoReturn

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
PARENT_DIED = signal.SIGHUP  # nobody else sends it: there is no terminal
CHUNK = 1 << 20
F_SETPIPE_SZ = 1031
FALLOC_FL_KEEP_SIZE = 1
WAITS = 0.2  # seconds: who has used none of a processor for so long waits
STOPPED = b"T"  # by a signal, and not by a debugger
PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")


class Capture:
    """The beginning and the end of a stream of any length."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.head = bytearray()
        self.tail = bytearray()
        self.size = 0

    def take(self, data: bytes) -> None:
        """Keep what has room."""
        self.size += len(data)
        room = self.limit // 4 - len(self.head)
        if room > 0:
            self.head += data[:room]
            data = data[room:]
        self.tail += data
        if len(self.tail) > 2 * self.limit:
            del self.tail[: len(self.tail) - self.limit]

    def text(self) -> bytes:
        """What was kept, with a line that says what is missing."""
        tail = self.tail[-self.limit :]
        left_out = self.size - len(self.head) - len(tail)
        gap = f"\n... {left_out} bytes left out ...\n".encode() if left_out else b""
        return bytes(self.head) + gap + bytes(tail)


class Rest:
    """How long a process has used no processor to speak of, up to when it was last seen."""

    MOST = 0.02  # of the time: who waits may look at a clock now and then

    def __init__(self, now: float) -> None:
        self.since = self.until = now
        self.used = 0.0

    def look(self, now: float, used: float, is_ready: bool) -> None:
        """It has used so many seconds by now; what ``is_ready`` to run does not wait, though others run first."""
        if is_ready or used - self.used > self.MOST * (now - self.since) + 0.011:
            self.since, self.used = now, used
        self.until = now


class Program:
    """One program and all that it starts."""

    def __init__(self, command: "list[str]", output_limit: int, told: "list[int]") -> None:
        self.deaths: dict[int, int] = {}
        self.killed: set[int] = set()
        self.captures: dict[int, Capture] = {}
        self.told = told  # the signals that asked to give up
        self.echo = False
        self.until = float("inf")  # when its time is over
        self.seen: dict[int, str] = {}
        self.rest: dict[int, Rest] = {}
        self.poll = select.poll()
        ends = [os.pipe(), os.pipe()]
        self.began = time.monotonic()
        self.pid = os.fork()
        if self.pid == 0:
            _become(command, [write for _, write in ends])
        for read, write in ends:
            os.close(write)
            os.set_blocking(read, False)
            with contextlib.suppress(OSError):  # a larger pipe only saves time
                fcntl.fcntl(read, F_SETPIPE_SZ, CHUNK)
            self.poll.register(read, select.POLLIN | select.POLLHUP)
            self.captures[read] = Capture(output_limit)
        self.streams = list(self.captures.values())

    def read(self, seconds: float) -> None:
        """Wait for output at most so long, and take what there is."""
        if not self.captures:
            time.sleep(seconds)
            return
        for descriptor, _ in self.poll.poll(seconds * 1000):
            try:
                data = os.read(descriptor, CHUNK)
            except OSError:
                data = b""
            if data:
                self.captures[descriptor].take(data)
                if self.echo:
                    self.pass_on(data)
            else:
                self.poll.unregister(descriptor)
                os.close(descriptor)
                del self.captures[descriptor]

    def pass_on(self, data: bytes) -> None:
        """To standard error, as slowly as its reader takes it; who does not read keeps nobody from ending it."""
        ready = select.poll()
        ready.register(2, select.POLLOUT)
        rest = memoryview(data)
        with contextlib.suppress(OSError):
            while rest and not self.told and time.monotonic() < self.until:
                if ready.poll(100):
                    rest = rest[os.write(2, rest[: select.PIPE_BUF]) :]

    def reap(self) -> bool:
        """Collect the dead; False when nobody is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            self.deaths[pid] = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)

    def take_census(self) -> "tuple[float, bool]":
        """Remember who is there, by command line, and for how long it has done nothing; who is there for less than a
        moment is missed. Gives for how long nobody has done anything, and whether a signal has stopped somebody."""
        now, stopped = time.monotonic(), False
        rests: list[float] = []
        for pid in descendants():
            words = command_line(pid)
            if words:
                self.seen[pid] = words
                rest = self.rest.setdefault(pid, Rest(now))
                used, state = activity(pid)
                rest.look(now, used, state == b"R")
                stopped = stopped or state == STOPPED
                rests.append(rest.until - rest.since)
        return min(rests, default=0.0), stopped

    def run(
        self,
        seconds: "float | None",
        memory: "int | None",
        census: bool = False,
        rest: "float | None" = None,
        stopped: "float | None" = None,
    ) -> str:
        """Let it run to its end or a limit, and say which: ended, time, busy, rest, stopped, memory or cancelled.

        Busy is who is seen to compute when its time is over.
        """
        rested = float("inf")
        self.until = self.began + (seconds or float("inf"))
        look, count = self.began + 1.0, self.began
        while True:
            self.read(0.01)
            self.reap()
            now = time.monotonic()
            if (census or rest is not None) and now > count:
                count = now + (0.1 if census else 0.5)
                rested, is_stopped = self.take_census()
                if is_stopped and stopped is not None and rested >= stopped:
                    return "stopped"
                if rest is not None and rested >= rest:
                    return "rest"
            if self.pid in self.deaths:
                return "ended"
            if self.told:
                return "cancelled"
            if now > self.until:
                return "time" if rested >= WAITS else "busy"
            if memory is not None and now > look:
                look = now + 1.0
                if sum(map(resident, descendants())) > memory:
                    return "memory"

    def linger(self, seconds: float) -> "list[int]":
        """Give children that outlive their main process a moment, then say who is still there."""
        until = time.monotonic() + seconds
        while self.reap() and time.monotonic() < until and not self.told:
            self.read(0.01)
        return descendants()

    def sweep(self, seconds: float) -> "list[int]":
        """Kill and reap everything that is left; gives who could not be killed in time."""
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            living = descendants()
            if not living:
                return []
            if time.monotonic() - began > 0.5:
                for pid in living:  # nobody can start another while all are stopped
                    send(pid, signal.SIGSTOP)
            for pid in living:
                if time.monotonic() - began < 0.5 and is_tracker(pid):
                    continue
                if send(pid, signal.SIGKILL):
                    self.killed.add(pid)
            self.read(0.01)
            self.reap()
        return descendants()

    def drain(self) -> None:
        """Take the rest of the output."""
        until = time.monotonic() + 1.0
        while self.captures and time.monotonic() < until:
            self.read(0.01)


def _become(command: "list[str]", outputs: "list[int]") -> NoReturn:
    """In the child: lead a group of its own, as a shell has it, and be the program."""
    try:
        os.setpgid(0, 0)  # who leads a session could not make itself a group any more
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        os.dup2(outputs[0], 1)
        os.dup2(outputs[1], 2)
        os.closerange(3, 256)
        os.execvp(command[0], command)
    finally:
        os._exit(127)


def descendants(top: "int | None" = None) -> "list[int]":
    """Every living process below one, or below this one."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as stat:
                    parent = int(stat.read().rpartition(b")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(name))
    found: list[int] = []
    queue = [os.getpid() if top is None else top]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


def resident(pid: int) -> int:
    """Memory of a process in bytes, without what it shares."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as statm:
            fields = statm.read().split()
        return (int(fields[1]) - int(fields[2])) * PAGE
    except (OSError, IndexError):
        return 0


def activity(pid: int) -> "tuple[float, bytes]":
    """The processor time of a process and its threads, and its state: ``R`` runs, or would if a processor were free."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            fields = stat.read().rpartition(b")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS, fields[0]
    except (OSError, IndexError):
        return 0.0, b""


def is_tracker(pid: int) -> bool:
    """A resource tracker ends by itself once its users are dead, and removes what they left in /dev/shm."""
    text = command_line(pid)
    return "resource_tracker" in text or "torch_shm_manager" in text


def command_line(pid: int) -> str:
    """The words of a process; empty when it has gone."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as command:
            return command.read().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return ""


def send(pid: int, number: int) -> bool:
    """Send a signal to a process that may have gone."""
    try:
        os.kill(pid, number)
    except OSError:
        return False
    return True


def prepare(give_up: "Callable[..., None]") -> None:
    """Be the one to whom orphans come, and end with the process that started this one."""
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(PR_SET_PDEATHSIG, PARENT_DIED, 0, 0, 0)
    for number in (signal.SIGTERM, PARENT_DIED):
        signal.signal(number, give_up)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def reserve(folder: str, size: int) -> str:
    """Keep room on the disk for what comes of the run: for the notes of the probe, and in a file for the outputs.

    A program may fill the disk. Gives the file, which makes room when it is removed.
    """
    held = f"{folder}/reserve"
    libc = ctypes.CDLL(None, use_errno=True)
    with contextlib.suppress(OSError):
        with open(f"{folder}/journal", "ab") as journal:
            libc.fallocate(journal.fileno(), FALLOC_FL_KEEP_SIZE, ctypes.c_int64(0), ctypes.c_int64(size))
        with open(held, "wb") as stream:
            os.posix_fallocate(stream.fileno(), 0, size)
    return held


def has_gone(parent: int, told: "list[int]") -> bool:
    """Whether the process that started this one is dead. Its first thread to die says so; the last may take a while."""
    until = time.monotonic() + (30.0 if PARENT_DIED in told else 0.0)
    while os.getppid() == parent and time.monotonic() < until:
        time.sleep(0.01)
    return os.getppid() != parent


def main() -> None:
    """Run one program to its end or its limits."""
    folder, *command = sys.argv[1:]
    with open(f"{folder}/limits.json") as stream:
        limits = json.load(stream)
    told: list[int] = []
    prepare(lambda number, _: told.append(number))
    if os.getppid() != limits["parent"]:  # gone before it could be told
        told.append(signal.SIGTERM)
    held = reserve(folder, 4 * limits["output"])
    program = Program(command, limits["output"], told)
    program.echo = limits["echo"]
    end = program.run(limits["seconds"], limits["memory"], limits["census"], limits["rest"], limits["stopped"])
    seconds = time.monotonic() - program.began
    left_behind = program.linger(limits["linger"]) if end == "ended" else []
    survivors = program.sweep(20.0)
    program.drain()
    with contextlib.suppress(OSError):
        os.remove(held)
    report = {
        "pid": program.pid,
        "end": end,
        "code": program.deaths[program.pid] if end == "ended" else None,
        "seconds": seconds,
        "deaths": {pid: code for pid, code in program.deaths.items() if pid not in program.killed},
        "left_behind": len(left_behind),
        "survivors": survivors,
        "seen": program.seen,
        "rested": {pid: rest.until - rest.since for pid, rest in program.rest.items()},
        "bytes": [capture.size for capture in program.streams],
    }
    with contextlib.suppress(OSError):  # who misses the report says so
        for name, capture in zip(("stdout", "stderr"), program.streams, strict=True):
            with open(f"{folder}/{name}", "wb") as output:
                output.write(capture.text())
        with open(f"{folder}/report.part", "w") as stream:
            json.dump(report, stream)
        os.replace(f"{folder}/report.part", f"{folder}/report.json")
    if has_gone(limits["parent"], told):  # nobody is there to read it
        import shutil  # as long to load as all the rest

        for left in filter(None, (folder, limits["shared"])):
            shutil.rmtree(left, ignore_errors=True)


if __name__ == "__main__":
    main()
