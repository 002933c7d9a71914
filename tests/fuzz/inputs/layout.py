"""How a text lies in its file: comments, line ends, marks, blank lines, tabs."""

from __future__ import annotations

import random

LINE_ENDS = ("\n", "\n", "\n", "\r\n", "\r")


def laid(text: str, chance: random.Random) -> bytes:
    """The bytes of a program in some layout that leaves its meaning."""
    rows = text.split("\n")
    if '"""' not in text and "'''" not in text and "\\\n" not in text:
        rows = _commented(rows, chance)
    ends = chance.choice(LINE_ENDS)
    joined = ends.join(rows) + chance.choice((ends, ends, ends, "", ends * 3))
    mark = b"\xef\xbb\xbf" if chance.random() < 0.05 else b""
    return mark + joined.encode("utf-8", "replace")


def _commented(rows: list[str], chance: random.Random) -> list[str]:
    """Comments behind rows and on rows of their own, each told apart by its number."""
    found: list[str] = []
    for number, row in enumerate(rows):
        match chance.randrange(8):
            case 0:
                found.append(f"{row}  # beside {number}")
            case 1:
                found += [f"# above {number}", row]
            case 2 if chance.random() < 0.3:
                found += ["", "", row]
            case _:
                found.append(row)
    return found
