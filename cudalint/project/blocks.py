"""Which lines of a file run when it is imported, by its bytes and their indentation."""

from __future__ import annotations

import re
from collections.abc import Iterator

_FUNCTION = re.compile(rb"^([ \t]*)(?:async[ \t]+)?def[ \t]+\w+", re.MULTILINE)
_OVER_LINES = rb"\"\"\"(?:[^\"\\]|\\.|\"(?!\"\"))*\"\"\"|'''(?:[^'\\]|\\.|'(?!''))*'''"
_TEXT = re.compile(_OVER_LINES, re.DOTALL)
_LEXEME = re.compile(rb"#[^\n]*|" + _OVER_LINES + rb"|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'", re.DOTALL)
_BLOCK = re.compile(
    rb"(?P<indent>[ \t]*)(?:(?P<function>(?:async[ \t]+)?def\b)|if[ \t]+(?P<types>(?:\w+\.)?TYPE_CHECKING\b))?"
)


_BRACKET = re.compile(rb"\"[^\"\n]*\"|'[^'\n]*'|#[^\n]*|(?P<opens>[(\[{])|(?P<closes>[)\]}])")


def runs_at_once(data: bytes, start: int, indent: int) -> bool | None:
    """Whether an indented line is run when its file is imported; None where it is for type checkers."""
    end = start
    while indent and end > 0:
        begin = data.rfind(b"\n", 0, end - 1) + 1
        if data[begin : begin + indent].isspace() and b"\n" not in data[begin : begin + indent]:
            # It stands as deep, so it begins no block around: most lines do.
            end = begin
            continue
        line = data[begin : end - 1].rstrip()
        end = begin
        # A bracket that closes what a row above began, as that of a ``def`` over several rows, begins no block.
        if not line or line.lstrip().startswith((b"#", b")", b"]", b"}")):
            continue
        block = _BLOCK.match(line)
        if block is None or len(block["indent"]) >= indent:
            continue
        indent = len(block["indent"])
        if block["function"]:
            if not _is_in_header(data, begin, start):
                return False
            # A default of a parameter, or a note of its type: it runs where the function is defined.
            continue
        if block["types"]:
            return None
    return True


def texts(data: bytes) -> list[tuple[int, int]]:
    """Where the texts over several lines of a file begin and end, in order."""
    found = (lexeme for lexeme in _LEXEME.finditer(data) if lexeme[0].startswith((b'"""', b"'''")))
    return [lexeme.span() for lexeme in found]


def run_at_import(data: bytes) -> Iterator[bytes]:
    """What of a file runs when it is imported: all but texts over several lines and the bodies of functions.

    The parameters of functions come without their names.
    """
    data = _TEXT.sub(b'""', data)
    end = 0
    for found in _FUNCTION.finditer(data):
        if found.start() < end:
            continue
        yield data[end : found.start()]
        behind = _end_of_header(data, found.end(), len(data))
        if behind is None:
            return
        yield data[found.end() : behind]
        end = end_of_body(data, behind, len(found[1]))
    yield data[end:]


def end_of_body(data: bytes, start: int, indent: int) -> int:
    """Where the lines end that stand deeper than the first one of a definition."""
    end = re.compile(rb"^[ \t]{0,%d}[^ \t\r\n#)]" % indent, re.MULTILINE).search(data, start)
    return end.start() if end is not None else len(data)


def _is_in_header(data: bytes, begin: int, start: int) -> bool:
    """Whether a line stands within the brackets of the parameters of the function that begins above."""
    return _end_of_header(data, begin, start) is None


def _end_of_header(data: bytes, begin: int, limit: int) -> int | None:
    """Behind the bracket that closes the parameters of a function, if that stands before a limit."""
    depth = 0
    for found in _BRACKET.finditer(data, begin, limit):
        if found["opens"]:
            depth += 1
        elif found["closes"]:
            depth -= 1
            if not depth:
                return found.end()
    return None
