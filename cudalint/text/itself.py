"""Whether a program reads its own text, as far as its words say so."""

from __future__ import annotations

import re

# By these a program reads its own text.
_READS_ITSELF = re.compile(
    r"\bgetsource|\bget_source\b|\blinecache\b|\btokenize\b|\btraceback\b|\bopen\(__file__|\bPath\(__file__\)\.read_"
    r"|\bopen\(sys\.argv\[0\]|[\w*]\.py[\"']"
)


def reads_itself(text: str) -> bool:
    """Whether something in a text can read a program's own text, or names a file of Python."""
    return _READS_ITSELF.search(text) is not None
