"""Where a text stops being Python: the place and the words of Python's own parser, which people know."""

from __future__ import annotations

import ast
import re

from cudalint.structs import Frozen
from cudalint.text.quiet import quietly

# Beside the place itself.
_DETECTED = re.compile(r" \(detected at line \d+\)$")


class Trouble(Frozen):
    """What the parser does not accept, on one line, and where: row and column, both 1-based."""

    reason: str
    row: int
    column: int


def trouble(text: str, message: str, row: int, column: int) -> Trouble:
    """The trouble with a text that the parser of this package rejects with ``message`` at a place.

    Where the running Python reads the text, or says no place, those stand.
    """
    try:
        with quietly():
            ast.parse(text)
    except SyntaxError as error:
        if error.lineno:
            return Trouble(_line(error.msg), error.lineno, max(1, error.offset or 1))
    except (ValueError, RecursionError, MemoryError):
        pass
    return Trouble(_line(message), max(1, row), max(1, column))


def _line(message: str) -> str:
    first = next(iter(message.strip().splitlines()), "")
    return _DETECTED.sub("", first).rstrip(".") or "invalid syntax"
