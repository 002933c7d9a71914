"""What went wrong between CUDA and the processes of a run, as far as it was seen happening."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum

from cudalint.verify.journal import Event, Journal, Stack
from cudalint.verify.runner import Run

_TRACEBACK = re.compile(r"Traceback \(most recent call last\):\n")
_FRAME = re.compile(r"^[\s|']*File \"(?P<file>[^\"\n]+)\", line (?P<line>\d+)(?:, in (?P<name>.+))?$")
_RAISED = re.compile(r"^(?P<type>(?:\w+\.)*\w+)(?:: (?P<text>.*))?$")
_CAUSED = "The above exception was the direct cause of the following exception"
_INITIALISATION = re.compile(
    r"Cannot re-initialize CUDA|initialization error|cudaErrorInitializationError|driver initialization failed|"
    r"CUDA_ERROR_NOT_INITIALIZED|CUDA initialized before forking"
)
_SAME_GPU = re.compile(
    r"^.*(?:Duplicate GPU detected|tensor not on device passed to init_process_group).*$", re.MULTILINE
)


class Kind(Enum):
    """What can be seen happening."""

    FORKED_CHILD = "CUDA in a forked child whose parent had asked for CUDA"
    VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES set after CUDA was asked for"
    GROUP = "a process group before the device was chosen"
    VALUE = "a CUDA value sent to another process"
    LOST = "a CUDA value that could not be received"
    CONTEXTS = "CUDA initialised in several processes"
    SAME_GPU = "a rank on the GPU of another"
    EXCEPTION = "an exception that nobody caught"


# What a finding of a rule says will be seen.
_CODES: dict[Kind, frozenset[str]] = {
    Kind.FORKED_CHILD: frozenset(
        {"CUD101", "CUD102", "CUD103", "CUD104", "CUD105", "CUD301", "CUD401", "CUD402", "CUD404"}
    ),
    Kind.VISIBLE_DEVICES: frozenset({"CUD202", "CUD203"}),
    Kind.GROUP: frozenset({"CUD501", "CUD502", "CUD503"}),
    Kind.SAME_GPU: frozenset({"CUD501", "CUD502", "CUD503"}),
    Kind.VALUE: frozenset({"CUD302"}),
    Kind.LOST: frozenset({"CUD302", "CUD304"}),
    Kind.CONTEXTS: frozenset({"CUD201", "CUD206"}),
}
# What is wrong wherever it is seen; the others cost, can fail, or are meant for children to come.
_WRONG = frozenset({Kind.FORKED_CHILD, Kind.LOST, Kind.SAME_GPU})


@dataclass(frozen=True, slots=True)
class Violation:
    """One of them: who, what it said, and the stacks of the parent's guilt, of the fork, and of the use."""

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

    def shows(self, code: str) -> bool:
        """Whether a finding of this rule can be confirmed by it."""
        return self.kind is Kind.EXCEPTION or code in _CODES[self.kind]


def violations(run: Run, journal: Journal) -> tuple[Violation, ...]:
    """Everything that was seen, each once."""
    forked = list(_forked(journal))
    # A process that reports the failure of its child says the same once more.
    read = [_told_again(one) if forked else one for one in _tracebacks(run)]
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
    for event in journal.of("lost"):
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
    parts = _TRACEBACK.split(run.stderr)[1:]
    skipped = False
    for index, part in enumerate(parts):
        if skipped:
            skipped = False
            continue
        stack, text = _read(part.splitlines())
        launch: Stack = ()
        if _CAUSED in part and index + 1 < len(parts):  # a worker's traceback, and that of who asked for its result
            launch, skipped = _read(parts[index + 1].splitlines())[0], True
        if stack:
            kind, told = _kind(text, part)
            yield Violation(kind, 0, told, stack, launch=launch)


def _kind(text: str, part: str) -> tuple[Kind, str]:
    """What an exception shows, and the line that says so; ``part`` is all that was printed of it."""
    if _INITIALISATION.search(text) is not None:
        return Kind.FORKED_CHILD, text
    same = _SAME_GPU.search(part)
    return (Kind.EXCEPTION, text) if same is None else (Kind.SAME_GPU, same[0].strip())


def _read(lines: Iterable[str]) -> tuple[Stack, str]:
    frames: list[tuple[str, int, str]] = []
    for line in lines:
        frame = _FRAME.match(line)
        if frame is not None:
            frames.append((frame["file"], int(frame["line"]), frame["name"] or ""))
        elif frames and not line.startswith((" ", "\t")) and _RAISED.match(line):
            return tuple(reversed(frames)), line
    return (), ""
