"""Where the nodes of a file stand, computed only for files that findings are about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import libcst as cst

from cudalint.finding import Position, Span
from cudalint.ir import nodes as ir
from cudalint.ir.depth import TREE, room
from cudalint.ir.lower import Lowering, Outer, origins, parse
from cudalint.ir.outline import Outline, outline
from cudalint.ir.places import Places


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
        return _located(filename, tree, {o: n for o, n in nodes.items() if o in wanted}, lambda row: row) or {}


def all_spans(text: str, filename: str, name: str) -> dict[int, Span]:
    """The span of every ordinal of a file."""
    with room(TREE):
        tree, nodes = origins(text, filename, name)
        return _located(filename, tree, nodes, lambda row: row) or {}


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
        rows = shape.origins
        result = _located(filename, tree, _some(lowering, wanted), lambda row: _next(rows[row - 1]))
        if result is None:
            return None
        for number in {number for ordinal in wanted if (number := ir.number_of(ordinal)) is not None}:
            result.update(_of_body(shape, outers[number], filename, name, wanted))
        return result
    except cst.ParserSyntaxError:
        return None


def _of_body(shape: Outline, outer: Outer, filename: str, name: str, wanted: set[int]) -> dict[int, Span]:
    tree = parse(shape.body(outer.number))
    definition = tree.body[0]
    assert isinstance(definition, cst.FunctionDef)
    lowering = Lowering(filename, name, record=True)
    lowering.body(outer, definition.body)
    first = shape.pieces[outer.number].first
    return _located(filename, tree, _some(lowering, wanted), lambda row: first + row - 1) or {}


def _some(lowering: Lowering, wanted: set[int]) -> dict[int, cst.CSTNode]:
    return {ordinal: node for ordinal, node in (lowering.origin or {}).items() if ordinal in wanted}


def _next(row: int | None) -> int | None:
    return None if row is None else row + 1


def _located(
    filename: str, tree: cst.Module, nodes: Mapping[int, cst.CSTNode], row: Callable[[int], int | None]
) -> dict[int, Span] | None:
    """Where nodes of a tree stand; ``row`` gives the row of the file. None where a node ends in no row of it.

    Raises ``RecursionError`` where the tree is deeper than the running Python follows.
    """
    if not nodes:
        return {}
    places = Places(tree)
    result: dict[int, Span] = {}
    for ordinal, node in nodes.items():
        found = places.place(node)
        if found is None:
            continue
        first_row, first_column, last_row, last_column = found
        first, last = row(first_row), row(last_row)
        if first is None or last is None:
            return None
        result[ordinal] = Span(filename, Position(first, first_column + 1), Position(last, last_column + 1))
    return result
