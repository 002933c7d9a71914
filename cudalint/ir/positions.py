"""Where the nodes of a file stand, computed only for files that are spoken about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from cudalint.finding import Position, Span
from cudalint.ir.depth import TREE, room
from cudalint.ir.lower import origins


def spans(text: str, filename: str, name: str, ordinals: Iterable[int]) -> dict[int, Span]:
    """The span of each ordinal asked for; columns are 1-based characters."""
    with room(TREE):
        tree, nodes = origins(text, filename, name)
        # Not wrapper.resolve(): that walks the tree once more for providers that nobody asked for.
        ranges: Mapping[cst.CSTNode, Any] = PositionProvider()._gen(MetadataWrapper(tree, unsafe_skip_copy=True))
    result: dict[int, Span] = {}
    for ordinal in ordinals:
        node = nodes.get(ordinal)
        found = None if node is None else ranges.get(node)
        if found is None:
            continue
        start = Position(found.start.line, found.start.column + 1)
        end = Position(found.end.line, found.end.column + 1)
        result[ordinal] = Span(filename, start, end)
    return result
