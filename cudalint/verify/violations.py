"""What went wrong between CUDA and the processes of a run, as far as it was seen happening."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from enum import Enum
from itertools import dropwhile, takewhile

from cudalint.finding import Finding
from cudalint.structs import Frozen, replace
from cudalint.verify.journal import Event, Journal, Stack
from cudalint.verify.runner import PROBE, Run
from cudalint.verify.sayings import (
    OF_FORKS,
    OF_OWNERS,
    OF_RANKS,
    is_of_gpus,
    of_same_gpu,
    shown_by,
    speaks_of_initialisation,
    speaks_of_memory,
)

_TRACEBACK = re.compile(r"Traceback \(most recent call last\):\n")
_FRAME = re.compile(r"^[\s|']*File \"(?P<file>[^\"\n]+)\", line (?P<line>\d+)(?:, in (?P<name>.+))?$")
_RAISED = re.compile(r"^(?P<type>(?:\w+\.)*\w+)(?:: (?P<text>.*))?$")
_CAUSED = "The above exception was the direct cause of the following exception"
# Before the traceback of a worker that the message of its parent's exception holds: DataLoader, torch's spawn.
_HOLDS = re.compile(r"^(?:Original |-- Process \d+ terminated with the following error:\n)\Z", re.MULTILINE)


class Kind(Enum):
    """What can be seen happening."""

    FORKED_CHILD = "CUDA in a forked child whose parent had asked for CUDA"
    VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES set after CUDA was asked for"
    GROUP = "a process group before the device was chosen"
    VALUE = "a CUDA value sent to another process"
    LOST = "a CUDA value that could not be received"
    CONTEXTS = "CUDA initialised in several processes"
    SAME_GPU = "a rank on the GPU of another"
    PICKLING = "a value that could not be pickled"
    REFUSED = "a process that was refused children"
    GPU_ERROR = "an exception of a GPU library"
    EXCEPTION = "an exception that nobody caught"


# What a finding of a rule says will be seen; what an exception shows is in its text.
_CODES: dict[Kind, frozenset[str]] = {
    Kind.FORKED_CHILD: OF_FORKS,
    Kind.VISIBLE_DEVICES: frozenset({"CUD202", "CUD203"}),
    Kind.GROUP: OF_RANKS,
    Kind.SAME_GPU: OF_RANKS,
    Kind.VALUE: frozenset({"CUD302"}),
    Kind.LOST: OF_OWNERS,
    Kind.CONTEXTS: frozenset({"CUD201", "CUD206"}),
    Kind.PICKLING: frozenset({"CUD108", "CUD305"}),
    Kind.REFUSED: frozenset({"CUD107"}),
    Kind.GPU_ERROR: OF_FORKS | {"CUD403", "CUD404"},
}
# What is wrong wherever it is seen; the others cost, can fail, or are meant for children to come.
_WRONG = frozenset({Kind.FORKED_CHILD, Kind.LOST, Kind.SAME_GPU})


class Violation(Frozen):
    """One of them: who, what it said, and the stacks of the parent's guilt, of the fork, and of the use.

    What was read from a traceback has no process (``pid`` is 0); its ``launch`` is where the parent waited.
    """

    kind: Kind
    pid: int
    text: str
    use: Stack
    guilt: Event | None = None
    launch: Stack = ()

    @property
    def is_wrong(self) -> bool:
        """Whether it should have been predicted as an error."""
        return self.kind in _WRONG

    def shows(self, finding: Finding) -> bool:
        """Whether a finding can be confirmed by it: it is what the finding says."""
        return finding.code in (shown_by(self.text) if self.kind is Kind.EXCEPTION else _CODES[self.kind])


# What pickles: multiprocessing, joblib and cloudpickle, of which many programs carry a copy.
_PICKLERS = re.compile(r"(?:^|/)(?:(?:multiprocessing|loky/backend)/reduction|pickle|cloudpickle|dill/_dill)\.py$")
_UNSENT = re.compile(r"(?:[\w.]+\.)?MaybeEncodingError\b")
_PICKLES = re.compile(r"dumps?$|^save|^reduce")


def violations(run: Run, journal: Journal) -> tuple[Violation, ...]:
    """Everything that was seen, each once."""
    forked = list(_forked(journal))
    # A process that reports the failure of its child says the same once more.
    read = [_told_again(one) if forked else one for one in _tracebacks(run)]
    if any(journal.of("worked")):  # children have CUDA: it fails for another reason
        read = [replace(one, kind=Kind.EXCEPTION) if one.kind is Kind.GPU_ERROR else one for one in read]
    found = [*forked, *_late(journal), *_costs(journal), *read]
    unique: dict[tuple[object, ...], Violation] = {}
    for one in found:
        unique.setdefault((one.kind, one.use[:1], one.launch[:1]), one)
    return tuple(unique.values())


def _told_again(one: Violation) -> Violation:
    return replace(one, kind=Kind.EXCEPTION) if one.kind is Kind.FORKED_CHILD else one


def _forked(journal: Journal) -> Iterator[Violation]:
    failed = list(journal.of("failed"))
    answered = {(event.pid, event.values[0]) for event in journal.of("failed", "worked")}
    for event in failed:
        _, number, text = event.values
        yield _in_child(journal, event, number, text)
    for event in journal.of("try"):
        name, number = event.values
        if (event.pid, name) not in answered and not _returned(journal, event):
            yield _in_child(journal, event, number, f"{name} has not returned")


def _returned(journal: Journal, event: Event) -> bool:
    """Whether the process noted anything afterwards."""
    return any(later.pid == event.pid for later in journal.events[journal.events.index(event) + 1 :])


def _in_child(journal: Journal, event: Event, number: str, text: str) -> Violation:
    fork = journal.forks.get(number)
    return Violation(
        kind=Kind.FORKED_CHILD,
        pid=event.pid,
        text=text,
        use=event.stack,
        guilt=journal.guilt(number),
        launch=fork.stack if fork is not None else (),
    )


def _late(journal: Journal) -> Iterator[Violation]:
    for event in journal.of("visible"):
        if not event.values[2]:
            continue
        guilt = next((e for e in journal.of("init", "query", "worked") if e.pid == event.pid), None)
        guilt = guilt or journal.guilt(journal.made_by.get(event.pid, ""))
        yield Violation(Kind.VISIBLE_DEVICES, event.pid, f"set to {event.values[0]!r}", event.stack, guilt)


def _costs(journal: Journal) -> Iterator[Violation]:
    for event in journal.of("group"):
        _, backend, selected = event.values
        if not selected and "gloo" not in backend:
            yield Violation(Kind.GROUP, event.pid, f"backend {backend}", event.stack)
    for event in journal.of("send"):
        yield Violation(Kind.VALUE, event.pid, event.values[0], event.stack)
    for event in journal.of("unpickled"):
        if not speaks_of_memory(event.values[0]):
            yield Violation(Kind.PICKLING, event.pid, event.values[0], event.stack)
    for event in journal.of("refused"):
        yield Violation(Kind.REFUSED, event.pid, event.values[0], event.stack)
    for event in journal.of("lost"):
        if not speaks_of_memory(event.values[1]):
            yield Violation(Kind.LOST, event.pid, event.values[1], event.stack)
    initialised = {event.pid: event for event in journal.of("init", "worked")}
    if len(initialised) > 1:
        for event in initialised.values():
            fork = journal.forks.get(journal.made_by.get(event.pid, ""))
            launch = fork.stack if fork is not None else ()
            yield Violation(
                Kind.CONTEXTS, event.pid, f"{len(initialised)} processes used CUDA", event.stack, launch=launch
            )


def _tracebacks(run: Run) -> Iterator[Violation]:
    """The exceptions that ended processes, from what they printed."""
    if run.end == "ended" and not run.code and not run.deaths:
        return
    parts = iter(_TRACEBACK.split(run.stderr)[1:])
    for part in parts:
        stack, text = _read(part)
        launch: Stack = ()
        if _HOLDS.search(part) is not None:
            outer, part = (stack, text), next(parts, "")
            stack, text = _read(part)
            launch, stack, text = (outer[0], stack, text) if stack else ((), *outer)
        if _CAUSED in part:  # a worker's traceback, and that of who asked for its result
            launch = launch or _read(next(parts, ""))[0]
        if stack:
            kind, told = _kind(text, part, stack)
            yield Violation(kind, 0, told, stack, launch=launch)


def _kind(text: str, part: str, stack: Stack) -> tuple[Kind, str]:
    """What an exception shows, and the line that says so; ``part`` is all that was printed of it."""
    if speaks_of_initialisation(text):
        return Kind.FORKED_CHILD, text
    if speaks_of_memory(text):
        return Kind.EXCEPTION, text
    if _UNSENT.match(text) or any(_PICKLERS.search(name) and _PICKLES.search(function) for name, _, function in stack):
        return Kind.PICKLING, text
    same = of_same_gpu(part)
    if same is not None:
        return Kind.SAME_GPU, same
    return (Kind.GPU_ERROR if is_of_gpus(text) and not shown_by(text) else Kind.EXCEPTION), text


def _read(part: str) -> tuple[Stack, str]:
    """The stack of a traceback, without the wrappers of the probe, and what was raised."""
    frames: list[tuple[str, int, str]] = []
    lines = part.splitlines()
    for row, line in enumerate(lines):
        frame = _FRAME.match(line)
        if frame is not None:
            frames.append((frame["file"], int(frame["line"]), frame["name"] or ""))
        elif frames and not line.startswith((" ", "\t")) and _RAISED.match(line):
            stack = tuple(one for one in reversed(frames) if os.path.dirname(one[0]) != str(PROBE))
            return stack, f"{line}{_paragraph(lines[row + 1 :])}" if line.endswith(": ") else line
    return (), ""


def _paragraph(lines: Sequence[str]) -> str:
    """The first one of a message that begins on a line of its own, as that of multiprocessing about the main guard."""
    text = dropwhile(lambda line: not line.strip(), lines)
    return " ".join(line.strip() for line in takewhile(lambda line: line.startswith(" ") and line.strip(), text))
