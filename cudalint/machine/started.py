"""What the machine notes of processes for a map of them: how each was started, what crosses, what it does to CUDA."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from cudalint.machine.trace import Site, TraceStep
from cudalint.structs import Frozen, Mutable, replace


class ProcessKey(NamedTuple):
    """What tells the processes of an entry apart: the launches that led to each, and its own start method."""

    identity: tuple[str, ...]
    method: str


class Deed(Enum):
    """What a process does that a map shows."""

    DRIVER = "driver"
    CONTEXT = "context"
    DEVICE = "device"
    GROUP = "group"
    METHOD = "method"
    THREAD = "thread"


class Done(Frozen):
    """A deed of a process, by the step that did it.

    ``detail`` names what a step leaves open: a device, a backend. ``in_thread``: another thread than the first did it.
    """

    deed: Deed
    step: TraceStep
    detail: str = ""
    in_thread: bool = False


class Crossing(Frozen):
    """A value that reaches a worker.

    ``name`` is the parameter or variable that holds it, empty where nothing names it; ``what`` describes it in words.
    ``device`` is where it lies if that is a GPU, ``origin`` the step that put it there. ``pickled``: it is sent;
    otherwise it is there because its memory is.
    """

    name: str
    what: str
    device: str
    pickled: bool
    origin: TraceStep | None = None


class Work(Frozen):
    """What a worker runs: a call of a function, or an object, and its definition where the program has one."""

    name: str
    site: Site | None
    prepares: bool = False


class Started(Frozen):
    """One launch: who starts whom.

    ``method`` is the start method: ``fork``, ``spawn``, ``forkserver``, ``loky``; ``exec`` starts another program.
    ``certain``: it is the only one on its path; ``condition`` says when it is used, ``explicit`` that the program names
    it. ``at`` starts the workers, ``made`` their launcher; ``anchors`` are the places that outcomes of the workers
    name. ``settled`` is where the program chose the start method. ``count`` is the number of workers where the code
    shows it, ``many`` whether there may be more than one; ``adds_up``: each task may bring one more; ``again``: it is
    made again with other values. ``before`` is the first use of CUDA by the parent that the launch comes after.
    ``environment`` are the variables that the program or the launcher set, with their values where these are known.
    """

    parent: ProcessKey
    child: ProcessKey
    label: str
    launcher: str
    family: str
    library: str
    certain: bool
    explicit: bool
    condition: str | None
    at: Site
    made: Site
    anchors: frozenset[Site]
    settled: Site | None
    count: int | None
    many: bool
    adds_up: bool
    reused: bool
    daemon: bool
    runs: tuple[Work, ...]
    crossings: tuple[Crossing, ...]
    environment: tuple[tuple[str, str | None], ...]
    before: TraceStep | None
    again: bool = False

    @property
    def method(self) -> str:
        """The start method."""
        return self.child.method

    @property
    def workers(self) -> str:
        """How many processes it starts, in words."""
        return workers(self.count, self.many or self.adds_up, self.again)

    def joined(self, other: Started) -> Started:
        """The same launch as it was seen on two paths."""
        return replace(
            self,
            certain=self.certain and other.certain,
            count=self.count if self.count == other.count else None,
            many=self.many or other.many,
            again=self.again or other.again or self.crossings != other.crossings,
            anchors=self.anchors | other.anchors,
            runs=tuple(dict.fromkeys((*self.runs, *other.runs))),
            crossings=tuple(dict.fromkeys((*self.crossings, *other.crossings))),
            environment=tuple(sorted({**dict(other.environment), **dict(self.environment)}.items())),
            before=self.before or other.before,
        )


def workers(count: int | None, several: bool, again: bool) -> str:
    """How many processes a launch starts, in words; ``again``: it is made again with other values."""
    if count is not None:
        return "1 process" if count == 1 else f"{count} processes"
    if several:
        return "several processes"
    return "a process each time" if again else "a process"


class ProcessRecord(Mutable):
    """The processes of one entry: the launches by parent and child, and the deeds of each process, in their order."""

    launches: dict[tuple[ProcessKey, ProcessKey, Site], Started]
    deeds: dict[ProcessKey, dict[Done, None]]

    def launched(self, started: Started) -> None:
        """Add a launch, or what another path shows of it."""
        key = (started.parent, started.child, started.at)
        known = self.launches.get(key)
        self.launches[key] = started if known is None else known.joined(started)
