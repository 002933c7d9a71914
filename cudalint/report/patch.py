"""Repairs as a unified diff that ``patch -p0`` and ``git apply -p0`` take."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Iterator

from cudalint.fixing.rounds import Changed
from cudalint.report.paths import relative
from cudalint.text.decode import Refusal, decode

_COLOURS = {"---": "1", "+++": "1", "@@": "36", "-": "31", "+": "32"}


def render(changes: Iterable[Changed], directory: str, *, colour: bool) -> str:
    """One patch for all files; empty where nothing changes."""
    lines = (line for change in changes for line in _lines(change, directory))
    return "".join(_coloured(line) if colour else line for line in lines)


def _lines(change: Changed, directory: str) -> Iterator[str]:
    old, new = _text(change.path, change.before), _text(change.path, change.after)
    name = relative(change.path, directory).replace(os.sep, "/")
    for line in difflib.unified_diff(_rows(old), _rows(new), name, name):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _text(path: str, data: bytes) -> str:
    source = decode(path, data)
    return "" if isinstance(source, Refusal) else source.text


def _rows(text: str) -> list[str]:
    """Rows as patch counts them: they end with a line feed and nothing else."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _coloured(line: str) -> str:
    code = next((code for start, code in _COLOURS.items() if line.startswith(start)), None)
    return line if code is None else f"\x1b[{code}m{line.rstrip(chr(10))}\x1b[0m\n"
