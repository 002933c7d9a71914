"""What the probe noted of a program's processes: who made whom, who initialised CUDA, and who failed to."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from cudalint.structs import Frozen, field

# (file, line, function), the innermost first.
Stack: TypeAlias = tuple[tuple[str, int, str], ...]


class Event(Frozen):
    """One note: which process did what, and where."""

    kind: str
    pid: int
    values: tuple[Any, ...]
    stack: Stack = ()


class Fork(Frozen):
    """A fork as its parent saw it; ``guilty`` when the parent had asked for CUDA before."""

    parent: int
    guilty: bool
    stack: Stack
    position: int


class Journal(Frozen):
    """All notes of a run, in their order; ``became``: what replaced its first process, where no probe is there."""

    events: tuple[Event, ...] = ()
    entered: frozenset[int] = frozenset()
    forks: Mapping[str, Fork] = field(default_factory=dict)
    made_by: Mapping[int, str] = field(default_factory=dict)
    became: str = ""

    def of(self, *kinds: str) -> Iterator[Event]:
        """The notes of some kinds."""
        return (event for event in self.events if event.kind in kinds)

    def guilt(self, number: str) -> Event | None:
        """What made the parent of a fork guilty: its own first use of CUDA, or that of who forked it."""
        while number in self.forks:
            fork = self.forks[number]
            for event in self.events[: fork.position]:
                if event.pid == fork.parent and event.kind in ("init", "query", "worked"):
                    return event
            number = self.made_by.get(fork.parent, "")
        return None


def read(lines: Sequence[str]) -> Journal:
    """The notes of the probe. A line that was cut short by a kill is left out."""
    events = tuple(_events(lines))
    return Journal(
        events=events,
        entered=frozenset(_entered(lines)),
        became=_became(lines),
        forks={
            event.values[0]: Fork(event.pid, bool(event.values[1]), event.stack, position)
            for position, event in enumerate(events)
            if event.kind == "fork"
        },
        made_by={event.pid: event.values[0] for event in events if event.kind == "born"},
    )


def _events(lines: Iterable[str]) -> Iterator[Event]:
    for line in lines:
        if not line.startswith("event "):
            continue
        try:
            kind, pid, *values = ast.literal_eval(line.removeprefix("event "))
        except (ValueError, SyntaxError):
            continue
        stack: Stack = tuple(values.pop()) if values and isinstance(values[-1], list) else ()
        yield Event(kind, pid, tuple(values), stack)


def _became(lines: Iterable[str]) -> str:
    first, found = "", ""
    for line in lines:
        what, _, rest = line.partition(" ")
        pid, _, path = rest.partition(" ")
        first = first or (pid if what == "python" else "")
        if pid == first and what in ("python", "stayed", "replaced"):
            found = path
    return found


def _entered(lines: Iterable[str]) -> Iterator[int]:
    for line in lines:
        what, _, rest = line.partition(" ")
        if what in ("python", "forked") and rest.isdecimal():
            yield int(rest)
