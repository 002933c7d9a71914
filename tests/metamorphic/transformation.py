"""What a transformation is, and small helpers that several of them share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from metamorphic.program import MAIN, Files


@dataclass(frozen=True)
class Transformation:
    """A change of a program. `apply` answers None where the program has nothing of the kind.

    `preserving`: the changed program does what the program did, so that its findings stay; otherwise paper CUDA says
    what it does. `moves`: it changes which device is meant, so that what the program prints of devices tells no harm.
    """

    name: str
    preserving: bool
    apply: Callable[[cst.Module], Files | None]
    moves: bool = False


def alone(module: cst.Module, before: cst.Module) -> Files | None:
    """A change within one file; None where nothing changed."""
    return None if module.code == before.code else {MAIN: module}


def statements(text: str) -> Sequence[cst.BaseStatement | cst.SimpleStatementLine]:
    """Some statements, each with nodes of its own."""
    return cst.parse_module(text).body


def is_guard(node: cst.CSTNode) -> bool:
    """Whether this is `if __name__ == "__main__":`."""
    if not isinstance(node, cst.If) or not isinstance(node.test, cst.Comparison):
        return False
    names = [node.test.left, *(target.comparator for target in node.test.comparisons)]
    return any(isinstance(name, cst.Name) and name.value == "__name__" for name in names)


def is_import(node: cst.CSTNode) -> bool:
    """Whether a statement consists of imports."""
    if not isinstance(node, cst.SimpleStatementLine):
        return False
    return all(isinstance(small, cst.Import | cst.ImportFrom) for small in node.body)


def is_docstring(node: cst.CSTNode) -> bool:
    """Whether a statement is a text and nothing else."""
    if not isinstance(node, cst.SimpleStatementLine) or not isinstance(node.body[0], cst.Expr):
        return False
    return isinstance(node.body[0].value, cst.SimpleString | cst.ConcatenatedString)


def is_future(node: cst.CSTNode) -> bool:
    """Whether a statement is `from __future__ import ...`, which nothing may precede."""
    if not isinstance(node, cst.SimpleStatementLine) or not isinstance(node.body[0], cst.ImportFrom):
        return False
    return isinstance(node.body[0].module, cst.Name) and node.body[0].module.value == "__future__"


def opening(body: Sequence[cst.BaseStatement]) -> int:
    """How many statements of a module come before everything else: its docstring and its future imports."""
    for i, statement in enumerate(body):
        if not is_docstring(statement) and not is_future(statement):
            return i
    return len(body)


def dotted(node: cst.CSTNode | None) -> str | None:
    """`a.b.c` as text; None for other expressions."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        left = dotted(node.value)
        return None if left is None else f"{left}.{node.attr.value}"
    return None


@dataclass(frozen=True)
class Imported:
    """One name that an import statement binds: `module` and, for `from module import`, what of it."""

    name: str
    module: str
    member: str | None
    renamed: bool


def imported(statement: cst.CSTNode) -> Iterator[Imported]:
    """What an import statement binds; stars and relative imports bind nothing that is known."""
    for small in statement.body if isinstance(statement, cst.SimpleStatementLine) else ():
        if isinstance(small, cst.Import):
            for alias in small.names:
                yield _of_import(alias)
        elif isinstance(small, cst.ImportFrom) and not isinstance(small.names, cst.ImportStar):
            module = dotted(small.module)
            for alias in small.names if module and not small.relative else ():
                yield _of_from(module or "", alias)


def _of_import(alias: cst.ImportAlias) -> Imported:
    module = dotted(alias.name) or ""
    name = _asname(alias)
    return Imported(name or module.partition(".")[0], module, None, name is not None)


def _of_from(module: str, alias: cst.ImportAlias) -> Imported:
    member = dotted(alias.name) or ""
    name = _asname(alias)
    return Imported(name or member, module, member, name is not None)


def _asname(alias: cst.ImportAlias) -> str | None:
    return alias.asname.name.value if alias.asname and isinstance(alias.asname.name, cst.Name) else None


class Renamed(cst.CSTTransformer):
    """Names, as they are read and bound, under other names; attributes, keywords and imports stay."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def visit_Attribute_attr(self, node: cst.Attribute) -> None:
        self._kept(node.attr)

    def visit_Arg_keyword(self, node: cst.Arg) -> None:
        if node.keyword is not None:
            self._kept(node.keyword)

    def visit_Import(self, node: cst.Import) -> bool:
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        return False

    def _kept(self, node: cst.Name) -> None:
        self.kept.add(id(node))

    @property
    def kept(self) -> set[int]:
        """Name nodes that are no variables."""
        return self.__dict__.setdefault("_kept_nodes", set())

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        if id(original_node) in self.kept or updated_node.value not in self.names:
            return updated_node
        return self.replaced(updated_node)

    def replaced(self, node: cst.Name) -> cst.BaseExpression:
        """The expression that stands for a name."""
        return node.with_changes(value=self.names[node.value])
