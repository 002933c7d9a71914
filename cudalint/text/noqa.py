"""Suppression comments: flake8's ``# noqa`` and ``# flake8: noqa``, and ``# cudalint: noqa`` for a file.

Only real comments count; the same words in a string suppress nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set

from cudalint.structs import Frozen, field
from cudalint.text.lines import ROW_END, Rows
from cudalint.text.scan import Kind, Lexeme, lexemes

# The shapes flake8 accepts: codes separated by commas or blanks, in any case.
_CODES = r"(?::\s?(?P<codes>(?:[A-Z]+[0-9]+(?:[,\s]+)?)+))?"
_LINE = re.compile(rf"# noqa(?![\w-]){_CODES}", re.IGNORECASE)
_FILE = re.compile(rf"#\s*(?:flake8|cudalint)[:=]\s*noqa{_CODES}\s*$", re.IGNORECASE)
_CODE = re.compile(r"[A-Z]+[0-9]+", re.IGNORECASE)


class Noqa(Frozen):
    """One comment. ``codes`` are upper-case prefixes; none means that everything is suppressed."""

    row: int
    column: int
    codes: tuple[str, ...] = ()

    @property
    def place(self) -> tuple[int, int]:
        """The row and column, by which it is the only one in its file."""
        return self.row, self.column

    def covers(self, code: str) -> bool:
        """Whether the comment speaks about ``code``."""
        return not self.codes or code.startswith(self.codes)


class Suppressions(Frozen):
    """The suppression comments of one file."""

    by_row: Mapping[int, Noqa] = field(default_factory=dict)
    whole_file: tuple[Noqa, ...] = ()

    @property
    def comments(self) -> tuple[Noqa, ...]:
        """All comments in the order of the file's rows."""
        return tuple(sorted((*self.by_row.values(), *self.whole_file), key=lambda noqa: noqa.row))


def may_suppress(data: bytes) -> bool:
    """Whether the bytes of a file can hold a suppression comment."""
    return b"noqa" in data.lower()


def suppressions(text: str) -> Suppressions:
    """The suppression comments of ``text``."""
    by_row: dict[int, Noqa] = {}
    whole_file: list[Noqa] = []
    rows = Rows(text)
    for lexeme in lexemes(text):
        if lexeme.kind is not Kind.COMMENT:
            continue
        comment = text[lexeme.start : lexeme.end]
        row, column = rows.place(lexeme.start)
        if match := _FILE.search(comment):
            whole_file.append(Noqa(row, column + match.start(), _codes(match)))
        elif match := _LINE.search(comment):
            by_row[row] = Noqa(row, column + match.start(), _codes(match))
    return Suppressions(by_row, tuple(whole_file))


class Places:
    """Where the rows of a text can take a suppression comment."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._rows = Rows(text)
        self._comments: dict[int, Lexeme] = {}
        self._open: set[int] = set()
        for lexeme in lexemes(text):
            first = self._rows.place(lexeme.start)[0]
            if lexeme.kind is Kind.COMMENT:
                self._comments[first] = lexeme
            elif lexeme.kind in (Kind.STRING, Kind.CONTINUATION):
                # What ends on a later row goes on behind the end of this one.
                self._open.update(range(first, self._rows.place(lexeme.end)[0]))

    def takes(self, row: int) -> bool:
        """Whether a comment for this row alone can stand at its end."""
        if row in self._open or not 1 <= row <= self._rows.count:
            return False
        comment = self._comments.get(row)
        return comment is None or _FILE.search(self._text, comment.start, comment.end) is None

    def insertions(self, row: int, codes: Sequence[str], reason: str = "") -> list[tuple[int, str]]:
        """What to insert, and where, so that a comment at the end of the row names all the codes; none if it does.

        Codes join the comment that names some already, and a new one comes behind whatever else is said there.
        """
        end = self._end(row)
        comment = self._comments.get(row)
        found = None if comment is None else _LINE.search(self._text, comment.start, comment.end)
        why = f"  # {reason}" if reason else ""
        if found is None:
            return [(end, f"  # noqa: {', '.join(codes)}{why}")]
        missing = [code for code in codes if not code.startswith(_codes(found))]
        if found["codes"] is None or not missing:
            return []
        behind, more = found.start("codes") + len(found["codes"].rstrip(", \t")), f", {', '.join(missing)}"
        if not reason or reason in self._text[found.end() : end]:
            return [(behind, more)]
        return [(behind, more + why)] if behind == end else [(behind, more), (end, why)]

    def _end(self, row: int) -> int:
        start = self._rows.offset(row, 1)
        found = ROW_END.search(self._text, start)
        end = len(self._text) if found is None else found.start()
        return start + len(self._text[start:end].rstrip())


def _codes(match: re.Match[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(code.upper() for code in _CODE.findall(match["codes"] or "")))


def without_codes(text: str, start: int, codes: Set[str]) -> tuple[int, int, str]:
    """What to replace, and by what, so that the comment at ``start`` no longer names any of the codes.

    A comment that says nothing else goes, with the blanks before it, or with its row if nothing else is on it.
    """
    row_end = ROW_END.search(text, start)
    end = len(text) if row_end is None else row_end.start()
    match = _FILE.match(text, start, end) or _LINE.match(text, start, end)
    if match is None or match["codes"] is None:
        return start, start, ""
    kept = [found for found in _CODE.findall(match["codes"]) if found.upper() not in codes]
    if kept:
        at = match.start("codes")
        return at, at + len(match["codes"].rstrip(", \t")), ", ".join(kept)
    rest = text[match.end() : end].strip()
    if rest:
        return start, end, rest if rest.startswith("#") else f"# {rest}"
    before = text[:start].rstrip(" \t\f")
    if before and before[-1] not in "\r\n":
        return len(before), end, ""
    return len(before), len(text) if row_end is None else row_end.end(), ""


def with_code(text: str, rows: Iterable[int], code: str) -> tuple[int, str] | None:
    """Where to insert what, so that a comment on the first of these rows that can have one names ``code``.

    None where each of them ends within a string or goes on by a backslash.
    """
    lines = Rows(text)
    occupied: set[int] = set()
    comments: dict[int, Lexeme] = {}
    for lexeme in lexemes(text):
        first = lines.place(lexeme.start)[0]
        if lexeme.kind is Kind.COMMENT:
            comments[first] = lexeme
        elif lexeme.kind in {Kind.STRING, Kind.CONTINUATION}:
            occupied.update(range(first, lines.place(lexeme.end)[0]))
    row = next((row for row in rows if row <= lines.count and row not in occupied), None)
    if row is None:
        return None
    end = ROW_END.search(text, lines.offset(row, 1))
    at = len(text) if end is None else end.start()
    match = _LINE.search(text, comments[row].start, at) if row in comments else None
    if match is None or match["codes"] is None:
        return at, f"  # noqa: {code}"
    return match.start("codes") + len(match["codes"].rstrip(", \t")), f", {code}"
