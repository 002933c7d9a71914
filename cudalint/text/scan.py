"""A small lexer: linear in the text, never failing, good enough to tell code from strings and comments.

It is no tokenizer. It exists because the guard has to look at a file before any parser may, also at
files that no tokenizer accepts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

# One character class and plain words: a group per kind would cost three times as much.
_LEXEME = re.compile(r"""["'\#\\\r\n()\[\]{},;.+\-*/%@&|^~<>!=]|\b(?:and|or|not|if|in|is|lambda|await)\b""")
_LINE_END = re.compile(r"[\r\n]")
_PREFIX = re.compile(r"(?<!\w)[rbuft]{1,2}\Z", re.IGNORECASE)
# Where a string of each kind ends; an escape is stepped over, a plain string also ends with its line.
_ENDS = {
    '"""': re.compile(r'\\[\s\S]|"""'),
    "'''": re.compile(r"\\[\s\S]|'''"),
    '"': re.compile(r'\\(?:\r\n|[\s\S])|"|(?=[\r\n])'),
    "'": re.compile(r"\\(?:\r\n|[\s\S])|'|(?=[\r\n])"),
}


class Kind(Enum):
    """What a lexeme is."""

    STRING = "string"
    COMMENT = "comment"
    CONTINUATION = "continuation"
    NEWLINE = "newline"
    OPENER = "opener"
    CLOSER = "closer"
    SEPARATOR = "separator"
    OPERATOR = "operator"


_KINDS = {
    **dict.fromkeys("\"'", Kind.STRING),
    "#": Kind.COMMENT,
    "\\": Kind.CONTINUATION,
    **dict.fromkeys("\r\n", Kind.NEWLINE),
    **dict.fromkeys("([{", Kind.OPENER),
    **dict.fromkeys(")]}", Kind.CLOSER),
    **dict.fromkeys(",;", Kind.SEPARATOR),
}


class Lexeme(NamedTuple):
    """A piece of the text, ``text[start:end]``; ``formatted`` marks strings that hold expressions."""

    kind: Kind
    start: int
    end: int
    formatted: bool = False


def lexemes(text: str) -> Iterator[Lexeme]:
    """The pieces of ``text`` that shape it, in order; names, numbers and blanks are left out."""
    find = _LEXEME.search
    position = 0
    while (match := find(text, position)) is not None:
        start, position = match.span()
        kind = _KINDS.get(text[start], Kind.OPERATOR)
        if kind is Kind.STRING:
            position = _string_end(text, start)
            yield Lexeme(kind, start, position, _is_formatted(text, start))
            continue
        if kind is Kind.COMMENT:
            end = _LINE_END.search(text, position)
            position = len(text) if end is None else end.start()
        elif kind is Kind.CONTINUATION:
            position += 2 if text.startswith("\r\n", position) else text.startswith(("\r", "\n"), position)
        elif kind is Kind.NEWLINE and text.startswith("\r\n", start):
            position += 1
        yield Lexeme(kind, start, position)


def _is_formatted(text: str, start: int) -> bool:
    """Whether the string at ``start`` is an f-string or a t-string."""
    prefix = _PREFIX.search(text[max(0, start - 3) : start])
    return prefix is not None and not set("fFtT").isdisjoint(prefix.group())


def _string_end(text: str, start: int) -> int:
    quote = text[start : start + 3]
    if quote not in ('"""', "'''"):
        quote = text[start]
    position = start + len(quote)
    find = _ENDS[quote].search
    while (match := find(text, position)) is not None:
        position = match.end()
        if not match.group().startswith("\\"):
            return position
    return len(text)
