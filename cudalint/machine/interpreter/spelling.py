"""The names by which code mentions what it decorates with, raises or catches."""

from __future__ import annotations

from cudalint.ir import nodes as ir
from cudalint.ir.walk import last_name


def spelled(node: ir.Expr) -> str:
    """The last name of an expression, or of what it calls: ``c`` of ``a.b.c()``; empty where it has none."""
    while isinstance(node, ir.Call):
        node = node.func
    return last_name(node)
