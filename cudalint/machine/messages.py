"""What a program sends through its channels: an outcome that takes a message which nobody sends does not come about.

A process that was started reads a queue before its parent has put anything there, so it is run with a message of which
nothing is known. When the entry has ended, all that was put there is known, if each message was.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from cudalint.machine.heap import Dict, Sequence
from cudalint.machine.questions import RECEIVED, Fact, answer_of, read
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Const, Ref, Unknown, Value

# The way from a message to a part of it: by positions and keys.
Way = tuple[Hashable, ...]
# The constants that each part of a message may be, as far as that is known.
Message = Mapping[Way, frozenset[Hashable]]
# What a queue within a process gives.
QUEUED = "queue"
# How deep messages are nested, and how many of one channel are remembered.
_DEEPEST = 3
MOST_MESSAGES = 32
# What a list or a dict in a message answers of itself: it is none of the constants that it is compared with.
_SOMETHING, _NOTHING = ("something",), ()


@dataclass(slots=True)
class Messages:
    """By where a channel was made: what was sent through it; None where anything may have been."""

    of: dict[Site, list[Message] | None] = field(default_factory=dict)
    # By where something is sent in rounds of a loop that stand for more: what all that were run have in common.
    _alike: dict[tuple[Site, Site], Message] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(1 if sent is None else len(sent) for sent in self.of.values())

    def copy(self) -> Messages:
        """The same, for an entry that goes on from there."""
        of = {channel: None if sent is None else [*sent] for channel, sent in self.of.items()}
        return Messages(of, {**self._alike})

    def opened(self, channel: Site) -> None:
        """A channel was made."""
        self.of.setdefault(channel, [])

    def sent(self, channel: Site, value: Value, state: State, repeats: Site | None) -> None:
        """Something was sent through a channel; ``repeats`` is where, if that is done in more rounds than are run."""
        message = dict(_parts(value, state, ()))
        if repeats is not None:
            before = self._alike.get((channel, repeats), message)
            message = {way: known for way, known in message.items() if before.get(way) == known}
            self._alike[channel, repeats] = message
        known = self.of.get(channel)
        if known is None or message in known:
            return
        if not message or len(known) == MOST_MESSAGES:
            self.of[channel] = None
        else:
            known.append(message)

    def left(self, channel: Site) -> None:
        """A channel was given to what nobody knows: that may send anything."""
        self.of[channel] = None

    def exclude(self, facts: Iterable[Fact]) -> bool:
        """Whether facts about something that was received hold for nothing that was sent."""
        asked: dict[Hashable, list[tuple[Site, Way, Fact]]] = {}
        for fact in facts:
            found = _received(read(fact[0])[0])
            if found is not None:
                message, channel, way = found
                asked.setdefault(message, []).append((channel, way, fact))
        return any(self._is_of_none(about) for about in asked.values())

    def _is_of_none(self, about: list[tuple[Site, Way, Fact]]) -> bool:
        sent = self.of.get(about[0][0])
        return bool(sent) and not any(all(_may_hold(one, way, fact) for _, way, fact in about) for one in sent or ())


def _parts(value: Value, state: State, way: Way) -> Iterator[tuple[Way, frozenset[Hashable]]]:
    """A message and its parts, those of which it is known what they are."""
    if all(isinstance(atom, Const) for atom in value):
        yield way, frozenset(atom.value for atom in value if isinstance(atom, Const))
        return
    found = state.get(value[0]) if len(value) == 1 and isinstance(value[0], Ref) else None
    match found:
        case Sequence(items=tuple(items), open=False, most=None):
            inside: Iterable[tuple[Hashable, Value]] = enumerate(items)
        case Dict(items=named, exact=True, element=()):
            inside = named.items()
        case _:
            return
    inside = list(inside)
    yield way, frozenset({_SOMETHING if inside else _NOTHING})
    for key, part in inside if len(way) < _DEEPEST else ():
        yield from _parts(part, state, (*way, key))


def _may_hold(message: Message, way: Way, fact: Fact) -> bool:
    """Whether a fact about a part of what was received may hold for this message."""
    for depth in range(len(way)):
        whole = message.get(way[:depth])
        if whole is not None and not whole & {_SOMETHING}:
            # A constant, or nothing, has no such part.
            return False
    known = message.get(way)
    asked, holds = read(fact[0])[1], fact[1]
    return known is None or any(answer_of(asked, constant) is not (not holds) for constant in known)


def _received(subject: Hashable) -> tuple[Hashable, Site, Way] | None:
    """The message that a question is about, by which channel it came, and about which part of it; None of all else."""
    way: list[Hashable] = []
    sym = subject.sym if isinstance(subject, Unknown) else None
    while True:
        match sym:
            case (str(kind), Site(), _, Site() as channel) if kind in (RECEIVED, QUEUED):
                return sym, channel, tuple(reversed(way))
            case (base, "[]", ("part", _, _, int(position))):
                way.append(position)
            case (base, "[]", (Const(value=key),)):
                way.append(key)
            case _:
                return None
        sym = base
