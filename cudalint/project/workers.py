"""Other processes that run entries, and what makes their results the same as if there were none.

This process runs the groups of a stage from the first on, and the others take them from the last on, until they meet:
so nobody waits for anybody before that. What another process finds rests on what was reached when its group was handed
out; it is taken only where that makes no difference by the time it is this group's turn (``GroupResult.unreached``),
and otherwise the group runs again. So results do not depend on how many processes there are, nor on their speed.

A process that dies, or fails in any way, loses nothing: what it was given runs here.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Sequence, Set
from types import TracebackType
from typing import BinaryIO

import cudalint
from cudalint.module_path import without_the_current_folder
from cudalint.project.callers import Place
from cudalint.project.groups import Group, GroupResult
from cudalint.project.reads import News
from cudalint.project.worker import END, Brief, Job, receive, send, unpacked
from cudalint.structs import Mutable, MutableUnique, field

# A process that runs fewer groups than this saves less than its start costs.
LEAST_GROUPS = 4

# Nothing is imported from the current folder, which may be what is checked, and cudalint is the one that asks. Who
# interrupts a run interrupts the process that asks, and that one ends the others.
_CODE = """\
import signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
from importlib.util import module_from_spec, spec_from_file_location
spec = spec_from_file_location("cudalint", {file!r}, submodule_search_locations=[{folder!r}])
sys.modules["cudalint"] = package = module_from_spec(spec)
sys.path[:] = {path!r}
spec.loader.exec_module(package)
from cudalint.project.worker import serve
serve()
"""


class _Worker(MutableUnique):
    """A process, and how much of what was reached it knows."""

    process: subprocess.Popen[bytes]
    known: int = 0
    knows_before: bool = False
    # It came upon something in a group that runs again, and will not say so a second time.
    is_tainted: bool = False

    def ask(self, job: Job) -> bytes:
        """The answer to a job; raises ``EOFError`` or ``OSError`` where the process ended."""
        send(self._jobs, job.packed())
        assert self.process.stdout is not None
        return receive(self.process.stdout)  # type: ignore[arg-type]

    def brief(self, brief: Brief) -> None:
        """Say what the program is."""
        pickle.dump(brief, self._jobs, pickle.HIGHEST_PROTOCOL)
        self._jobs.flush()

    def dismiss(self) -> None:
        """Let it keep what it learned, and wait for its end."""
        with contextlib.suppress(OSError):
            send(self._jobs, END)
        self.process.wait()
        self._close()

    def kill(self) -> None:
        """End it, whatever it is at."""
        self.process.kill()
        self.process.wait()
        self._close()

    @property
    def _jobs(self) -> BinaryIO:
        assert self.process.stdin is not None
        return self.process.stdin  # type: ignore[return-value]

    def _close(self) -> None:
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()


class Workers(Mutable):
    """As many processes as are wanted besides this one, started when there is something for them to do.

    Used as a context: after it none of them is left.
    """

    program: Brief
    count: int
    _threads: list[threading.Thread] = field(default_factory=list)
    _workers: set[_Worker] = field(default_factory=set)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    # The stage, as far as it is not over: what no process has begun, what one is at, and what came of it.
    _order: dict[Group, int] = field(default_factory=dict)
    _waiting: list[Group] = field(default_factory=list)
    _running: set[Group] = field(default_factory=set)
    _done: dict[Group, tuple[_Worker, GroupResult]] = field(default_factory=dict)
    # What was reached, in the order in which it was; the first ``_before`` of it by what is started.
    _reached: list[Place] = field(default_factory=list)
    _before: int | None = None
    _known: set[Place] = field(default_factory=set)
    _is_over: bool = False
    _has_failed: bool = False
    # What they found out about files, and nobody asked for yet.
    _news: list[News] = field(default_factory=list)
    # How many of them ended before their time.
    lost: int = 0

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._changed:
            self._is_over, self._has_failed = True, kind is not None
            self._waiting.clear()
            if self._has_failed or self._running:
                # What they are at is wanted no more.
                for worker in self._workers:
                    worker.process.kill()
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def offer(self, groups: Sequence[Group], reached: Set[Place], before: Set[Place]) -> None:
        """Let the processes run some groups of a stage, which follow the one whose turn it is now."""
        with self._changed:
            if self._before is None and groups and groups[0].is_assumed:
                self._note(before)
                self._before = len(self._reached)
            self._note(reached)
            for group, (_, found) in tuple(self._done.items()):
                # To refuse one may have been to refuse others.
                if group in self._done and not found.unreached.isdisjoint(reached):
                    self._refuse(group)
                    self._waiting.append(group)
            left = frozenset(groups)
            if not self._order.keys() >= left:
                self._order = {group: i for i, group in enumerate(groups)}
                self._waiting = list(groups)
            self._waiting = sorted((g for g in self._waiting if g in left), key=self._order.__getitem__)
            self._changed.notify_all()
        self._start(len(groups) // LEAST_GROUPS)

    def result(self, group: Group, reached: Set[Place]) -> GroupResult | None:
        """What a group gave in one of the processes, whose turn it is now; None where it has to run here."""
        with self._changed:
            if group in self._waiting:
                self._waiting.remove(group)
                return None
            while group in self._running:
                self._changed.wait()
            if group not in self._done:
                return None
            _, found = self._done[group]
            if found.unreached.isdisjoint(reached):
                del self._done[group]
                return found
            self._refuse(group)
            return None

    def news(self) -> Sequence[News]:
        """What the processes found out about files since this was asked last."""
        with self._changed:
            found, self._news = self._news, []
        return found

    def _note(self, reached: Set[Place]) -> None:
        fresh = reached - self._known
        self._known |= fresh
        self._reached.extend(fresh)

    def _refuse(self, group: Group) -> None:
        """Forget a result that rests on what is no longer so.

        A process says only once that it came upon a broken file. Where that was in this group, it is not known which
        other groups come upon it too: nothing more of what this process finds is taken.
        """
        worker, found = self._done.pop(group)
        if not found.says_once:
            return
        worker.is_tainted = True
        for other in [g for g, (of, _) in self._done.items() if of is worker]:
            del self._done[other]
            self._waiting.append(other)

    # -- the processes ----------------------------------------------------------------------------

    def _start(self, useful: int) -> None:
        """Have as many processes as are useful."""
        while len(self._threads) < min(self.count, useful):
            thread = threading.Thread(target=self._serve, daemon=True, name="cudalint-worker")
            self._threads.append(thread)
            thread.start()

    def _serve(self) -> None:
        """Give a process one group after the other."""
        worker: _Worker | None = None
        try:
            while (group := self._next()) is not None:
                if worker is None or worker.is_tainted:
                    self._leave(worker)
                    worker = self._hired(group)
                if worker is None or not self._done_by(worker, group):
                    return
        finally:
            self._leave(worker)

    def _next(self) -> Group | None:
        """The last group that no process has begun; None when there will be no more."""
        with self._changed:
            while not self._waiting and not self._is_over:
                self._changed.wait()
            if self._is_over:
                return None
            group = self._waiting.pop()
            self._running.add(group)
            return group

    def _hired(self, group: Group) -> _Worker | None:
        """A process that knows the program; where there is none, a group runs elsewhere."""
        worker: _Worker | None = None
        try:
            worker = _Worker(_started())
            with self._changed:
                self._workers.add(worker)
                is_over = self._is_over
            if not is_over:
                worker.brief(self.program)
                return worker
        except Exception:  # whatever it is, this process is still there
            pass
        self._lose(worker, group)
        return None

    def _done_by(self, worker: _Worker, group: Group) -> bool:
        """Have a process run a group; whether it did."""
        with self._changed:
            job = self._job(worker, group)
        try:
            found = unpacked(worker.ask(job), self.program.sources)
        except Exception:  # the process ended, or what it wrote is no answer
            self._lose(worker, group)
            return False
        with self._changed:
            self._running.discard(group)
            self._news.append(found.news)
            if worker.is_tainted:
                self._waiting.append(group)
            else:
                self._done[group] = worker, found
            self._changed.notify_all()
        return True

    def _job(self, worker: _Worker, group: Group) -> Job:
        """A group, with what the process does not know yet of what was reached."""
        before: Sequence[Place] = ()
        if self._before is not None and not worker.knows_before:
            before = self._reached[worker.known : self._before]
            worker.known, worker.knows_before = self._before, True
        since = self._reached[worker.known :]
        worker.known = len(self._reached)
        return Job(group, tuple(before), tuple(since))

    def _lose(self, worker: _Worker | None, group: Group) -> None:
        """A process ended, or could not be had: what it was at runs elsewhere."""
        with self._changed:
            self._running.discard(group)
            self.lost += not self._is_over
            self._changed.notify_all()
        if worker is not None:
            worker.is_tainted = True
            worker.kill()

    def _leave(self, worker: _Worker | None) -> None:
        """Part with a process that is at nothing."""
        if worker is None:
            return
        with self._changed:
            self._workers.discard(worker)
            may_keep = not self._has_failed and not worker.is_tainted and self.program.store is not None
        if may_keep:
            worker.dismiss()
        else:
            worker.kill()


def _started() -> subprocess.Popen[bytes]:
    """A fresh process; raises ``OSError`` or ``ValueError`` where none can be had."""
    if not sys.executable:
        raise ValueError
    file = os.path.abspath(cudalint.__file__)
    code = _CODE.format(file=file, folder=os.path.dirname(file), path=without_the_current_folder(sys.path))
    flags = ("-B",) if sys.dont_write_bytecode else ()
    command = (sys.executable, "-I", *flags, "-c", code)
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
