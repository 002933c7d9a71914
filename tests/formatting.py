"""Programs written otherwise: the same meaning in the layouts that people and tools produce."""

from __future__ import annotations

import io
import random
import re
import tokenize
from collections.abc import Callable

Layout = Callable[[str, random.Random], str]

_IDENTITY = "def kept(function):  # dekoriert für später\n    return function\n\n\n"


def carriage_returns(text: str, chance: random.Random) -> str:
    """Line ends of another system."""
    return text.replace("\n", "\r\n")


def tabs(text: str, chance: random.Random) -> str:
    """Indentation by tabs, outside strings."""
    rows = text.split("\n")
    inside = _rows_in_strings(text)
    for i, row in enumerate(rows, 1):
        if i not in inside:
            blanks = len(row) - len(row.lstrip(" "))
            rows[i - 1] = "\t" * (blanks // 4) + " " * (blanks % 4) + row[blanks:]
    return "\n".join(rows)


def form_feeds(text: str, chance: random.Random) -> str:
    """Pages between definitions."""
    return re.sub(r"\n\n\n(?=(?:def|class) )", "\n\n\f\n", text)


def comments_in_calls(text: str, chance: random.Random) -> str:
    """Some arguments end their row with a comment."""
    return _rewritten(
        text,
        lambda token, depth: (
            ",  # ä, β (kept)\n        "
            if depth and token.string == "," and token.line.count("#") == 0 and chance.random() < 0.5
            else None
        ),
    )


def continuations(text: str, chance: random.Random) -> str:
    """Some assignments go on in the next row."""
    return _rewritten(
        text, lambda token, depth: "= \\\n    " if not depth and token.string == "=" and chance.random() < 0.5 else None
    )


def semicolons(text: str, chance: random.Random) -> str:
    """Some statements share their row with another."""
    rows = text.split("\n")
    inside = _rows_in_strings(text)
    simple = re.compile(r"^( *)(\w[\w.\[\]]* (?:=) |\w[\w.]*\()")
    starts = {token.start[0] for token in _statement_starts(text)}
    for i, row in enumerate(rows, 1):
        if i in starts and i not in inside and simple.match(row) and chance.random() < 0.3:
            rows[i - 1] = re.sub(r"^( *)", r"\1_ = None; ", row, count=1)
    return "\n".join(rows)


def other_names(text: str, chance: random.Random) -> str:
    """Names outside ASCII."""
    return re.sub(r"\bmain\b(?=\()", "größe", text)


def decorators(text: str, chance: random.Random) -> str:
    """Functions of the module get a decorator that leaves them as they are."""
    at = re.search(r"^(?:@|def |class )", text, re.MULTILINE)
    if at is None:
        return text
    return text[: at.start()] + _IDENTITY + re.sub(r"^def ", "@kept\ndef ", text[at.start() :], flags=re.MULTILINE)


LAYOUTS: tuple[Layout, ...] = (
    carriage_returns,
    tabs,
    form_feeds,
    comments_in_calls,
    continuations,
    semicolons,
    other_names,
    decorators,
)


def _rewritten(text: str, replacement: Callable[[tokenize.TokenInfo, int], str | None]) -> str:
    rows = text.splitlines(keepends=True)
    changes: list[tuple[int, int, int, str]] = []
    depth = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.OP:
            continue
        depth += (token.string in "([{") - (token.string in ")]}")
        new = replacement(token, depth)
        if new is not None:
            changes.append((token.start[0] - 1, token.start[1], token.end[1], new))
    for row, start, end, new in reversed(changes):
        rest = rows[row][end:]
        rows[row] = rows[row][:start] + new + rest.lstrip(" ")
    return "".join(rows)


def _rows_in_strings(text: str) -> set[int]:
    """Rows that begin inside a string."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    strings = (token for token in tokens if token.type == tokenize.STRING)
    return {row for token in strings for row in range(token.start[0] + 1, token.end[0] + 1)}


def _statement_starts(text: str) -> list[tokenize.TokenInfo]:
    result: list[tokenize.TokenInfo] = []
    fresh = True
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
            fresh = True
        elif fresh and token.type not in (tokenize.NL, tokenize.COMMENT):
            result.append(token)
            fresh = False
    return result
