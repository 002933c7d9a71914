"""Which lines of a file run when it is imported, by its bytes and their indentation."""

from __future__ import annotations

import re

_BLOCK = re.compile(
    rb"(?P<indent>[ \t]*)(?:(?P<function>(?:async[ \t]+)?def\b)|if[ \t]+(?P<types>(?:\w+\.)?TYPE_CHECKING\b))?"
)


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
            return False
        if block["types"]:
            return None
    return True
