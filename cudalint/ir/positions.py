"""Where the nodes of a file stand, computed only for files that findings are about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

import libcst as cst

from cudalint.finding import Position, Span
from cudalint.ir import nodes as ir
from cudalint.ir.depth import TREE, room
from cudalint.ir.lower import Lowering, body, origins
from cudalint.ir.outline import Outline, outline
from cudalint.ir.parsing import parse
from cudalint.ir.places import Places
from cudalint.ir.units import Outer


def spans(text: str, filename: str, name: str, ordinals: Iterable[int]) -> dict[int, Span]:
    """The span of each ordinal asked for; columns are 1-based characters.

    Where the file has an outline, only the functions in which they lie are parsed.
    """
    wanted = set(ordinals)
    shape = outline(text)
    with room(TREE):
        found = None if shape is None else _of_parts(shape, filename, name, wanted)
        if found is not None:
            return found
        tree, nodes = origins(text, filename, name)
        return _located(filename, tree, _some(nodes, wanted), _Whole())


def all_spans(text: str, filename: str, name: str) -> dict[int, Span]:
    """The span of every ordinal of a file."""
    with room(TREE):
        tree, nodes = origins(text, filename, name)
        return _located(filename, tree, nodes, _Whole())


def _of_parts(shape: Outline, filename: str, name: str, wanted: set[int]) -> dict[int, Span] | None:
    """The same from an outline and some bodies; None where these do not contain it."""
    outers: list[Outer] = []

    def left_out(outer: Outer) -> ir.Source:
        outers.append(outer)
        return ir.EMPTY

    lowering = Lowering(filename, name, record=True, postponed=left_out)
    try:
        tree = parse(shape.text)
        lowering.module(tree)
        if lowering.outermost != len(shape.pieces):
            return None
        result = _located(filename, tree, _some(lowering.origin or {}, wanted), _Rows(shape))
        for number in {number for ordinal in wanted if (number := ir.number_of(ordinal)) is not None}:
            result.update(_of_body(shape, outers[number], filename, name, wanted))
        return result
    except cst.ParserSyntaxError:
        return None


def _of_body(shape: Outline, outer: Outer, filename: str, name: str, wanted: set[int]) -> dict[int, Span]:
    found = body(shape.body(outer.number), filename, name, outer)
    return _located(filename, found.tree, _some(found.origins, wanted), _Below(shape.pieces[outer.number].first))


def _some(nodes: Mapping[int, cst.CSTNode], wanted: set[int]) -> dict[int, cst.CSTNode]:
    return {ordinal: nodes[ordinal] for ordinal in wanted if ordinal in nodes}


# Trials of repairs ask about the same functions again and again, whose trees `parse` keeps.
_places = lru_cache(32)(Places)


class _Whole:
    """The rows of a tree that is that of a file."""

    def at(self, row: int, column: int) -> Position:
        """Where in the file something stands; columns count from 0 in the tree."""
        return Position(row, column + 1)


class _Below(_Whole):
    """The rows of a tree whose second row is the file's next one after some."""

    def __init__(self, before: int) -> None:
        self._before = before

    def at(self, row: int, column: int) -> Position:
        return Position(self._before + row - 1, column + 1)


class _Rows(_Whole):
    """The rows of an outline; what ends in the row that stands for a body ends where the body does."""

    def __init__(self, shape: Outline) -> None:
        self._shape = shape
        self._origins = shape.origins

    def at(self, row: int, column: int) -> Position:
        origin = self._origins[row - 1]
        if origin is not None:
            return Position(origin + 1, column + 1)
        number = self._origins[:row].count(None) - 1
        tree = parse(self._shape.body(number))
        found = _places(tree).place(tree.body[0])
        assert found is not None
        return _Below(self._shape.pieces[number].first).at(*found[2:])


def _located(filename: str, tree: cst.Module, nodes: Mapping[int, cst.CSTNode], rows: _Whole) -> dict[int, Span]:
    """Where nodes of a tree stand; ``rows`` tells where its rows lie in the file.

    Raises ``RecursionError`` where the tree is deeper than the running Python follows.
    """
    if not nodes:
        return {}
    places = _places(tree)
    result: dict[int, Span] = {}
    for ordinal, node in nodes.items():
        found = places.place(node)
        if found is not None:
            result[ordinal] = Span(filename, rows.at(*found[:2]), rows.at(*found[2:]))
    return result
