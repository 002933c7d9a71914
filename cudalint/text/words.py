"""Words in bytes. Most files hold none of those that are looked for, which is told without a regular expression."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_IMPORT = re.compile(rb"\bimport\b")


class Words:
    """Some words, each of which is looked for as a whole."""

    __slots__ = ("_patterns",)

    def __init__(self, words: Iterable[bytes]) -> None:
        # The word comes first in its pattern: the search for a literal beginning is much faster than for a boundary.
        self._patterns = [(w, re.compile(re.escape(w) + rb"\b(?<!\w" + re.escape(w) + rb")")) for w in words]

    def stand_in(self, data: bytes) -> bool:
        """Whether one of them stands anywhere."""
        return any(word in data and pattern.search(data) is not None for word, pattern in self._patterns)

    def are_used_in(self, data: bytes) -> bool:
        """Whether one of them is called, imported in a row, or an attribute: prose and other names do not count."""
        return any(_is_used(data, found) for found in self._found(data))

    def _found(self, data: bytes) -> Iterator[re.Match[bytes]]:
        for word, pattern in self._patterns:
            if word in data:
                yield from pattern.finditer(data)


def _is_used(data: bytes, found: re.Match[bytes]) -> bool:
    start, end = found.span()
    if data[end : end + 1] == b"(" or data[start - 1 : start] == b".":
        return True
    return _IMPORT.search(data, data.rfind(b"\n", 0, start) + 1, start) is not None
