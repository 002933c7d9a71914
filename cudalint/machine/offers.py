"""Options that take one of few words and have a default, and which of the other words the program asks for.

A run goes by the default. What another word leads to is known when the program is run once more with that word, which
is worth it only where the word decides something.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cudalint.machine.enums import member_of
from cudalint.machine.heap import Dict, Sequence
from cudalint.machine.joining import TELLING
from cudalint.machine.state import State
from cudalint.machine.values import Const, Ref, Value, constant
from cudalint.structs import Frozen, Mutable, field

# An option with more words names one of many models or files, which are used alike.
MOST_WORDS = 8
# What goes wrong on a CPU goes wrong on a GPU.
_WITHOUT_GPU = "cpu"


class Offer(Frozen):
    """An option as a user spells it, what it is if nobody gives it, and the other words that it takes."""

    flag: str
    default: str
    others: tuple[str, ...]


class Offers(Mutable):
    """The options of an entry by their spelling, and with which words each word was compared since they were read."""

    made: dict[str, Offer] = field(default_factory=dict)
    _asked: dict[str, set[str]] = field(default_factory=dict)

    def add(self, flag: str, default: str, words: Iterable[object]) -> None:
        """Note an option that a user may set to one of these words."""
        others = [word for word in words if isinstance(word, str) and word != default]
        if flag.startswith("-") and others and len(others) < MOST_WORDS:
            self.made[flag] = Offer(flag, default, tuple(dict.fromkeys(others)))

    def compare(self, left: Value, right: Value, state: State) -> None:
        """Note that two values are compared, or one is looked for in the other."""
        self._ask(left, _words(right, state))
        self._ask(right, _words(left, state))

    def look_up(self, key: Value, found: Dict) -> None:
        """Note that something is looked up in a dict."""
        self._ask(key, _keys(found))

    def _ask(self, value: Value, words: Iterable[object]) -> None:
        word = _as_word(value)
        if isinstance(word, str):
            self._asked.setdefault(word, set()).update(other for other in words if isinstance(other, str))

    def deciding(self) -> Iterator[tuple[str, str]]:
        """Options and the words for which the program would do something else.

        Those that a library knows come first, and then those of options with few words: of many most name things that
        are used alike.
        """
        found = [(offer, word) for offer in self.made.values() for word in offer.others if word != _WITHOUT_GPU]
        for offer, word in sorted(found, key=lambda one: (one[1] not in TELLING, len(one[0].others))):
            asked = self._asked.get(offer.default, set())
            if word in TELLING or word in asked or offer.default in asked:
                yield offer.flag, word

    def copy(self) -> Offers:
        """The same, for an entry that goes on from there."""
        return Offers({**self.made}, {word: {*others} for word, others in self._asked.items()})


def _words(value: Value, state: State) -> Iterator[object]:
    for atom in value:
        found = state.get(atom) if isinstance(atom, Ref) else None
        match found:
            case Dict():
                yield from _keys(found)
            case Sequence(items=tuple(items)):
                yield from map(_as_word, items)
            case None:
                yield _as_word((atom,))


def _keys(found: Dict) -> Iterator[object]:
    return (_as_word((Const(key),)) for key in found.items)


def _as_word(value: Value) -> object:
    """A text, or the value of a member of an Enum, by which users name it."""
    member = member_of(value)
    return constant(value if member is None else member.value)
