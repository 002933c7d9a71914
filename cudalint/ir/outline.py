"""A file without the bodies of its functions, and these bodies one by one.

Most functions of most files are never entered, and parsing them is most of what reading a file costs. Where functions
begin and end the parser of the running Python tells, ten times faster than libcst; what is lowered, shown or repaired
is parsed by libcst, as it always was. A file that the running Python refuses is parsed whole.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Set
from functools import lru_cache

from cudalint.structs import Frozen
from cudalint.text.quiet import quietly

_ROW = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_Definition = ast.FunctionDef | ast.AsyncFunctionDef


class Piece(Frozen):
    """The rows of a function's body, from ``first`` up to, and without, ``last``; they count from 0."""

    first: int
    last: int
    is_async: bool


class Outline(Frozen):
    """The rows of a text, and the bodies of its outermost functions in order."""

    rows: tuple[str, ...]
    pieces: tuple[Piece, ...]

    @property
    def text(self) -> str:
        """The file with ``pass`` for each body."""
        return "".join(row for _, row in self._kept())

    @property
    def origins(self) -> list[int | None]:
        """For each row of that text the row of the file that it is; None for a ``pass``."""
        return [number for number, _ in self._kept()]

    def body(self, number: int) -> str:
        """One body as a function of its own; its second row is the body's first."""
        header = "async def _():\n" if self.pieces[number].is_async else "def _():\n"
        return header + self.rows_within(number)

    def rows_within(self, number: int) -> str:
        """The rows of one body."""
        piece = self.pieces[number]
        return "".join(self.rows[piece.first : piece.last])

    def words(self, number: int) -> frozenset[str]:
        """All that looks like an identifier in a body, comments and prose included."""
        return frozenset(_WORD.findall(self.rows_within(number)))

    def holds(self, number: int, words: Set[str]) -> bool:
        """Whether one of these stands in a body as a word, comments and prose included."""
        # Most are asked for one word that is not there, which a search of the text tells without cutting it into words.
        if len(words) <= _FEW and not any(word in self.rows_within(number) for word in words):
            return False
        return not self.words(number).isdisjoint(words)

    def _kept(self) -> Iterator[tuple[int | None, str]]:
        number = 0
        for piece in self.pieces:
            yield from enumerate(self.rows[number : piece.first], number)
            first = self.rows[piece.first]
            yield None, f"{first[: len(first) - len(first.lstrip())]}pass\n"
            number = piece.last
        yield from enumerate(self.rows[number:], number)


_FEW = 4
_WORD = re.compile(r"[^\W\d]\w*")


def rows_of(text: str) -> tuple[str, ...]:
    """The rows of a text with their ends, as the parser counts them."""
    return tuple(_ROW.findall(text))


def outline(text: str) -> Outline | None:
    """The outline of a text; None where it has none: then it is to be parsed whole. Short ones are kept a while."""
    return _outlined(text) if len(text) > _LONG else _kept(text)


def _outlined(text: str) -> Outline | None:
    try:
        with quietly():
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    rows = rows_of(text)
    pieces: list[Piece] = []
    for function in _outermost(tree.body):
        first = _first_row(function)
        if not _begins_a_row(function, first, rows):
            continue
        pieces.append(Piece(first, function.end_lineno or first, isinstance(function, ast.AsyncFunctionDef)))
    return Outline(rows, tuple(pieces))


# The form of a file and the places of its findings both begin with it, and so does each repair that is tried out.
_MOST_KEPT = 64
_LONG = 30_000
_kept = lru_cache(_MOST_KEPT)(_outlined)


def _outermost(body: Iterable[ast.AST]) -> Iterator[_Definition]:
    """The functions that are in no other one, in order."""
    for node in body:
        if isinstance(node, _Definition):
            yield node
        elif isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case) and not isinstance(node, _SIMPLE):
            yield from _outermost(ast.iter_child_nodes(node))


_SIMPLE = (ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Import, ast.ImportFrom, ast.Return, ast.Delete)


def _first_row(function: _Definition) -> int:
    first = function.body[0]
    decorators = first.decorator_list if isinstance(first, _Definition | ast.ClassDef) else []
    return min([first.lineno, *(d.lineno for d in decorators)]) - 1


def _begins_a_row(function: _Definition, first: int, rows: tuple[str, ...]) -> bool:
    """Whether a body stands on rows of its own, below its header."""
    if first < function.lineno:
        return False
    row = rows[first]
    indent = len(row) - len(row.lstrip(" \t\f"))
    if rows[first - 1].rstrip("\r\n").endswith("\\"):
        return False
    start = function.body[0]
    decorated = isinstance(start, _Definition | ast.ClassDef) and bool(start.decorator_list)
    # A decorator stands one character, and what the writer put between, before its expression.
    return row[indent] == "@" if decorated else len(row[:indent].encode()) == start.col_offset
