"""Which item of a dict an unknown key leads to: a path for each, where they are other functions, objects or flags.

What is looked up under the same key twice is looked up under one: ``KINDS[name].run(KINDS[name].device)``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from cudalint.machine import questions
from cudalint.machine.frame import Results
from cudalint.machine.heap import Dict
from cudalint.machine.joining import stands_for_something
from cudalint.machine.operators import item
from cudalint.machine.state import State
from cudalint.machine.values import (
    JOINED,
    MOST_ALTERNATIVES,
    Atom,
    Const,
    Member,
    Unknown,
    Value,
    only,
    unknown,
)


def picked(found: Dict, key: Value, state: State, default: Value | None = None) -> Results:
    """The items that a key may lead to, each with the path on which it does; none of them leads to the default.

    Without a default the key leads to one of them. A dict of many is one thing of which not much is known.
    """
    subject = questions.identity(key)
    if subject is None or not is_choice(found, key):
        return [(state, item(found, key))]
    results: Results = []
    for i, (name, value) in enumerate(found.items.items()):
        question = _asks(subject, name)
        answer = state.fact(question)
        if answer is None and default is None and i == len(found.items) - 1:
            state.learn(question, True)
            answer = True
        if answer:
            return [*results, (state, value)]
        if answer is None:
            other = state.split(question)
            results.append((state, value))
            state = other
    return results if default is None else [*results, (state, default)]


def questions_of(found: Dict, key: Value) -> Iterator[Hashable]:
    """The questions whether an unknown key leads to each of the items of a dict."""
    subject = questions.identity(key)
    if subject is not None:
        yield from (_asks(subject, name) for name in found.items)


def is_choice(found: Dict, key: Value) -> bool:
    """Whether a key is unknown, and a dict known whole that holds a few functions, objects or flags that differ."""
    if not any(isinstance(atom, Unknown) for atom in key) or questions.identity(key) is None or JOINED in key:
        return False
    if found.element or not found.exact or not 2 <= len(found.items) <= MOST_ALTERNATIVES:
        return False
    if not all(isinstance(name, str | int | Member | None) for name in found.items):
        return False
    told = {_tells(value) for value in found.items.values()}
    return len(told - {None}) > 1


def _tells(value: Value) -> Hashable:
    """What tells a value from others: itself, or of a number whether it is none."""
    if any(map(stands_for_something, value)):
        return value
    match only(value):
        case Const(value=bool() | int() | None as number):
            return bool(number)
    return None


def _asks(key: Atom | Value, name: Hashable) -> Hashable:
    """The question whether a key is this one."""
    if isinstance(name, bool) and isinstance(key, Unknown) and questions.is_answer((key,)):
        return key.sym if name else ("not", key.sym)
    asked = only(questions.comparison("==", key, Const(name)))
    return asked.sym if isinstance(asked, Unknown) else unknown(name)
