"""Files that a program makes where they are not there: who asks for them later may find what it made."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from cudalint.machine.paths import Located
from cudalint.machine.questions import Fact
from cudalint.machine.trace import Site
from cudalint.machine.values import Unknown

# Files that were asked for, were not there and were written then, by how their paths are made; how often files had
# changed when they were asked for; and the process that did so.
Made = tuple[Hashable, int, tuple[str, ...]]
# What asks whether a file is there.
_IS_THERE = frozenset({"exists", "isfile", "is_file", "lexists"})
# How deep the parts of a path are looked into for the places that made them.
_DEEPEST = 8


def made(facts: Iterable[Fact], process: tuple[str, ...]) -> set[Made]:
    """A process writes a file: what it asked for before, and was not there, it makes by that."""
    return {(file, changes, process) for file, changes in _lacking(facts)}


def may_be_there(facts: Iterable[Fact], process: tuple[str, ...], known: set[Made]) -> bool:
    """Whether a path goes on as if a file lacked that the process may have been left by those that started it.

    It has to be asked for once more: what follows where it lacked at first is not undone by making it.
    """
    lacking = set(_lacking(facts)) if known else set()
    return any(
        file == one and changes > before and maker == process[: len(maker)] and maker != process
        for file, before, maker in known
        for one, changes in lacking
    )


def _lacking(facts: Iterable[Fact]) -> Iterator[tuple[Hashable, int]]:
    """The files that are asked for and not there: those of one kind are as one, whatever their numbers are."""
    for question, answer in facts:
        match question:
            case ("asks", str(name), Located(module=module, parts=parts), int(n)) if name in _IS_THERE and not answer:
                yield (module, parts[:-1]), n
            case ("asks", str(name), Unknown(sym=sym), int(n)) if name in _IS_THERE and not answer:
                yield frozenset(_places(sym, 0)), n


def _places(sym: Hashable, depth: int) -> Iterator[Site]:
    """Where the parts of a path are made."""
    match sym:
        case Site():
            yield sym
        case Unknown(sym=inner) if depth < _DEEPEST:
            yield from _places(inner, depth + 1)
        case tuple() if depth < _DEEPEST:
            # Where a number is written as a text there is nothing of the kind where the number is known.
            for part in sym[2:] if sym[:1] == ("format",) else sym:
                yield from _places(part, depth + 1)
