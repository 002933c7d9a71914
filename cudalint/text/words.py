"""Words in bytes: names, keywords and the words of strings and comments, without a regular expression for each."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator

_OF_WORDS = frozenset((string.ascii_letters + string.digits + "_").encode())
_APART = bytes(c if c in _OF_WORDS else ord(" ") for c in range(256))
_IMPORT = re.compile(rb"\bimport\b")


def words(data: bytes) -> frozenset[bytes]:
    """All words of a text, each once."""
    return frozenset(data.translate(_APART).split())


def has_word(data: bytes, word: bytes) -> bool:
    """Whether a word stands in a text: of few words that is quicker than to look at all."""
    return any(True for _ in _places(data, word))


def is_used(data: bytes, word: bytes) -> bool:
    """Whether a word is called, imported in a row, or an attribute: prose and other names do not count."""
    return any(_is_use(data, start, start + len(word)) for start in _places(data, word))


def _places(data: bytes, word: bytes) -> Iterator[int]:
    start = data.find(word)
    while start >= 0:
        end = start + len(word)
        if _stands(data, start, end):
            yield start
        start = data.find(word, end)


def _stands(data: bytes, start: int, end: int) -> bool:
    """Whether this is a word, and not a part of one."""
    before = start > 0 and data[start - 1] in _OF_WORDS
    return not before and not (end < len(data) and data[end] in _OF_WORDS)


def _is_use(data: bytes, start: int, end: int) -> bool:
    if data[end : end + 1] == b"(" or data[start - 1 : start] == b".":
        return True
    return _IMPORT.search(data, data.rfind(b"\n", 0, start) + 1, start) is not None
