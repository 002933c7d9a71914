"""Files that a program makes where they are not there: who asks for them later may find what it made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cudalint.machine.paths import IS_THERE
from cudalint.machine.questions import Fact
from cudalint.machine.trace import Site

# A place that asked for a file which was not there and was written then, and the process that did so.
Made = tuple[Site, tuple[str, ...]]


def made(facts: Iterable[Fact], process: tuple[str, ...]) -> set[Made]:
    """A process writes a file: what it asked for before, and was not there, it makes by that."""
    return {(place, process) for place in _lacking(facts)}


def may_be_there(facts: Iterable[Fact], process: tuple[str, ...], known: set[Made]) -> bool:
    """Whether a path goes on as if a file lacked that the process may have been left by those that started it."""
    places = set(_lacking(facts)) if known else set()
    return any(place in places and maker == process[: len(maker)] and maker != process for place, maker in known)


def _lacking(facts: Iterable[Fact]) -> Iterator[Site]:
    """Where it was asked for files that are not there."""
    for question, answer in facts:
        match question:
            case ("call", Site() as place, _, _, str(path), *_) if path in IS_THERE and not answer:
                yield place
