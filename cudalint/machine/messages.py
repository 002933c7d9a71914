"""What a program sends through its channels: an outcome that takes a message which nobody sends does not come about.

A process that was started reads a queue before its parent has put anything there, so it is run with a message of which
nothing is known. When the entry has ended, all that was put there is known, if each message was.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from cudalint.machine.heap import Dict, Instance, Sequence
from cudalint.machine.questions import RECEIVED, Fact, answer_of, read
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Atom, Bound, Const, Lib, Member, Ref, Unknown, Value

# The way from a message to a part of it: by positions and keys.
Way = tuple[Hashable, ...]
# The constants that each part of a message may be, as far as that is known.
Message = Mapping[Way, frozenset[Hashable]]
# Where a channel was made, of a pipe with the number of the end at which something comes out.
Channel = Site | tuple[Site, int]
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

    of: dict[Channel, list[Message] | None] = field(default_factory=dict)
    # By where a process takes something from a pipe: at which ends.
    _ends: dict[Hashable, set[Channel]] = field(default_factory=dict)
    # By where something is sent in rounds of a loop that stand for more: what all that were run have in common.
    _alike: dict[tuple[Channel, Site], Message] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(1 if sent is None else len(sent) for sent in self.of.values())

    def copy(self) -> Messages:
        """The same, for an entry that goes on from there."""
        of = {channel: None if sent is None else [*sent] for channel, sent in self.of.items()}
        return Messages(of, {taken: {*ends} for taken, ends in self._ends.items()}, {**self._alike})

    def opened(self, channel: Channel) -> None:
        """A channel was made."""
        self.of.setdefault(channel, [])

    def sent(self, channel: Channel, value: Value, state: State, repeats: Site | None) -> None:
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

    def taken(self, message: Hashable, channel: Channel) -> None:
        """Something is taken from one end of a pipe, which goes by the name of ``message`` from then on."""
        self._ends.setdefault(message, set()).add(channel)

    def left(self, made: Site) -> None:
        """A channel was given to what nobody knows: that may send anything."""
        for channel in (made, (made, 0), (made, 1)):
            if channel in self.of:
                self.of[channel] = None

    def has(self, made: Site) -> bool:
        """Whether a channel was made there."""
        return made in self.of or (made, 0) in self.of

    def name(self, part: Atom) -> bool:
        """Whether something is, or lies in, what came through a channel of which all is known so far."""
        found = _received(part)
        return found is not None and self._sent_as(found[0], found[1]) is not None

    def _sent_as(self, message: Hashable, made: Site) -> list[Message] | None:
        """All that something may be which was taken from a channel."""
        sent = [self.of.get(channel) for channel in self._ends.get(message, {made})]
        return None if None in sent else [one for each in sent for one in each or ()]

    def exclude(self, facts: Iterable[Fact]) -> bool:
        """Whether facts about something that was received hold for nothing that was sent."""
        asked: dict[Hashable, list[tuple[Site, Way, Fact]]] = {}
        for fact in facts:
            found = _received(_subject(fact[0]))
            if found is not None:
                message, channel, way = found
                asked.setdefault(message, []).append((channel, way, fact))
        return any(self._is_of_none(message, about) for message, about in asked.items())

    def _is_of_none(self, message: Hashable, about: list[tuple[Site, Way, Fact]]) -> bool:
        sent = self._sent_as(message, about[0][0])
        return bool(sent) and not any(all(_may_hold(one, way, fact) for _, way, fact in about) for one in sent or ())


def _parts(value: Value, state: State, way: Way) -> Iterator[tuple[Way, frozenset[Hashable]]]:
    """A message and its parts, those of which it is known what they are."""
    if value and all(isinstance(atom, Const | Member) for atom in value):
        yield way, frozenset(atom.value if isinstance(atom, Const) else atom for atom in value)
        return
    found = state.get(value[0]) if len(value) == 1 and isinstance(value[0], Ref) else None
    match found:
        case Sequence(items=tuple(items), open=False, most=None):
            inside: Iterable[tuple[Hashable, Value]] = enumerate(items)
        case Dict(items=named, exact=True, element=()):
            inside = named.items()
        case Instance(attributes=attributes):
            # Whether it is true, and what it is equal to, its class may say.
            inside = attributes.items()
        case _:
            return
    inside = list(inside)
    if not isinstance(found, Instance):
        yield way, frozenset({_SOMETHING if inside else _NOTHING})
    for key, part in inside if len(way) < _DEEPEST else ():
        yield from _parts(part, state, (*way, key))


def _subject(question: Hashable) -> Hashable:
    """What a question is about, also where it compares that with a member of an Enum."""
    match question:
        case ("is", "is" | "==", subject, Member()):
            return subject
    return read(question)[0]


def _may_hold(message: Message, way: Way, fact: Fact) -> bool:
    """Whether a fact about a part of what was received may hold for this message."""
    for depth in range(len(way)):
        whole = message.get(way[:depth])
        if whole is not None and not whole & {_SOMETHING}:
            # A constant, or nothing, has no such part.
            return False
    known = message.get(way)
    match fact[0]:
        case ("is", "is" | "==", _, Member() as member):
            return known is None or any((constant == member) is fact[1] for constant in known)
    asked, holds = read(fact[0])[1], fact[1]
    return known is None or any(answer_of(asked, constant) is not (not holds) for constant in known)


def _received(subject: Hashable) -> tuple[Hashable, Site, Way] | None:
    """The message that a question is about, by which channel it came, and about which part of it; None of all else."""
    way: list[Hashable] = []
    sym = subject.sym if isinstance(subject, Unknown) else ("value", subject)
    while True:
        match sym:
            case ("value", Bound(function=Lib(path=path), receiver=Ref(address=(("lock", Site() as made), _, _)))):
                return (sym, made, ()) if path.endswith(".value") and not way else None
            case (str(kind), Site(), _, Site() as channel) if kind in (RECEIVED, QUEUED):
                return sym, channel, tuple(reversed(way))
            case (base, "[]", ("part", _, _, int(position))):
                way.append(position)
            case (base, "[]", (Const(value=key),)) | (base, ".", str(key)):
                way.append(key)
            case _:
                return None
        sym = base
