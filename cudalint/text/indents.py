"""Indentation of tabs among blanks, which Python reads and the parser does not, written so that both do."""

from __future__ import annotations

import ast
import re
import tokenize

from cudalint.text.quiet import quietly

_ROW = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_INDENT = re.compile(r"[ \t\f]*\t[ \t\f]*")


def evened(text: str) -> str | None:
    """The text with a blank for each tab that rows begin with; None where nothing changes, or Python reads it neither.

    To Python a block is deeper than another only if it is so with tabs of eight blanks and of one. So with one blank
    for each tab all blocks are what they were, and everything stands where it stood.
    """
    rows = _ROW.findall(text)
    if not any(map(_INDENT.match, rows)):
        return None
    try:
        with quietly():
            ast.parse(text)
        inside = _within_strings(rows)
    except (SyntaxError, ValueError, RecursionError, MemoryError, tokenize.TokenError):
        return None
    return "".join(row if number in inside else _evened(row) for number, row in enumerate(rows, 1))


def _evened(row: str) -> str:
    match = _INDENT.match(row)
    return row if match is None else match[0].replace("\t", " ") + row[match.end() :]


def _within_strings(rows: list[str]) -> set[int]:
    """The rows that begin within a text of several rows."""
    tokens = tokenize.generate_tokens(iter([*rows, ""]).__next__)
    return {row for token in tokens for row in range(token.start[0] + 1, token.end[0] + 1) if token.string.strip()}
