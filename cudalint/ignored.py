"""What a ``.gitignore`` leaves out, by the rules of git, in time that grows with names and patterns alone.

A star takes the first place that fits and gives nothing back: where what follows it fits later too, it fits there as
well as anywhere. So no pattern of a stranger costs more than a look. A slash within a set (``[a/b]``) parts names here.
"""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterator, Sequence
from operator import itemgetter

from cudalint.structs import Frozen
from cudalint.text.lines import split_rows

# No path is longer, so a longer pattern is no honest one.
_LONGEST = 4_096
_ANY = re.compile(r".+", re.DOTALL)
_STAR = "**"
_SPECIAL = re.compile(r"[*?\[\\]")
_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r"\ \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": r"\ -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\ \t-\r",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


class _FitsNothing(ValueError):
    """A pattern that git takes for nothing: a set that is not closed, or a class that is none."""


class _Row(Frozen):
    """One pattern: its names from the folder down, where None stands for any folders; and what it says."""

    names: tuple[re.Pattern[str] | None, ...]
    is_anchored: bool
    only_folders: bool
    ignores: bool
    # The only name that it fits, wherever that is.
    literal: str | None

    def fits(self, path: Sequence[str], is_folder: bool) -> bool:
        """Whether it names this very file or folder."""
        if self.only_folders and not is_folder:
            return False
        return _fits(self.names, path if self.is_anchored else path[-1:])


class Ignored:
    """The patterns of one file, which count from its own folder. Names are bytes to git: a ``?`` is one of them."""

    __slots__ = ("_literal", "_others")

    def __init__(self, data: bytes) -> None:
        texts = split_rows(data.removeprefix(codecs.BOM_UTF8).decode("latin-1"))
        self._literal: dict[str, list[tuple[int, _Row]]] = {}
        self._others: list[tuple[int, _Row]] = []
        for number, row in enumerate(row for text in texts for row in _read(text)):
            known = self._others if row.literal is None else self._literal.setdefault(row.literal, [])
            known.append((number, row))

    def verdict(self, path: str, is_folder: bool) -> bool | None:
        """Whether a path is ignored, or taken back, or nothing is said of it; those above it are not asked."""
        return self._last(_names(path), is_folder)

    def leaves_out(self, folder: str) -> bool:
        """Whether a folder, or one above it, is ignored."""
        names = _names(folder)
        return any(self._last(names[:depth], is_folder=True) for depth in range(1, len(names) + 1))

    def _last(self, path: Sequence[str], is_folder: bool) -> bool | None:
        known = (self._literal.get(path[-1], ()), self._others)
        fitting = (next((one for one in reversed(rows) if one[1].fits(path, is_folder)), None) for rows in known)
        last = max((one for one in fitting if one is not None), key=itemgetter(0), default=None)
        return None if last is None else last[1].ignores


def _names(path: str) -> list[str]:
    return os.fsencode(path).decode("latin-1").split("/")


def _read(text: str) -> Iterator[_Row]:
    while text.endswith(" ") and not text.endswith("\\ "):
        text = text[:-1]
    if not text or text.startswith("#") or len(text) > _LONGEST:
        return
    ignores = not text.startswith("!")
    pattern = text if ignores else text[1:]
    only_folders = pattern.endswith("/")
    pattern = pattern[:-1] if only_folders else pattern
    parts = pattern.removeprefix("/").split("/")
    if not pattern or "" in parts:
        return
    try:
        names = [None if part == _STAR else _compiled(part) for part in parts]
    except (_FitsNothing, re.error):
        return
    if names[-1] is None:
        # All that is in the folders, not these.
        names.append(_ANY)
    is_anchored = "/" in pattern
    literal = None if is_anchored or _SPECIAL.search(pattern) else pattern
    yield _Row(tuple(names), is_anchored, only_folders, ignores, literal)


def _fits(names: Sequence[re.Pattern[str] | None], path: Sequence[str]) -> bool:
    """Whether names fit a path from its beginning to its end."""
    at = here = 0
    again: tuple[int, int] | None = None
    while at < len(path):
        name = names[here] if here < len(names) else _NOTHING
        if name is None:
            again, here = (here + 1, at), here + 1
        elif name.fullmatch(path[at]):
            at, here = at + 1, here + 1
        elif again is not None:
            # Any folders take one more; those before them are not asked again.
            again = again[0], again[1] + 1
            here, at = again
        else:
            return False
    return all(name is None for name in names[here:])


_NOTHING = re.compile(r"(?!)")


def _compiled(pattern: str) -> re.Pattern[str]:
    between = [""]
    at = 0
    while at < len(pattern):
        text, at = _piece(pattern, at)
        if text is None:
            between.append("")
        else:
            between[-1] += text
    found = between[0]
    for number, text in enumerate(between[1:-1]):
        # A group that does not give back.
        found += f"(?=(?P<p{number}>.*?{text}))(?P=p{number})" if text else ""
    return re.compile(found + (".*" + between[-1] if len(between) > 1 else ""), re.DOTALL)


def _piece(pattern: str, at: int) -> tuple[str | None, int]:
    """What stands at a place of a pattern, as an expression (None for a star), and where it ends."""
    match pattern[at]:
        case "*":
            return None, at + 1
        case "?":
            return ".", at + 1
        case "[":
            return _set(pattern, at + 1)
        case "\\":
            if at + 1 == len(pattern):
                raise _FitsNothing
            return re.escape(pattern[at + 1]), at + 2
        case plain:
            return re.escape(plain), at + 1


def _set(pattern: str, at: int) -> tuple[str, int]:
    is_negated = pattern[at : at + 1] in ("!", "^")
    at += is_negated
    first, members = at, ""
    while at == first or pattern[at : at + 1] != "]":
        if pattern.startswith("[:", at):
            end = pattern.find(":]", at)
            if end < 0 or pattern[at + 2 : end] not in _CLASSES:
                raise _FitsNothing
            members, at = members + _CLASSES[pattern[at + 2 : end]], end + 2
            continue
        low, at = _member(pattern, at)
        if pattern[at : at + 1] == "-" and pattern[at + 1 : at + 2] not in ("", "]"):
            high, at = _member(pattern, at + 1)
            members += f"{re.escape(low)}-{re.escape(high)}" if low <= high else re.escape(low)
        else:
            members += re.escape(low)
    if not members:
        return "." if is_negated else _NOTHING.pattern, at + 1
    return f"[{'^' if is_negated else ''}{members}]", at + 1


def _member(pattern: str, at: int) -> tuple[str, int]:
    at += pattern[at : at + 1] == "\\"
    if at >= len(pattern):
        raise _FitsNothing
    return pattern[at], at + 1
