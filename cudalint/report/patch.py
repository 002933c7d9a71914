"""Repairs as a unified diff that ``patch -p1`` and ``git apply`` take.

Both take no name that leads up or is absolute. So names count from the current folder where all files lie below it, and
otherwise from a folder above that has all of them; the patch is applied there.
"""

from __future__ import annotations

import difflib
import os
import re
import secrets
from collections.abc import Iterable, Iterator

from cudalint.fixing.rounds import Changed
from cudalint.report.paths import relative
from cudalint.text.decode import Refusal, decode

_COLOURS = {"---": "1", "+++": "1", "@@": "36", "-": "31", "+": "32"}


def render(changes: Iterable[Changed], directory: str, *, colour: bool, is_shown: bool = False) -> str:
    """One patch for all files; empty where nothing changes.

    ``is_shown`` says that it goes to a terminal and no program: then what would move the cursor is replaced.
    """
    lines = (line for change in changes for line in _lines(change, directory))
    shown = (_harmless(line) if is_shown else line for line in lines)
    return "".join(_coloured(line) if colour else line for line in shown)


def folder(changes: Iterable[Changed], directory: str, root: str | None) -> str:
    """Where the names of a patch count from: ``directory``, the project's root, or what all files share."""
    paths = [change.path for change in changes]
    for top in (directory, root):
        if top is not None and all(path.startswith(top.rstrip(os.sep) + os.sep) for path in paths):
            return top
    try:
        return os.path.commonpath([os.path.dirname(path) for path in paths])
    except ValueError:  # several drives share nothing
        return directory


def between_tokens(patch: str) -> str:
    """A patch in the log of GitHub Actions, which would obey what it finds there: rows beside the patch stop that."""
    token = secrets.token_hex(16)
    return f"::stop-commands::{token}\n{patch}::{token}::\n" if patch else ""


def _lines(change: Changed, directory: str) -> Iterator[str]:
    old, new = _text(change.path, change.before), _text(change.path, change.after)
    name = relative(change.path, directory).replace(os.sep, "/")
    for line in difflib.unified_diff(_rows(old), _rows(new), _quoted(f"a/{name}"), _quoted(f"b/{name}")):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _quoted(name: str) -> str:
    """A name as git and patch write it: one that is not printed stands in quotes, and a tab ends one with blanks."""
    if name.isprintable():
        return f"{name}\t" if " " in name else name
    rows = (chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:03o}" for b in os.fsencode(name))
    return f'"{"".join(rows)}"'


def _harmless(line: str) -> str:
    return "".join(c if c.isprintable() or c in "\t\n" else "\ufffd" for c in line)


def _text(path: str, data: bytes) -> str:
    if path.endswith(".ipynb"):  # a patch of the file itself, whose other rows stay as they are
        return data.decode("utf-8", "replace")
    source = decode(path, data)
    return "" if isinstance(source, Refusal) else source.text


def _rows(text: str) -> list[str]:
    """Rows as patch counts them: they end with a line feed and nothing else."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _coloured(line: str) -> str:
    code = next((code for start, code in _COLOURS.items() if line.startswith(start)), None)
    return line if code is None else f"\x1b[{code}m{line.rstrip(chr(10))}\x1b[0m\n"
