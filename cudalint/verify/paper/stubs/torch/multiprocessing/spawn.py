"""torch.multiprocessing.spawn and start_processes."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import tempfile
import time
import traceback
from multiprocessing import connection
from typing import Any


class ProcessException(Exception):
    """A process of spawn() failed."""

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, error_pid

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """A process raised."""


class ProcessExitedException(ProcessException):
    """A process exited or was killed."""

    def __init__(self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name


ProcessException.__module__ = "torch.multiprocessing.spawn"


def _wrap(fn: Any, i: int, args: tuple[Any, ...], error_file: str) -> None:
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass
    except Exception:
        with open(error_file, "wb") as handle:
            pickle.dump(traceback.format_exc(), handle)
        sys.exit(1)


class ProcessContext:
    """The processes of one spawn()."""

    def __init__(self, processes: list[Any], error_files: list[str]) -> None:
        self.processes, self.error_files = processes, error_files
        self.sentinels = {process.sentinel: index for index, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """Their process ids."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait for some to end; the first failure ends the others and is raised."""
        if not self.sentinels:
            return True
        ready = connection.wait(list(self.sentinels), timeout=timeout)
        failed = None
        for sentinel in ready:
            index = self.sentinels.pop(sentinel)  # type: ignore[arg-type]
            self.processes[index].join()
            if self.processes[index].exitcode != 0:
                failed = index
                break
        if failed is None:
            return not self.sentinels
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        until = time.monotonic() + 3
        for process in self.processes:
            process.join(max(0.0, until - time.monotonic()))
            if process.is_alive():
                process.kill()
            process.join()
        self._raise(failed)
        return True

    def _raise(self, index: int) -> None:
        process = self.processes[index]
        if not os.path.getsize(self.error_files[index]):
            code = process.exitcode
            if code < 0:
                name = signal.Signals(-code).name
                text = f"process {index} terminated with signal {name}"
                raise ProcessExitedException(text, index, process.pid, code, name)
            raise ProcessExitedException(f"process {index} terminated with exit code {code}", index, process.pid, code)
        with open(self.error_files[index], "rb") as handle:
            original = pickle.load(handle)
        text = f"\n\n-- Process {index} terminated with the following error:\n{original}"
        raise ProcessRaisedException(text, index, process.pid)


SpawnContext = ProcessContext


def start_processes(
    fn: Any, args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
    start_method: str = "spawn", **_: Any,
) -> Any:  # fmt: skip
    """Start nprocs processes that call fn(i, *args)."""
    context = multiprocessing.get_context(start_method)
    processes, files = [], []
    for i in range(nprocs):
        handle, path = tempfile.mkstemp(prefix="paper-spawn-", dir=os.environ.get("PAPER_STATE"))
        os.close(handle)
        process = context.Process(target=_wrap, args=(fn, i, args, path), daemon=daemon)  # type: ignore[attr-defined]
        process.start()
        processes.append(process)
        files.append(path)
    started = ProcessContext(processes, files)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(fn: Any, args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True, daemon: bool = False, start_method: str = "spawn") -> Any:
    """Start nprocs spawned processes that call fn(i, *args)."""
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
