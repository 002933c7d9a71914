"""A process that judges cases within limits: ``python -m fuzz.worker`` reads requests as JSON, and answers so."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import traceback
from collections.abc import Mapping
from types import FrameType
from typing import Any

from fuzz.case import Case
from fuzz.inputs import Drawn
from fuzz.properties import PROPERTIES
from fuzz.properties.property import Property

SECONDS = 10
MEMORY = 1 << 30


class TooSlow(BaseException):
    """The processor time of a case is used up; no ``except Exception`` keeps it."""


def main() -> int:
    """Answer until the requests end. Whatever a case prints goes nowhere."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for row in sys.stdin:
        request = json.loads(row)
        case = _case(request)
        asked = ((name, PROPERTIES[name]) for name in request["properties"])
        found = {name: _judged(one, case, request["seconds"] * one.runs) for name, one in asked}
        answers.write(json.dumps(found) + "\n")
        answers.flush()
    return 0


def _case(request: Mapping[str, Any]) -> Case:
    """What is asked about, made here where it is drawn: that costs more than to judge it for some sources."""
    if "drawn" in request:
        return Drawn(*request["drawn"]).case()
    return Case(request["name"], {name: text.encode("latin-1") for name, text in request["files"].items()})


class _Clock:
    """Raises ``TooSlow`` after some processor time, and again: what is called from native code may lose one."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.has_run_out = False

    def __enter__(self) -> _Clock:
        signal.signal(signal.SIGPROF, self._ring)
        signal.setitimer(signal.ITIMER_PROF, self._seconds, 1)
        return self

    def __exit__(self, *raised: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)

    def _ring(self, number: int, frame: FrameType | None) -> None:
        self.has_run_out = True
        raise TooSlow


def _judged(asked: Property, case: Case, seconds: float) -> list[str]:
    clock = _Clock(seconds)
    raised: BaseException | None = None
    found: list[str] = []
    try:
        with clock:
            found = list(asked.complaints(case))
    except (Exception, TooSlow) as error:
        raised = error
    if clock.has_run_out:
        return [f"more than {seconds:g} s of processor time, in {_place(raised)}"]
    if isinstance(raised, MemoryError):
        return [f"more than {MEMORY >> 20} MB, in {_place(raised)}"]
    if raised is not None:
        words = " ".join(str(raised).split())[:150]
        return [f"an exception: {type(raised).__name__}: {words} in {_place(raised)}"]
    return found


def _place(error: BaseException | None) -> str:
    """The last functions of cudalint on the stack of an error."""
    if error is None:
        return "?"
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if f"{os.sep}cudalint{os.sep}" in frame.filename
    ]
    return " < ".join(f"{os.path.basename(f.filename)}:{f.lineno} {f.name}" for f in reversed(frames[-3:])) or "?"


if __name__ == "__main__":
    raise SystemExit(main())
