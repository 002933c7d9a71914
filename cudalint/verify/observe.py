"""What a run showed, in the words of a fixture's header."""

from __future__ import annotations

import re
from collections.abc import Mapping

from cudalint.structs import Frozen, field
from cudalint.verify.headers import Outcome
from cudalint.verify.runner import Run
from cudalint.verify.surroundings import Footprint

_MEASURED = re.compile(r"^measured:\s*(\w+)\s*=\s*(.+?)\s*$", re.MULTILINE)
# The last line of a traceback; a process that re-raises puts the worker's own before it.
_EXCEPTION = re.compile(
    r"^(?:\[rank\d+\]:\s*)?(?P<type>(?:\w+\.)*(?:\w*(?:Error|Exception|Interrupt|Exit|Pool|Warning)\w*))"
    r"(?:: (?P<message>.*))?$",
    re.MULTILINE,
)
# One frame of a stack that a C++ library prints.
_FRAME = re.compile(r"\s*@\s+0x")
# A line of a traceback and the source that it shows, which may spell the message of an exception that was not raised.
_SOURCE = re.compile(r"^(?P<margin>.*?)File \"[^\"\n]+\", line \d+.*\n(?P=margin)  .*\n?", re.MULTILINE)
_LONGEST_MESSAGE = 240
# How a program hangs, or may do so.
_HANGS = {
    "busy": "still running (time limit)",
    "rest": "hang (all its processes waited)",
    "stopped": "hang (a signal has stopped it, and all its processes waited)",
}


class Observation(Frozen):
    """How a run ended: ``outcome`` is crash, hang, child-death or ok."""

    outcome: Outcome
    code: int | None
    exception: str
    message: str
    deaths: tuple[int, ...]
    seconds: float
    end: str
    left_behind: int = 0
    survivors: tuple[int, ...] = ()
    measured: Mapping[str, str] = field(default_factory=dict)
    text: str = ""
    spoiled: tuple[str, ...] = ()
    footprints: tuple[Footprint, ...] = ()

    @property
    def said(self) -> str:
        """The exception on one line, else the last line of what it printed."""
        if self.exception:
            return f"{self.exception}: {self.message}".rstrip(": ")
        lines = [line.strip() for line in self.text.splitlines() if line.strip() and not _FRAME.match(line)]
        return lines[-1][:_LONGEST_MESSAGE] if lines else ""

    def quote(self, pattern: str) -> str | None:
        """The line of its output in which the pattern is found, the source lines of tracebacks left out."""
        words = _SOURCE.sub("", self.text)
        match = re.search(pattern, words)
        if match is None:
            return None
        begin = words.rfind("\n", 0, match.start()) + 1
        return words[begin:].lstrip().partition("\n")[0].strip()[:_LONGEST_MESSAGE]

    @property
    def summary(self) -> str:
        """How it ended, for people."""
        if self.outcome is Outcome.HANG:
            return _HANGS.get(self.end, f"hang ({self.end} limit)")
        if self.code is None:
            return f"broken off ({self.end})"
        if self.outcome is Outcome.CRASH:
            return f"crash (exit {self.code})"
        if self.outcome is Outcome.CHILD_DEATH:
            return f"child-death ({', '.join(map(str, self.deaths))})"
        return str(self.outcome.value)


def observe(run: Run) -> Observation:
    """Read a run."""
    text = run.stdout + ("\n" if run.stdout and not run.stdout.endswith("\n") else "") + run.stderr
    exception, message = _last_exception(run.stderr) if run.end != "ended" or run.code or run.deaths else ("", "")
    return Observation(
        outcome=_outcome(run),
        code=run.code,
        exception=exception,
        message=message,
        deaths=tuple(sorted(run.deaths.values())),
        seconds=run.seconds,
        end=run.end,
        left_behind=run.left_behind,
        survivors=run.survivors,
        measured=dict(_MEASURED.findall(run.stdout)),
        text=text,
        spoiled=run.spoiled,
        footprints=run.footprints,
    )


def _outcome(run: Run) -> Outcome:
    if run.end == "ended":
        if run.code:
            return Outcome.CRASH
        return Outcome.CHILD_DEATH if run.deaths else Outcome.OK
    return Outcome.HANG if run.end in ("time", *_HANGS) else Outcome.CRASH


def _last_exception(stderr: str) -> tuple[str, str]:
    found = [match for match in _EXCEPTION.finditer(stderr) if not match["type"].endswith("Warning")]
    if not found:
        return "", ""
    return found[-1]["type"].rpartition(".")[2], (found[-1]["message"] or "").strip()[:_LONGEST_MESSAGE]
