"""Whether a program reads its own text, as far as its words say so."""

from __future__ import annotations

import re

# By these a program reads its own text, or has it read.
_READS_ITSELF = re.compile(
    r"\bgetsource|\bget_source\b|\blinecache\b|\btokenize\b|\btraceback\b|\bopen\(sys\.argv\[0\]|[\w*]\.py[\"']"
    r"|__loader__|__spec__|\bco_filename\b|\bgit\b.*\b(?:diff|status|dirty)\b"
)
_FILE = "__file__"
# Where it only says where it lies, or how it is called, and where it starts itself again.
_OF_PLACE = re.compile(
    r"\b(?:dirname|basename)\((?:[\w.]+\()*__file__\)"
    r"|\bPath\((?:[\w.]+\()*__file__\)+(?:\.(?:resolve|absolute|expanduser)\(\))*\.(?:parents?|name|stem|with_name)\b"
    r"|\bprint\(__file__\)|\bsys\.executable,\s*__file__"
)


def reads_itself(text: str) -> bool:
    """Whether something in a text can read a program's own text, or names a file of Python."""
    if _READS_ITSELF.search(text) is not None:
        return True
    return _FILE in text and _FILE in _OF_PLACE.sub("", text)
