"""JSON that every parser takes and no terminal obeys."""

from __future__ import annotations

import json
import re

# Controls that JSON lets through, marks that turn the direction of writing, and halves of characters, which strict
# parsers refuse; all stand in strings only.
_UNSAFE = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_HALF = re.compile("[\ud800-\udfff]")


def as_text(document: object) -> str:
    """An indented document. A byte of a name that is not UTF-8 is written as ``\\xff``: JSON has no word for it."""
    return _harmless(json.dumps(document, indent=2, ensure_ascii=False))


def as_row(document: object) -> str:
    """The same on one row."""
    return _harmless(json.dumps(document, ensure_ascii=False, separators=(",", ":")))


def _harmless(text: str) -> str:
    text = _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return _HALF.sub(_half, text) + "\n"


def _half(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else "\ufffd"
