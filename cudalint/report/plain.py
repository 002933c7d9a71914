"""Text of a program as one harmless line.

File names, messages and source lines come from whoever wrote the program. On a terminal they must move no cursor, and
in the log of a CI they must give no command.
"""

from __future__ import annotations

import re

from cudalint.finding import Finding
from cudalint.report.paths import relative

_REPLACEMENT = "\ufffd"
# Runners look for these anywhere in a line: GitHub and Azure (``##[group]``, ``##vso[task.setvariable]``), TeamCity.
_MARKED_COMMAND = re.compile(r"##(?=(?:vso|teamcity)?\[)")
# GitHub also takes a line that begins with this, blanks aside.
_LINE_COMMAND = "::"
# Bytes of names that are not UTF-8, as Python carries them.
_FIRST_BYTE, _LAST_BYTE = "\udc80", "\udcff"


def plain(text: str) -> str:
    """Text on one line, with escapes as in a Python string for what is not printed."""
    if not text.isprintable():
        text = "".join(character if character.isprintable() else _escape(character) for character in text)
    return without_commands(text)


def without_commands(text: str) -> str:
    """A line without what runners would take for a command in the midst of it; as long as it was."""
    return _MARKED_COMMAND.sub(f"#{_REPLACEMENT}", text)


def place(path: str, directory: str) -> str:
    """A path as it may stand at the beginning of a line, seen from ``directory``."""
    shown = plain(relative(path, directory))
    return f"./{shown}" if shown.lstrip().startswith(_LINE_COMMAND) else shown


def statement(finding: Finding) -> str:
    """What a finding says, and when it holds, on one line."""
    return plain(conditional(finding))


def conditional(finding: Finding) -> str:
    """What a finding says, and when it holds, as it is."""
    return finding.message if finding.condition is None else f"{finding.message} ({finding.condition})"


def _escape(character: str) -> str:
    if _FIRST_BYTE <= character <= _LAST_BYTE:
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape").decode("ascii")
