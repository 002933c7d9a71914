"""One file becomes two: the worker and its helpers are imported, or everything but the main guard is."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from metamorphic.program import MAIN, Files
from metamorphic.transformation import (
    Transformation,
    imported,
    is_docstring,
    is_future,
    is_guard,
    is_import,
    statements,
)

PARTS = "parts"
Definition = cst.FunctionDef | cst.ClassDef


class _Names(cst.CSTVisitor):
    """The names that a piece of code mentions, and those it declares global."""

    def __init__(self) -> None:
        self.read: set[str] = set()
        self.shared: set[str] = set()

    def visit_Name(self, node: cst.Name) -> None:
        self.read.add(node.value)

    def visit_Global(self, node: cst.Global) -> None:
        self.shared.update(item.name.value for item in node.names)


def _names(nodes: Iterable[cst.CSTNode]) -> _Names:
    found = _Names()
    for node in nodes:
        node.visit(found)
    return found


# -- the worker and its helpers ------------------------------------------------------------------------------


def _worker(module: cst.Module) -> Files | None:
    moving = _moving(module)
    if not any(isinstance(s, Definition) for s in moving):
        return None
    at = next(i for i, s in enumerate(module.body) if s in moving)
    names = [name for s in moving for name in _bound(s)]
    back = statements(f"from {PARTS} import {', '.join(names)}\n")
    stay = [s for i, s in enumerate(module.body) if i < at and s not in moving]
    rest = [s for i, s in enumerate(module.body) if i > at and s not in moving]
    imports = [s.deep_clone() for s in module.body if is_import(s)]
    if any(is_import(s) for s in rest):
        return None  # what is imported between definitions may have its reasons
    return {
        MAIN: module.with_changes(body=[*stay, *back, *rest]),
        PARTS: module.with_changes(header=[], body=[*imports, *moving]),
    }


def _moving(module: cst.Module) -> list[cst.BaseStatement]:
    """Definitions that nothing but other definitions needs, with the constants that they read."""
    plain = [s for s in module.body if isinstance(s, Definition) or _constant(s)]
    others = [s for s in module.body if s not in plain and not is_import(s)]
    called = _names(others)
    shared = _names(module.body).shared
    bound = [name for s in module.body for name in _bound(s)]
    given = {found.name for s in module.body for found in imported(s)} - _bound_in(
        s for s in module.body if not is_import(s)
    )
    moving = [s for s in plain if not _stays(s, called.read, shared, bound)]
    own = {name for s in module.body for name in _bound(s)} | _bound_in(others) | shared
    while True:
        names = {name for s in moving for name in _bound(s)}
        kept = [s for s in moving if not (_names([s]).read & own) - names - given]
        if len(kept) == len(moving):
            return [s for s in kept if isinstance(s, Definition) or _needed(s, kept)]
        moving = kept


def _stays(statement: cst.CSTNode, called: set[str], shared: set[str], bound: list[str]) -> bool:
    names = list(_bound(statement))
    if any(bound.count(name) > 1 or name in shared or name == "main" for name in names):
        return True
    if isinstance(statement, Definition):
        return any(name in called for name in names) or bool(_names([statement]).shared)
    return False


def _needed(statement: cst.CSTNode, moving: list[cst.BaseStatement]) -> bool:
    users = [s for s in moving if isinstance(s, Definition)]
    return bool(set(_bound(statement)) & _names(users).read)


def _constant(node: cst.CSTNode) -> bool:
    """`NAME = literal`."""
    if not isinstance(node, cst.SimpleStatementLine) or not isinstance(node.body[0], cst.Assign):
        return False
    literal = cst.Integer | cst.Float | cst.SimpleString
    return isinstance(node.body[0].value, literal) and len(list(_bound(node))) == 1


def _bound(statement: cst.CSTNode) -> Iterable[str]:
    """The names that a top-level statement of a simple kind binds."""
    if isinstance(statement, Definition):
        yield statement.name.value
    elif isinstance(statement, cst.SimpleStatementLine):
        for small in statement.body:
            targets = [t.target for t in small.targets] if isinstance(small, cst.Assign) else []
            targets += [small.target] if isinstance(small, cst.AnnAssign) else []
            yield from (target.value for target in targets if isinstance(target, cst.Name))


class _Stored(cst.CSTVisitor):
    def __init__(self) -> None:
        self.names: set[str] = set()

    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        self.names |= _names([node.target]).read

    def visit_For(self, node: cst.For) -> None:
        self.names |= _names([node.target]).read

    def visit_AsName(self, node: cst.AsName) -> None:
        self.names |= _names([node.name]).read

    def visit_ImportAlias(self, node: cst.ImportAlias) -> None:
        self.names |= _names([node]).read

    def visit_NamedExpr(self, node: cst.NamedExpr) -> None:
        self.names |= _names([node.target]).read

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self.names.add(node.name.value)

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self.names.add(node.name.value)


def _bound_in(nodes: Iterable[cst.CSTNode]) -> set[str]:
    """Whatever else is bound at the top level, under conditions, in loops and in the guard."""
    found = _Stored()
    for node in nodes:
        node.visit(found)
    return found.names


# -- everything ----------------------------------------------------------------------------------------------


def _everything(module: cst.Module) -> Files | None:
    guards = [s for s in module.body if is_guard(s)]
    rest = [s for s in module.body if not is_guard(s)]
    if len(guards) != 1 or module.body[-1] is not guards[0]:
        return None
    if "Celery" in _names(rest).read:
        return None  # an app in a module of its own may be started from outside, with any pool
    mentioned = _names(guards).read
    set_there = _bound_in(guards)
    if set_there & _names(rest).read:
        return None  # what the guard sets is no global of the other file
    bound = [name for s in rest for name in _bound(s)] + [found.name for s in rest for found in imported(s)]
    lost = mentioned & (_bound_in(rest) - set(bound))
    if lost or _names(rest).shared & mentioned:
        return None
    names = sorted(set(bound) & mentioned)
    head = [s for s in rest if is_docstring(s) or is_future(s)]
    back = statements(f"from {PARTS} import {', '.join(names)}\n" if names else f"import {PARTS}\n")
    return {
        MAIN: module.with_changes(body=[*(s.deep_clone() for s in head), *back, *guards]),
        PARTS: module.with_changes(header=[], body=rest),
    }


SPLIT_WORKER = Transformation("split-worker", preserving=True, apply=_worker)
SPLIT_MAIN = Transformation("split-main", preserving=True, apply=_everything)
