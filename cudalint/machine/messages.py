"""What goes through the queues and pipes of a program, where all of it can be seen.

A process runs when it is started, and what its queue is given later is not there yet: what it takes is unknown then. So
an entry in which a process takes something is run twice, and the second time it takes what the first run saw put there.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TypeAlias

from cudalint.machine import operators, questions
from cudalint.machine.heap import Class, Closure, Dict, Instance, Scope, Sequence
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import JOINED, Const, Dev, Lib, Rank, Ref, Unknown, Value, only, unknown
from cudalint.structs import Frozen, Mutable, field, replace

# Of a channel through which more goes it is not said what: as any reader may find them, and in all.
MOST_MESSAGES, _MOST_NOTED = 8, 64
_DEEPEST = 4
# What is rebuilt of containers.
_KINDS = frozenset({"tuple", "list"})

_MESSAGE = "message"
# The number of a device of which each message has another, so that its reader has one of its own.
_OWN = Rank("each")

# A queue, or the end of a pipe that something comes out of: where it was made, and which end.
Channel: TypeAlias = Hashable


class Blank(Frozen):
    """A part of a message of which nothing is known."""


class Named(Frozen):
    """A function or a class, by the name that it has at the top of its module: so it is pickled."""

    module: str
    name: str


class Packed(Frozen):
    """A tuple, a list, a dict or an object that was sent: it has an address in no process.

    ``keys`` are those of a dict, or the names of an object's attributes, whose class is ``cls``.
    """

    kind: str
    keys: tuple[Hashable, ...]
    parts: tuple[tuple[Part, ...], ...]
    cls: Named | None = None


Part: TypeAlias = "Const | Dev | Lib | Blank | Named | Packed"


class Message(Frozen):
    """Something that goes through a channel; ``facts`` hold wherever it was put there."""

    part: Part
    facts: tuple[questions.Fact, ...]


Foretold: TypeAlias = Mapping[Channel, tuple[Message, ...]]


class Messages(Mutable):
    """What an entry puts into its channels and takes from them; ``foretold`` is what an earlier run of it put there.

    ``any_may_say``: what nobody knows may call a function that puts something somewhere. ``vague`` are the channels
    through which something goes that is not known; ``asked`` those that something is taken from.
    """

    foretold: Foretold = field(default_factory=dict)
    any_made: bool = False
    any_may_say: bool = False
    said: dict[Channel, dict[Part, tuple[questions.Fact, ...]]] = field(default_factory=dict)
    # What has been put there so far at one place in rounds of a loop that stand for more.
    _again: dict[tuple[Channel, Site], Part] = field(default_factory=dict)
    vague: set[Channel] = field(default_factory=set)
    asked: set[Channel] = field(default_factory=set)

    def for_run(self, foretold: Foretold) -> Messages:
        """The same, for an entry that goes on from there."""
        said = {channel: {**found} for channel, found in self.said.items()}
        return Messages(foretold, self.any_made, self.any_may_say, said, {**self._again}, {*self.vague}, {*self.asked})

    def say(self, channel: Channel, value: Value, state: State, again: Site | None) -> None:
        """Something is put into a channel; ``again`` is where, if that is done in more rounds of a loop than are run.

        Of these only what all have in common is known.
        """
        facts = tuple(fact for fact in state.facts if questions.is_of_the_run(fact[0]))
        for part in _parts(value, state, 0):
            if again is None:
                self._note(channel, part, facts)
                continue
            before = self._again.get((channel, again), part)
            self._again[channel, again] = common = _common(before, part)
            if before != common:
                self.said[channel].pop(before, None)
            self._note(channel, common, facts)

    def _note(self, channel: Channel, part: Part, facts: tuple[questions.Fact, ...]) -> None:
        said = self.said.setdefault(channel, {})
        known = said.get(part)
        said[part] = facts if known is None else tuple(fact for fact in known if fact in facts)
        if isinstance(part, Blank) or len(said) > _MOST_NOTED:
            self.vague.add(channel)

    def homes(self, channel: Channel) -> list[str]:
        """The modules of what comes out of a channel under a name."""
        parts = [message.part for message in self.foretold.get(channel, ())]
        return sorted({named.module for part in parts for named in _named_in(part)})

    def take(self, channel: Channel, state: State, sym: tuple[Hashable, ...], site: Site) -> list[tuple[State, Value]]:
        """What comes out of a channel at ``site``, each on a path of its own; empty where that is not known."""
        self.asked.add(channel)
        possible = [one for one in self.foretold.get(channel, ()) if _may_hold(one.facts, state)]
        states = [state.clone() for _ in possible[1:]]
        result: list[tuple[State, Value]] = []
        for i, (message, path) in enumerate(zip(possible, [state, *states], strict=False)):
            for question, answer in message.facts:
                path.assume(question, answer)
            path.learn(*_told(sym, i))
            result.append((path, _unpacked(message.part, path, sym, site)))
        return result

    @property
    def settled(self) -> Foretold:
        """What goes through the channels that something was taken from, of which all is known that is put there."""
        known = sorted((channel for channel in self.said if self._is_known(channel)), key=repr)
        given = {channel: _readable(self.said[channel]) for channel in known}
        return {channel: messages for channel, messages in given.items() if 0 < len(messages) <= MOST_MESSAGES}

    def _is_known(self, channel: Channel) -> bool:
        return channel in self.asked and channel not in self.vague and not self.any_may_say

    def agrees(self, foretold: Foretold) -> bool:
        """Whether nothing else was put into these channels."""
        return all(
            channel not in self.vague
            and all(any(_covers(one.part, part) for one in messages) for part in self.said.get(channel, ()))
            for channel, messages in foretold.items()
        )


def _told(sym: Hashable, message: int) -> questions.Fact:
    """Which message a path was given: those that were told something else stay apart from it."""
    return ("is", "==", Unknown(sym), Const((_MESSAGE, message))), True


def assumed(facts: Iterable[questions.Fact]) -> tuple[questions.Fact, ...]:
    """Facts without which message a path was given: each of them comes."""
    return tuple(fact for fact in facts if not _is_told(fact))


def _is_told(fact: questions.Fact) -> bool:
    match fact[0]:
        case ("is", "==", Unknown(), Const(value=(str(kind), int()))):
            return kind == _MESSAGE
    return False


def _may_hold(facts: tuple[questions.Fact, ...], state: State) -> bool:
    return all(state.fact(question) is not (not answer) for question, answer in facts)


def _parts(value: Value, state: State, depth: int) -> tuple[Part, ...]:
    """The alternatives of what is sent, without the process that it lies in."""
    found: dict[Part, None] = {}
    for atom in value:
        match atom:
            case Const() | Dev() | Lib():
                found[atom] = None
            case Ref() if depth < _DEEPEST:
                found[_packed(atom, state, depth)] = None
            case _:
                found[Blank()] = None
    return tuple(found) if found and JOINED not in value else (*found, Blank())


def _common(one: Part, other: Part) -> Part:
    """What two messages have in common, by their parts."""
    if one == other:
        return one
    match one, other:
        case Packed(), Packed() if (one.kind, one.keys, one.cls) == (other.kind, other.keys, other.cls):
            if len(one.parts) == len(other.parts):
                pairs = zip(one.parts, other.parts, strict=True)
                return replace(one, parts=tuple(a if a == b else _common_place(a, b) for a, b in pairs))
    bare = _without_number(one)
    return bare if bare == _without_number(other) else Blank()


def _common_place(one: tuple[Part, ...], other: tuple[Part, ...]) -> tuple[Part, ...]:
    return (_common(one[0], other[0]),) if len(one) == len(other) == 1 else (Blank(),)


def _without_number(part: Part) -> Part:
    """What is left of something where each message has a number of its own: of a device, or the text that names one,
    its kind."""
    if isinstance(part, Const) and isinstance(part.value, str):
        named = operators.parse_device(part.value)
        part = replace(named, text=True) if named is not None else part
    return replace(part, index=_OWN) if isinstance(part, Dev) and part.index is not None else Blank()


def _readable(said: Mapping[Part, tuple[questions.Fact, ...]]) -> tuple[Message, ...]:
    """The messages as any reader may find them; none where each reader takes a number that another does not."""
    own = _owned(tuple(said))
    found: dict[Part, tuple[questions.Fact, ...]] = {}
    for part, facts in said.items():
        bare = _without(part, own.get(_shape(part), frozenset()))
        known = found.get(bare, facts)
        found[bare] = tuple(fact for fact in known if fact in facts)
    return () if Blank() in found else tuple(Message(part, facts) for part, facts in found.items())


def _owned(messages: tuple[Part, ...]) -> dict[Hashable, frozenset[int]]:
    """By the shape of messages: in which of their places each has a number of its own."""
    numbered: dict[tuple[Hashable, int], set[tuple[Part, ...]]] = {}
    for part in messages:
        for i, place in enumerate(_places(part)):
            if any(map(_numbers, place)):
                numbered.setdefault((_shape(part), i), set()).add(place)
    own: dict[Hashable, set[int]] = {}
    for (shape, i), different in numbered.items():
        if len(different) > 1:
            own.setdefault(shape, set()).add(i)
    return {shape: frozenset(places) for shape, places in own.items()}


def _shape(part: Part) -> Hashable:
    return (part.kind, part.keys, part.cls, len(part.parts)) if isinstance(part, Packed) else None


def _places(part: Part) -> tuple[tuple[Part, ...], ...]:
    return part.parts if isinstance(part, Packed) else ((part,),)


def _without(part: Part, places: frozenset[int]) -> Part:
    """A message without what it has in these places."""
    if not places:
        return part
    if isinstance(part, Packed):
        parts = (_bare(one) if i in places else one for i, one in enumerate(part.parts))
        return replace(part, parts=tuple(parts))
    return _without_number(part) if _numbers(part) else part


def _bare(place: tuple[Part, ...]) -> tuple[Part, ...]:
    return tuple(dict.fromkeys(map(_without_number, place)))


def _covers(general: Part, part: Part) -> bool:
    """Whether a message is one of those that another stands for."""
    if isinstance(general, Blank) or general == part:
        return True
    if isinstance(general, Dev) and general.index == _OWN:
        return _without_number(part) == general
    if not isinstance(general, Packed) or not isinstance(part, Packed) or _shape(general) != _shape(part):
        return False
    pairs = zip(general.parts, part.parts, strict=True)
    return all(any(_covers(one, other) for one in given) for given, found in pairs for other in found)


def _numbers(part: Part) -> tuple[Hashable, ...]:
    """The numbers in a message: where others have other ones, each reader takes its own, as the number of its GPU."""
    match part:
        case Const(value=int() | float() as number) if not isinstance(number, bool):
            return (number,)
        case Const(value=str() as text) if any(map(str.isdigit, text)):
            return (text,)
        case Dev(index=index) if index is not None:
            return (index,)
        case Packed(parts=parts):
            return tuple(number for inner in parts for one in inner for number in _numbers(one))
    return ()


def _packed(ref: Ref, state: State, depth: int) -> Part:
    match state.get(ref):
        case Sequence(kind=kind, items=items, open=False) if items is not None and kind in _KINDS:
            return Packed(kind, (), tuple(_parts(item, state, depth + 1) for item in items))
        case Dict(items=named, exact=True, view=None):
            return Packed("dict", tuple(named), tuple(_parts(item, state, depth + 1) for item in named.values()))
        case Instance(cls=cls, attributes=attributes):
            named_cls = _packed(cls, state, depth)
            if isinstance(named_cls, Named):
                inner = tuple(_parts(value, state, depth + 1) for value in attributes.values())
                return Packed("object", tuple(attributes), inner, named_cls)
        case Closure(address=(str(module), str(name))) | Class(module=module, qualname=name) if "." not in name:
            return Named(module, name)
    return Blank()


def _unpacked(part: Part, state: State, sym: tuple[Hashable, ...], site: Site) -> Value:
    """What a process makes of a message that it received at ``site``."""
    match part:
        case Const() | Dev() | Lib():
            return (part,)
        case Blank():
            return unknown(*sym)
        case Named():
            return _found(part, state) or unknown(*sym)
    inner = [
        tuple(atom for one in parts for atom in _unpacked(one, state, (*sym, i), site))
        for i, parts in enumerate(part.parts)
    ]
    key = (_MESSAGE, *sym)
    if part.cls is not None:
        cls = only(_found(part.cls, state) or ())
        attributes = dict(zip(map(str, part.keys), inner, strict=True))
        return (state.new(key, Instance(cls, attributes, site)),) if isinstance(cls, Ref) else unknown(*sym)
    if part.kind == "dict":
        return (state.new(key, Dict(dict(zip(part.keys, inner, strict=True)))),)
    return (state.new(key, Sequence(part.kind, tuple(inner))),)


def _named_in(part: Part) -> Iterator[Named]:
    match part:
        case Named():
            yield part
        case Packed(parts=parts, cls=cls):
            if cls is not None:
                yield cls
            for one in (one for inner in parts for one in inner):
                yield from _named_in(one)


def _found(named: Named, state: State) -> Value | None:
    """What a name stands for at the top of its module."""
    scope = state.get(Ref(("module", named.module)))
    return scope.variables.get(named.name) if isinstance(scope, Scope) else None
