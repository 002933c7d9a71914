"""The program's own functions, classes, parameters and variables under other names."""

from __future__ import annotations

import libcst as cst
from libcst.metadata import ExpressionContext, ExpressionContextProvider, MetadataWrapper

from metamorphic.program import Files
from metamorphic.transformation import Renamed, Transformation, alone

# Names that a library looks up in the module.
_HOOKS = frozenset({"app", "preload_app", "worker_class", "workers", "bind", "application", "TritonPythonModel"})


def _apply(module: cst.Module) -> Files | None:
    bound = _Bound()
    contexts = MetadataWrapper(module, unsafe_skip_copy=True).resolve(ExpressionContextProvider)
    bound.stored = {
        node.value
        for node, context in contexts.items()
        if isinstance(node, cst.Name) and context is ExpressionContext.STORE
    }
    module.visit(bound)
    names = {name: f"{name}_of_mine" for name in bound.own()}
    return alone(module.visit(Renamed(names)), module)


class _Bound(cst.CSTVisitor):
    """Which names the program binds, and which of them something else knows by their spelling."""

    def __init__(self) -> None:
        self.stored: set[str] = set()
        self.parameters: set[str] = set()
        self.members: set[str] = set()
        self.keywords: set[str] = set()
        self.imports: set[str] = set()
        self.texts: set[str] = set()

    def own(self) -> set[str]:
        """Names that can be exchanged without anybody noticing."""
        taken = self.members | self.imports | self.texts | (self.parameters & self.keywords)
        names = (self.stored | self.parameters) - taken - _HOOKS
        return {name for name in names if not name.startswith(("__", "test_", "post_", "pre_", "on_"))}

    def visit_Param(self, node: cst.Param) -> None:
        self.parameters.add(node.name.value)

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self._within(node.body)

    def _within(self, block: cst.CSTNode) -> None:
        """What the body of a class binds, compound statements in it included."""
        for part in block.children:
            if isinstance(part, cst.FunctionDef | cst.ClassDef):
                self.members.add(part.name.value)
                continue
            targets = [part.target] if isinstance(part, cst.AnnAssign | cst.AssignTarget) else []
            self.members.update(t.value for t in targets if isinstance(t, cst.Name))
            self._within(part)

    def visit_Arg(self, node: cst.Arg) -> None:
        if node.keyword is not None:
            self.keywords.add(node.keyword.value)

    def visit_ImportAlias(self, node: cst.ImportAlias) -> None:
        for name in (node.name, node.asname.name if node.asname else None):
            while isinstance(name, cst.Attribute):
                name = name.value
            if isinstance(name, cst.Name):
                self.imports.add(name.value)

    def visit_SimpleString(self, node: cst.SimpleString) -> None:
        value = node.evaluated_value
        if isinstance(value, str):
            self.texts.add(value)


RENAME = Transformation("rename", preserving=True, apply=_apply)
