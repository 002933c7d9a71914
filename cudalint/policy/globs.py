"""Patterns for paths, as in ``exclude``: a bare name matches anywhere, a path counts from the root."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import lru_cache

# ``**/`` at the beginning of a name also stands for no directory at all; a set that is empty or not closed is plain
# text.
_PIECE = re.compile(r"(?:^|(?<=/))\*\*/|\*+|\?|\[!?[^\]!^][^\]]*\]|.", re.DOTALL)
_FOLDERS = "**/"


class BadPattern(ValueError):
    """A pattern that can match nothing; the text says why."""


class Globs:
    """A set of patterns under one root; raises ``BadPattern``. ``*`` also crosses directories."""

    __slots__ = ("_names", "_paths")

    def __init__(self, patterns: Iterable[str], root: str) -> None:
        kept = tuple(_stripped(pattern) for pattern in patterns)
        self._names = _union(pattern for pattern in kept if "/" not in pattern)
        absolute = (os.path.join(root, pattern.removeprefix("./")) for pattern in kept)
        self._paths = _union(os.path.normpath(pattern) for pattern in absolute)

    def matches(self, path: str) -> bool:
        """Whether a pattern names this very file or directory."""
        return bool(self._names.match(os.path.basename(path)) or self._paths.match(path))

    def covers(self, path: str, root: str) -> bool:
        """Whether a pattern names ``path`` or a directory between ``root`` and it."""
        while True:
            if self.matches(path):
                return True
            parent = os.path.dirname(path)
            if path == root or parent == path:
                return False
            path = parent


def _stripped(pattern: str) -> str:
    if not pattern.strip():
        raise BadPattern("an empty pattern matches nothing")
    return pattern.rstrip("/") or "/"


def _union(patterns: Iterable[str]) -> re.Pattern[str]:
    translated = [f"(?:{_translate(pattern, index)})\\Z" for index, pattern in enumerate(patterns)]
    return re.compile("|".join(translated) or r"(?!)", re.DOTALL)


@lru_cache(1_000)  # each folder has the same defaults
def _translate(pattern: str, index: int) -> str:
    """A pattern as an expression that tries no star twice: the first place that fits is as good as any later one."""
    if "\0" in pattern:
        raise BadPattern(f"invalid pattern {pattern!r}: no name holds a null character")
    stars: list[str] = []
    between = [""]
    for piece in _PIECE.findall(pattern):
        if piece.startswith("*"):
            stars.append(r"(?:.*?/)??" if piece == _FOLDERS else ".*?")
            between.append("")
        else:
            between[-1] += "." if piece == "?" else _literal_or_set(piece)
    for text in between:
        try:
            re.compile(text)
        except re.error as error:
            raise BadPattern(f"invalid pattern {pattern!r}: {error.msg}") from None
    translated = between[0]
    for number, (star, text) in enumerate(zip(stars[:-1], between[1:-1], strict=True)):
        # What was found is taken as it is: a group that does not give back.
        name = f"p{index}_{number}"
        translated += f"(?=(?P<{name}>{star}{text}))(?P={name})"
    return translated + (stars[-1] + between[-1] if stars else "")


def _literal_or_set(piece: str) -> str:
    if len(piece) == 1:
        return re.escape(piece)
    negated = piece[1] == "!"
    members = piece[2 if negated else 1 : -1].replace("\\", r"\\").replace("[", r"\[")
    return f"[{'^' if negated else ''}{members}]"
