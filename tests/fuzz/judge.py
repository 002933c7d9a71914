"""Judges cases in a process of its own, which a case may bring down without harm to the others."""

from __future__ import annotations

import json
import select
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from fuzz.case import Case
from fuzz.properties import PROPERTIES
from fuzz.worker import SECONDS

# A process that does not answer for so many times its bound, and what it needs to start, is stuck in native code.
PATIENCE = 8
START = 60
# Then a fresh process takes over, so that what a case leaves behind does not add up.
MOST_CASES = 400


class Judge:
    """Asks a worker, and starts another one where it ended."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._worker: subprocess.Popen[str] | None = None
        self._asked = 0

    def __enter__(self) -> Judge:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def complaints(self, case: Case, properties: Sequence[str]) -> Mapping[str, list[str]]:
        """The complaints about a case by property; the names of broken properties only."""
        answer = self._asked_for(case, properties)
        return {name: found for name, found in answer.items() if found}

    def _asked_for(self, case: Case, properties: Sequence[str]) -> Mapping[str, list[str]]:
        worker = self._started()
        assert worker.stdin is not None
        assert worker.stdout is not None
        files = {name: data.decode("latin-1") for name, data in case.files.items()}
        request = {"name": case.name, "files": files, "properties": list(properties), "seconds": self._seconds}
        worker.stdin.write(json.dumps(request) + "\n")
        worker.stdin.flush()
        wait = START + self._seconds * PATIENCE * sum(PROPERTIES[name].runs for name in properties)
        ready, _, _ = select.select([worker.stdout], [], [], wait)
        row = worker.stdout.readline() if ready else ""
        if row:
            answer: Mapping[str, list[str]] = json.loads(row)
            return answer
        code = self._end()
        what = f"the process ended with {code}" if ready else f"no answer within {wait:g} s"
        return {name: [what] for name in properties[:1]}

    def _started(self) -> subprocess.Popen[str]:
        if self._worker is not None and self._asked >= MOST_CASES:
            self._end()
        if self._worker is None:
            here = Path(__file__).resolve().parents[1]
            command = [sys.executable, "-m", "fuzz.worker"]
            self._worker = subprocess.Popen(
                command, cwd=here, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
            )
            self._asked = 0
        self._asked += 1
        return self._worker

    def _end(self) -> int | None:
        worker, self._worker = self._worker, None
        if worker is None:
            return None
        if worker.poll() is None:
            worker.kill()
        for stream in (worker.stdin, worker.stdout):
            if stream is not None:
                stream.close()
        return worker.wait()
