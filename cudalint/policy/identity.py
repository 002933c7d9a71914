"""By what a finding is known again in another state of the program: in a baseline, at a git revision, on a server.

An identity rests on what an edit elsewhere leaves alone:

- the code of the rule;
- the path of the file, from a folder that the caller names;
- the names of the functions and classes around the place, by indentation;
- the statement at the place: its tokens without comments, line breaks, blanks, trailing commas and parentheses, which
  formatters add where a row is long, so that it may be moved, indented or formatted otherwise; of strings, which quotes
  they stand in does not count.

Rows, columns, the message and the path that leads to the finding take no part: the first change with every line above,
the others with cudalint itself. Two findings of one rule in equal statements of one function are told apart by their
order only. A finding about a file as a whole has no statement; it is known by its file.
"""

from __future__ import annotations

import os
import posixpath
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from hashlib import blake2b

from cudalint.finding import Finding, Span
from cudalint.structs import Frozen, Ordered
from cudalint.text.lines import Rows
from cudalint.text.scan import Kind, Lexeme, lexemes

# A fork after CUDA that is seen, and one that is not: two grades of one statement about one line.
TWINS = {"CUD102": "CUD101"}

_WORDS = re.compile(r"\w+|[^\w\s]")
_BLANKS = re.compile(r"[ \t\f]*")
_HEADER = re.compile(r"(?:async )?(?:def|class) (\w+)")
_PARENTHESES = ("(", ")")
_TAB = 8
_DIGITS = 16


class Identity(Ordered):
    """What a finding is known by. ``path`` has forward slashes; ``statement`` is a digest, empty for a whole file."""

    path: str
    code: str
    function: str
    statement: str

    @property
    def of_any_grade(self) -> tuple[str, str, str, str]:
        """The same for both grades of a statement: what is seen today may have been suspected when it was kept."""
        return (self.path, TWINS.get(self.code, self.code), self.function, self.statement)

    @property
    def elsewhere(self) -> tuple[str, str, str]:
        """What is left of it where its file was renamed or its function moved; a file as a whole moves nowhere."""
        return (self.code, self.function, self.statement or self.path)

    @property
    def in_folder(self) -> tuple[str, str, str, str]:
        """What is left of it where its file was renamed within a folder."""
        return (*self.elsewhere, posixpath.dirname(self.path))

    @property
    def in_namesake(self) -> tuple[str, str, str, str]:
        """What is left of it where its file was moved to another folder."""
        return (*self.elsewhere, posixpath.basename(self.path))

    @property
    def renamed(self) -> tuple[str, str, str]:
        """What is left of it where a function around it was given another name."""
        return (self.code, self.path, self.statement)


def identities(findings: Iterable[Finding], texts: Mapping[str, str], folder: str) -> tuple[Identity, ...]:
    """The identity of each finding, with paths from ``folder``; ``texts`` holds the files that they lie in."""
    known: dict[str, _Statements] = {}
    found = []
    for finding in findings:
        span = _place(finding)
        function = statement = ""
        if span is not None and span.filename in texts:
            statements = known.setdefault(span.filename, _Statements(texts[span.filename]))
            function, statement = statements.around(span.start.row, span.start.column)
        found.append(Identity(_path(finding.span.filename, folder), finding.code, function, statement))
    return tuple(found)


def fingerprints(findings: Iterable[Finding], texts: Mapping[str, str], directory: str) -> tuple[str, ...]:
    """A name for each finding that no other of the report has, and that stays when its file is renamed."""
    counted: Counter[tuple[str, str, str]] = Counter()
    made = []
    for identity in identities(findings, texts, directory):
        key = identity.elsewhere
        made.append(_digest(*key, str(counted[key])))
        counted[key] += 1
    return tuple(made)


def _place(finding: Finding) -> Span | None:
    """Where the finding stands; what is about a comment is anchored at its file, and says in its trace where."""
    if finding.span.start != finding.span.end:
        return finding.span
    return finding.trace[0].span if finding.trace else None


def _path(path: str, folder: str) -> str:
    try:
        return os.path.relpath(path, folder).replace(os.sep, "/")
    except ValueError:  # another drive
        return path.replace(os.sep, "/")


def _digest(*parts: str) -> str:
    return blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=_DIGITS // 2).hexdigest()


class _Statement(Frozen):
    """One statement, or the header of one, as the text's lexemes tell it. ``indent`` counts columns."""

    start: int
    indent: int
    tokens: tuple[str, ...]

    @property
    def defines(self) -> str | None:
        """The name of the function or class whose header it is."""
        match = _HEADER.match(" ".join(self.tokens[:3]))
        return None if match is None else match[1]


class _Statements:
    """The statements of one file, also of one that no parser takes."""

    def __init__(self, text: str) -> None:
        self._text = text

    def around(self, row: int, column: int) -> tuple[str, str]:
        """The functions around a place, dotted, and a digest of its statement; empty where there is none."""
        if row > self._rows.count:
            return "", ""
        index = bisect_right(self._starts, self._rows.offset(row, column)) - 1
        if index < 0:
            return "", ""
        statement = self._all[index]
        return ".".join(reversed(list(self._outer(index)))), _digest(*statement.tokens)

    def _outer(self, index: int) -> Iterator[str]:
        indent = self._all[index].indent
        for statement in reversed(self._all[:index]):
            if statement.indent < indent:
                indent = statement.indent
                if (name := statement.defines) is not None:
                    yield name

    @cached_property
    def _rows(self) -> Rows:
        return Rows(self._text)

    @cached_property
    def _starts(self) -> list[int]:
        return [statement.start for statement in self._all]

    @cached_property
    def _all(self) -> list[_Statement]:
        return list(_statements(self._text))


def _statements(text: str) -> Iterator[_Statement]:
    start = depth = 0
    inside: list[Lexeme] = []
    indent: int | None = None
    for lexeme in (*lexemes(text), Lexeme(Kind.NEWLINE, len(text), len(text))):
        depth += (lexeme.kind is Kind.OPENER) - (lexeme.kind is Kind.CLOSER and depth > 0)
        is_row_end = lexeme.kind is Kind.NEWLINE
        # At the end of the text whatever is open ends too.
        is_end = lexeme.start == len(text) or (not depth and (is_row_end or text[lexeme.start] == ";"))
        if not is_end:
            inside.append(lexeme)
            continue
        tokens = _tokens(text, start, lexeme.start, inside)
        if tokens:
            indent = _indent(text, start) if indent is None else indent
            yield _Statement(_first(text, start), indent, tokens)
        if is_row_end:
            indent = None
        start, inside = lexeme.end, []


def _first(text: str, start: int) -> int:
    blanks = _BLANKS.match(text, start)
    return start if blanks is None else blanks.end()


def _indent(text: str, row_start: int) -> int:
    return len(text[row_start : _first(text, row_start)].expandtabs(_TAB))


def _tokens(text: str, start: int, end: int, inside: Iterable[Lexeme]) -> tuple[str, ...]:
    found: list[str] = []
    position = start
    for lexeme in inside:
        found.extend(_WORDS.findall(text, position, lexeme.start))
        position = lexeme.end
        match lexeme.kind:
            case Kind.COMMENT | Kind.CONTINUATION | Kind.NEWLINE:
                continue
            case Kind.STRING:
                found.append(_string(text[lexeme.start : lexeme.end]))
            case Kind.CLOSER if found and found[-1] == ",":
                found[-1] = text[lexeme.start : lexeme.end]
            case _:
                found.append(text[lexeme.start : lexeme.end])
    found.extend(_WORDS.findall(text, position, end))
    return tuple(token for token in found if token not in _PARENTHESES)


def _string(text: str) -> str:
    """A string in double quotes, where that changes nothing else of it."""
    body = text[1:-1]
    is_plain = text[0] == text[-1] == "'" and not text.startswith("'''") and '"' not in body and "\\" not in body
    return f'"{body}"' if is_plain else text
