"""Tables of constants as the parser sees them: their beginning, and one text for all the rest.

A table of a hundred thousand numbers is data, but the parser makes several objects of each number, each time that a
repair is tried out. What is left out becomes one starred string, an unknown number of unknown elements to whoever
lowers it, which takes the same rows and ends in the same column: all that stands around it keeps its place.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from cudalint.ir.outline import rows_of
from cudalint.text.quiet import quietly

# A table with more constants is not read to its end, and so many of them are kept.
MOST_CONSTANTS = 2_000
KEPT = 500
# No program has this character in its code: it is for private use.
_MARK = "\ue000"
LEFT_OUT = f"'''{_MARK}"
_END = "'''"
_CHARACTER = re.compile(r"[^\r\n]")
_ENDS = ("\n", "\r")
_MOST_KEPT = 4

_Display = ast.List | ast.Tuple | ast.Set | ast.Dict


def abridged(text: str) -> str:
    """A text without most of the constants of its large tables, in which all else stands where it did."""
    return _abridged(text) if text.count(",") >= MOST_CONSTANTS else text


@lru_cache(_MOST_KEPT)
def _abridged(text: str) -> str:
    try:
        with quietly():
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text
    tables = sorted(_tables(tree), key=lambda table: (table.lineno, table.col_offset))
    if not tables:
        return text
    offsets = _Offsets(text)
    parts: list[str] = []
    seen = 0
    for table in tables:
        kept = _kept(table)
        elements = _elements(table)
        star = "**" if isinstance(table, ast.Dict) else "*"
        start = offsets.start(elements[kept][0])
        end = offsets.end(elements[-1][-1])
        parts += [text[seen:start], _standing_for(text[start:end], star)]
        seen = end
    return "".join((*parts, text[seen:]))


def _tables(tree: ast.AST) -> Iterator[_Display]:
    """The displays with too many constants, and nothing else, none of which stands in another."""
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, _Display):
            parts = [_constants(part) for element in _elements(node) for part in element]
            known = [part for part in parts if part is not None]
            if len(known) == len(parts) and max(known, default=0) <= MOST_CONSTANTS < sum(known):
                if _kept(node) < len(_elements(node)):
                    yield node
                continue
        stack.extend(ast.iter_child_nodes(node))


def _constants(node: ast.expr | None) -> int | None:
    """How many constants an expression is made of; None where it holds anything else."""
    match node:
        case ast.Constant() | ast.UnaryOp(operand=ast.Constant()):
            return 1
        case ast.List() | ast.Tuple() | ast.Set() | ast.Dict():
            total = 0
            for part in (part for element in _elements(node) for part in element):
                found = _constants(part)
                if found is None:
                    return None
                total += found
            return total
        case _:
            return None


def _kept(table: _Display) -> int:
    """How many elements of a table are kept."""
    total = 0
    for number, element in enumerate(_elements(table)):
        if total >= KEPT:
            return number
        total += sum(_constants(part) or 0 for part in element)
    return len(_elements(table))


def _elements(node: _Display) -> Sequence[tuple[ast.expr | None, ...]]:
    if isinstance(node, ast.Dict):
        return list(zip(node.keys, node.values, strict=True))
    return [(element,) for element in node.elts]


def _standing_for(left_out: str, star: str) -> str:
    """What takes the place of a part of a text: in as many rows, of which the last is as long."""
    dots = _CHARACTER.sub(".", left_out)
    begin = star + LEFT_OUT
    last_row = max(map(dots.rfind, _ENDS)) + 1
    if last_row == 0:
        room = len(dots) - len(begin + _END)
        return left_out if room < 0 else begin + "." * room + _END
    if len(dots) - last_row >= len(_END):
        return begin + dots[: -len(_END)] + _END
    above = dots[:last_row].rstrip("".join(_ENDS))
    return begin + above + _END + dots[len(above) : last_row] + " " * (len(dots) - last_row)


class _Offsets:
    """Where expressions stand in a text, which Python tells in rows and bytes."""

    def __init__(self, text: str) -> None:
        self._rows = rows_of(text)
        self._starts = [0]
        for row in self._rows:
            self._starts.append(self._starts[-1] + len(row))

    def start(self, node: ast.expr | None) -> int:
        assert node is not None
        return self._at(node.lineno, node.col_offset)

    def end(self, node: ast.expr | None) -> int:
        assert node is not None
        return self._at(node.end_lineno or node.lineno, node.end_col_offset or 0)

    def _at(self, row: int, column: int) -> int:
        before = self._rows[row - 1].encode("utf-8", "surrogatepass")[:column]
        return self._starts[row - 1] + len(before.decode("utf-8", "surrogatepass"))
