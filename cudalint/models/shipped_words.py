"""The vocabulary of the shipped models, kept beside them: who only asks whether a file matters need not parse models.

``words.txt`` is what ``written`` makes of the models' vocabulary (``python -m release.words`` from `tests/`); a test
compares them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache

from cudalint.models.vocabulary import Marks, Vocabulary

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "words.txt")
_MARKS = ("starts", "threads", "selects", "asks")
_WORDS = ("gpu", "packages", "processes", "applications")


@cache
def vocabulary() -> Vocabulary:
    """What ``load().vocabulary`` is without models of a user."""
    with open(FILE, encoding="utf-8") as stream:
        return read(stream.read())


def written(known: Vocabulary) -> str:
    """A vocabulary as text: a row for each word, so that changes of several people merge."""
    return "".join(f"{row}\n" for row in sorted(_rows(known)))


def read(text: str) -> Vocabulary:
    """The vocabulary that was written."""
    known = Vocabulary()
    for row in text.splitlines():
        kind, _, word = row.partition(" ")
        table, _, use = kind.partition(".")
        if table == "launchers":
            known.launchers.add(word)
        elif table in _WORDS:
            getattr(known, table).add(word.encode())
        else:
            _take(getattr(known, table), use, word.encode())
    return known


def _take(marks: Marks, use: str, word: bytes) -> None:
    if use == "together":
        marks.together.add(frozenset(word.split(b".")))
    else:
        getattr(marks, use).add(word)


def _rows(known: Vocabulary) -> Iterator[str]:
    yield from (f"launchers {word}" for word in known.launchers)
    for table in _WORDS:
        yield from (f"{table} {word.decode()}" for word in getattr(known, table))
    for table in _MARKS:
        marks: Marks = getattr(known, table)
        yield from (f"{table}.anywhere {word.decode()}" for word in marks.anywhere)
        yield from (f"{table}.used {word.decode()}" for word in marks.used)
        yield from (f"{table}.together {b'.'.join(sorted(group)).decode()}" for group in marks.together)
