"""Numbers that stick to the anchors of findings while a tree is rewritten.

A number lives in a whitespace token of the anchor's own node, where no transformation looks and where the tree's
copies and rewrites carry it along.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

Place = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Tag(cst.SimpleWhitespace):
    """Whitespace that knows which anchor it belongs to."""

    number: int = 0

    def _visit_and_replace_children(self, visitor: cst.CSTVisitorT) -> Tag:
        return self


def positions(module: cst.Module) -> Mapping[cst.CSTNode, CodeRange]:
    """Where every node of a module stands; the module must not hold a node twice."""
    return MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)


def tagged(module: cst.Module, anchors: Sequence[tuple[Place, Place]]) -> cst.Module:
    """The module with anchor i, given by its first and last place (1-based), tagged with the number i."""
    if not anchors:
        return module
    wanted = {anchor: number for number, anchor in enumerate(anchors)}
    chosen: dict[cst.CSTNode, int] = {}
    known = positions(module)
    for node in known:
        where = known[_anchor(node)]
        place = ((where.start.line, where.start.column + 1), (where.end.line, where.end.column + 1))
        if place in wanted and _slot(node) is not None:
            chosen[node] = wanted[place]
    if set(chosen.values()) != set(wanted.values()):
        raise LookupError(f"no call or assignment stands at {sorted(wanted)}")
    return module.visit(_Tagger(chosen))


def _anchor(node: cst.CSTNode) -> cst.CSTNode:
    """The node at which a finding stands whose number another one carries: a decorator is called without a call."""
    return node.decorator if isinstance(node, cst.Decorator) else node


def _slot(node: cst.CSTNode) -> str | None:
    """The whitespace token of a node that can carry a number."""
    if isinstance(node, cst.Decorator) and not isinstance(node.decorator, cst.Call):
        return "whitespace_after_at"
    if isinstance(node, cst.Call):
        return "whitespace_after_func"
    if isinstance(node, cst.AugAssign | cst.AnnAssign | cst.Assign):
        return "targets"
    return None


class _Tagger(cst.CSTTransformer):
    def __init__(self, chosen: Mapping[cst.CSTNode, int]) -> None:
        self.chosen = chosen

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        if original_node not in self.chosen:
            return updated_node
        return updated_node.with_changes(whitespace_after_func=self._tag(original_node, ""))

    def leave_Decorator(self, original_node: cst.Decorator, updated_node: cst.Decorator) -> cst.Decorator:
        if original_node not in self.chosen:
            return updated_node
        return updated_node.with_changes(whitespace_after_at=self._tag(original_node, ""))

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
        if original_node not in self.chosen:
            return updated_node
        first = updated_node.targets[0].with_changes(whitespace_before_equal=self._tag(original_node, " "))
        return updated_node.with_changes(targets=[first, *updated_node.targets[1:]])

    def _tag(self, node: cst.CSTNode, value: str) -> Tag:
        return Tag(value, self.chosen[node])


def tags(module: cst.Module) -> dict[Place, int]:
    """Where the tagged nodes start now."""
    found: dict[Place, int] = {}
    known = positions(module)
    for node in known:
        token, where = _token(node), known[_anchor(node)]
        if isinstance(token, Tag):
            found[(where.start.line, where.start.column + 1)] = token.number
    return found


def _token(node: cst.CSTNode) -> cst.CSTNode | None:
    if isinstance(node, cst.Call):
        return node.whitespace_after_func
    if isinstance(node, cst.Decorator):
        return node.whitespace_after_at
    return node.targets[0].whitespace_before_equal if isinstance(node, cst.Assign) else None
