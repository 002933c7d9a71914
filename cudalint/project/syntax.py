"""Whether a file is Python at all, asked of files that the analysis itself had no reason to parse."""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING

from cudalint.text.decode import Refusal
from cudalint.text.guard import refuse
from cudalint.text.quiet import quietly

if TYPE_CHECKING:
    from cudalint.ir.trouble import Trouble


def broken(text: str) -> Refusal | Trouble | None:
    """What is wrong with a text, or ``None`` where it is Python of any version; a refused one was not parsed.

    The parser of the running Python answers for nearly all files and is ten times faster; only what it rejects
    goes to the one that also reads newer syntax.
    """
    try:
        with quietly():
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _second_opinion(text)
    # Python 3.10 parses what newer ones call too deep, and what is said of a file must not depend on who asks.
    return refuse(text) if sys.version_info < (3, 11) else None


def _second_opinion(text: str) -> Refusal | Trouble | None:
    import libcst

    from cudalint.ir.trouble import trouble

    refusal = refuse(text)
    if refusal is not None:
        return refusal
    try:
        libcst.parse_module(text)
    except libcst.ParserSyntaxError as error:
        return trouble(text, error.message, error.raw_line, error.raw_column + 1)
    except RecursionError:
        return Refusal("the code is nested too deeply")
    return None
