"""What is written inside of f-strings: before Python 3.12 no quotes like theirs, no rows, backslashes or comments."""

from __future__ import annotations

import re
from collections.abc import Iterable

import libcst as cst

from cudalint.fixes.edits import Change
from cudalint.fixes.view import View
from cudalint.structs import Frozen, replace

_BEGIN = re.compile(r"\b[fF][rR]?[\"']|\b[rR][fF][\"']")
_OTHER_QUOTES = str.maketrans("\"'", "'\"")


class _Formatted(Frozen):
    """An f-string: where it stands, and by which quotes it ends."""

    start: int
    end: int
    quote: str


def has_formatted(text: str) -> bool:
    """Whether a text may hold an f-string with code in it."""
    return _BEGIN.search(text) is not None


def fitted(view: View, changes: Iterable[Change]) -> list[Change]:
    """Changes with other quotes where an f-string has theirs; ``ValueError`` where that is not enough."""
    known = view.once(_formatted)
    return [_fitted(change, [f for f in known if f.start < change.start < f.end]) for change in changes]


def _formatted(view: View) -> list[_Formatted]:
    nodes = view.each(view.tree, cst.FormattedString)
    return [_Formatted(view.start(node), view.end(node), node.end) for node in nodes]


def _fitted(change: Change, around: list[_Formatted]) -> Change:
    if not around or not change.content:
        return change
    if any(mark in change.content for mark in "\\#\r\n"):
        raise ValueError("an f-string holds one row of plain code")
    taken = {formatted.quote for formatted in around}
    for content in (change.content, change.content.translate(_OTHER_QUOTES)):
        if not any(quote in content for quote in taken):
            return replace(change, content=content)
    raise ValueError("all quotes are taken")
