"""Whether a file is Python at all, asked of files that the analysis itself had no reason to parse."""

from __future__ import annotations

import ast
import warnings

from cudalint.text.guard import refuse


def broken(text: str) -> str | None:
    """What is wrong with a text, or ``None`` where it is Python of any version.

    The parser of the running Python answers for nearly all files and is ten times faster; only what it rejects
    goes to the one that also reads newer syntax.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _second_opinion(text)
    return None


def _second_opinion(text: str) -> str | None:
    import libcst

    refusal = refuse(text, len(text))
    if refusal is not None:
        return refusal.reason
    try:
        libcst.parse_module(text)
    except libcst.ParserSyntaxError as error:
        return f"{_first_line(error.message)} at line {error.raw_line}, column {error.raw_column + 1}"
    except RecursionError:
        return "the code is nested too deeply"
    return None


def _first_line(message: str) -> str:
    return message.strip().splitlines()[0].rstrip(".") if message.strip() else "syntax error"
