"""Judges cases in a process of its own, which a case may bring down without harm to the others."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from fuzz.case import Case
from fuzz.inputs import Drawn
from fuzz.properties import PROPERTIES
from fuzz.worker import SECONDS

# A process that does not answer for so many times its bound, and what it needs to start, is stuck in native code.
PATIENCE = 8
START = 60
# Then a fresh process takes over, so that what a case leaves behind does not add up.
MOST_CASES = 400

Complaints = Mapping[str, list[str]]
"""What is complained of, by property; the names of broken properties only."""


class Judge:
    """Asks a worker, and starts another one where it ended."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._worker: subprocess.Popen[str] | None = None
        self._asked = 0
        self._properties: Sequence[str] = ()
        self._wait = self._deadline = 0.0
        # Of the worker and of what it starts: a killed process removes nothing.
        self._folder = tempfile.TemporaryDirectory(prefix="cudalint-judge-", ignore_cleanup_errors=True)

    def __enter__(self) -> Judge:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()
        self._folder.cleanup()

    def complaints(self, case: Case, properties: Sequence[str]) -> Complaints:
        """The complaints about a case."""
        self.ask(case, properties)
        select.select([self], [], [], self.patience())
        return self.answer()

    def ask(self, case: Case | Drawn, properties: Sequence[str]) -> None:
        """Have a case judged; its ``answer`` must be taken before the next one is asked about."""
        worker = self._started()
        assert worker.stdin is not None
        request = {**_request(case), "properties": list(properties), "seconds": self._seconds}
        with contextlib.suppress(BrokenPipeError):  # it ended: so says its answer
            worker.stdin.write(json.dumps(request) + "\n")
            worker.stdin.flush()
        self._properties = properties
        runs = sum(PROPERTIES[name].runs for name in properties)
        self._wait = START + self._seconds * PATIENCE * runs
        self._deadline = time.monotonic() + self._wait

    def fileno(self) -> int:
        """What can be read once there is an answer."""
        assert self._worker is not None
        assert self._worker.stdout is not None
        return self._worker.stdout.fileno()

    def patience(self) -> float:
        """For how many seconds an answer may still be waited for."""
        return max(0.0, self._deadline - time.monotonic())

    def answer(self) -> Complaints:
        """What the worker says, or how it ended: at our hands, where there is no answer yet."""
        assert self._worker is not None
        assert self._worker.stdout is not None
        ready, _, _ = select.select([self], [], [], 0)
        row = self._worker.stdout.readline() if ready else ""
        if row.endswith("\n"):
            answer: Complaints = json.loads(row)
            return {name: found for name, found in answer.items() if found}
        if ready:  # it is ending, with a code of its own
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._worker.wait(START)
        code = self._end()
        what = f"the process ended with {code}" if ready else f"no answer within {self._wait:g} s"
        return {name: [what] for name in self._properties[:1]}

    def _started(self) -> subprocess.Popen[str]:
        if self._worker is not None and self._asked >= MOST_CASES:
            self._end()
        if self._worker is None:
            here = Path(__file__).resolve().parents[1]
            command = [sys.executable, "-m", "fuzz.worker"]
            # In a session of its own: an interrupt from the keyboard is ours, and what it starts ends with it.
            self._worker = subprocess.Popen(
                command,
                cwd=here,
                env={**os.environ, "TMPDIR": self._folder.name},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                encoding="utf-8",
                start_new_session=True,
            )
            self._asked = 0
        self._asked += 1
        return self._worker

    def _end(self) -> int | None:
        worker, self._worker = self._worker, None
        if worker is None:
            return None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(worker.pid, signal.SIGKILL)
        for stream in (worker.stdin, worker.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        return worker.wait()


def _request(case: Case | Drawn) -> dict[str, Any]:
    if isinstance(case, Drawn):
        return {"drawn": [case.source, case.number, case.together]}
    return {"name": case.name, "files": {name: data.decode("latin-1") for name, data in case.files.items()}}
