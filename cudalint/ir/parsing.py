"""Texts to libcst trees, each parsed once while it is looked at."""

from __future__ import annotations

import contextlib
from functools import lru_cache

import libcst as cst

from cudalint.ir.abridged import abridged
from cudalint.text.indents import evened

# A function is parsed when it is entered, where a finding stands in it, and for each repair that is tried out.
MOST_KEPT = 64
_LONG = 3_000


def is_long(text: str) -> bool:
    """Whether the tree of a text is too large to be kept."""
    return len(text) > _LONG


def parse(text: str) -> cst.Module:
    """The libcst tree of a text; raises ``libcst.ParserSyntaxError``. A short one that was parsed lately is kept."""
    return _parsed(text) if is_long(text) else _kept(text)


def _parsed(text: str) -> cst.Module:
    shorter = abridged(text)
    if shorter != text:
        with contextlib.suppress(cst.ParserSyntaxError):
            return cst.parse_module(shorter)
    try:
        return cst.parse_module(text)
    except cst.ParserSyntaxError:
        other = evened(text)
        if other is None:
            raise
        return cst.parse_module(other)


_kept = lru_cache(MOST_KEPT)(_parsed)
