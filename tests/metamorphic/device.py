"""CUDA becomes the CPU: everywhere, or only where the parent does it."""

from __future__ import annotations

import libcst as cst

from metamorphic.program import Files
from metamorphic.transformation import Transformation, alone, dotted, is_import

_PARENT = frozenset({"main"})


class _Cpu(cst.CSTTransformer):
    """`.cuda()`, `.to("cuda")` and `device="cuda"` stay on the CPU; calls of `torch.cuda` that say nothing go."""

    def visit_Import(self, node: cst.Import) -> bool:
        return False

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        function = updated_node.func
        if not isinstance(function, cst.Attribute) or function.attr.value != "cuda":
            return updated_node
        if dotted(function) == "torch.cuda":
            return updated_node
        return updated_node.with_changes(func=function.with_changes(attr=cst.Name("cpu")), args=[])

    def leave_SimpleString(self, original_node: cst.SimpleString, updated_node: cst.SimpleString) -> cst.SimpleString:
        value = updated_node.evaluated_value
        if not isinstance(value, str) or value.partition(":")[0] != "cuda":
            return updated_node
        return updated_node.with_changes(value='"cpu"')

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine:
        if not all(_idle(small) for small in updated_node.body):
            return updated_node
        return updated_node.with_changes(body=[cst.Pass()])


def _idle(small: cst.BaseSmallStatement) -> bool:
    """A statement that is only a call of torch.cuda."""
    if not isinstance(small, cst.Expr) or not isinstance(small.value, cst.Call):
        return False
    return (dotted(small.value.func) or "").startswith("torch.cuda.")


class _Parent(cst.CSTTransformer):
    """The same in main() and what stands at the top level, functions and classes there apart."""

    def visit_ClassDef(self, node: cst.ClassDef) -> bool:
        return False

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return False

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        if original_node.name.value not in _PARENT:
            return updated_node
        return cst.ensure_type(original_node.visit(_Cpu()), cst.FunctionDef)


def _cpu(module: cst.Module) -> Files | None:
    return alone(module.visit(_Cpu()), module)


def _parent(module: cst.Module) -> Files | None:
    body = [
        s if is_import(s) or isinstance(s, cst.FunctionDef | cst.ClassDef) else s.visit(_Cpu()) for s in module.body
    ]
    return alone(module.with_changes(body=body).visit(_Parent()), module)


CPU = Transformation("to-cpu", preserving=False, apply=_cpu, moves=True)
PARENT_CPU = Transformation("parent-to-cpu", preserving=False, apply=_parent, moves=True)
