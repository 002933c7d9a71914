"""Where the nodes of a tree stand, and which node each stands in: by one run of libcst's own generator of code.

The same as ``PositionProvider`` and ``ParentNodeProvider`` give, without an object for each place and without walking
the tree once for each of them.
"""

from __future__ import annotations

from types import TracebackType
from typing import TypeAlias

import libcst as cst
from libcst._nodes.internal import CodegenState

# First row and column, last row and column; rows count from 1, columns from 0.
Place: TypeAlias = tuple[int, int, int, int]


class Places(CodegenState):
    """The places of all nodes of a tree, in which no node is twice.

    Raises ``RecursionError`` where the tree is deeper than the running Python follows.
    """

    def __init__(self, tree: cst.Module) -> None:
        super().__init__(tree.default_indent, tree.default_newline)
        # By identity, which is also how nodes compare; the tree is kept so that an identity stays one node's.
        self._tree = tree
        self._places: dict[int, Place] = {}
        self._open: list[tuple[cst.CSTNode, int, int]] = []
        self.row, self.column = 1, 0
        tree._codegen(self)

    def place(self, node: cst.CSTNode) -> Place | None:
        """Where a node stands, without its own parentheses and the white space around it; None outside this tree."""
        return self._places.get(id(node))

    # -- what the generator says -------------------------------------------------------------------------------

    def add_token(self, value: str) -> None:
        """Move on by a piece of text."""
        self.tokens.append(value)
        if "\n" in value or "\r" in value:
            rows = value.replace("\r\n", "\n").replace("\r", "\n").split("\n")
            self.row += len(rows) - 1
            self.column = len(rows[-1])
        else:
            self.column += len(value)

    def add_indent_tokens(self) -> None:
        """Move on by the white space before a statement."""
        for token in self.indent_tokens:
            self.add_token(token)

    def before_codegen(self, node: cst.CSTNode) -> None:
        """Enter a node."""
        self._open.append((node, self.row, self.column))

    def after_codegen(self, node: cst.CSTNode) -> None:
        """Leave a node; its place may be known already, without what is around it."""
        _, row, column = self._open.pop()
        self._places.setdefault(id(node), (row, column, self.row, self.column))

    def record_syntactic_position(  # type: ignore[override]
        self, node: cst.CSTNode, *, start_node: cst.CSTNode | None = None, end_node: cst.CSTNode | None = None
    ) -> _Extent:
        """Note that a node stands where the text of the block does, or between two nodes of it."""
        return _Extent(self, node, start_node, end_node)

    def stands(
        self, node: cst.CSTNode, row: int, column: int, first: cst.CSTNode | None, last: cst.CSTNode | None
    ) -> None:
        """Note where a node stands that ends here, unless other nodes say where it begins and ends."""
        start = (row, column) if first is None else self._places[id(first)][:2]
        end = (self.row, self.column) if last is None else self._places[id(last)][2:]
        self._places[id(node)] = (*start, *end)


class Family(Places):
    """The places of all nodes of a tree, and which node each stands in."""

    def __init__(self, tree: cst.Module) -> None:
        self._parents: dict[int, cst.CSTNode] = {}
        # In the order of the text, a node before those below it; and how many stand before each, and behind all below.
        self._nodes: list[cst.CSTNode] = []
        self._extents: dict[int, tuple[int, int]] = {}
        super().__init__(tree)

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The node around a node."""
        return self._parents.get(id(node))

    def inside(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        """A node and all below it, in the order of the text."""
        first, last = self._extents.get(id(node), (0, 0))
        return self._nodes[first:last]

    def before_codegen(self, node: cst.CSTNode) -> None:
        """Enter a node of another one."""
        if self._open:
            self._parents[id(node)] = self._open[-1][0]
        self._extents[id(node)] = (len(self._nodes), 0)
        self._nodes.append(node)
        super().before_codegen(node)

    def after_codegen(self, node: cst.CSTNode) -> None:
        """Leave a node: all that came since is below it."""
        self._extents[id(node)] = (self._extents[id(node)][0], len(self._nodes))
        super().after_codegen(node)


class _Extent:
    """A block of the generator whose text is that of a node."""

    __slots__ = ("_column", "_first", "_last", "_node", "_places", "_row")

    def __init__(self, places: Places, node: cst.CSTNode, first: cst.CSTNode | None, last: cst.CSTNode | None) -> None:
        self._places, self._node, self._first, self._last = places, node, first, last
        self._row, self._column = places.row, places.column

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:  # else the nodes within have no places
            self._places.stands(self._node, self._row, self._column, self._first, self._last)
