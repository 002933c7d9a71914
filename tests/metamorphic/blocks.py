"""Bodies within a block that changes nothing, definitions in another order, and the main guard's body in a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import libcst as cst

from metamorphic.program import Files
from metamorphic.transformation import Transformation, alone, is_docstring, is_guard, opening, statements

Body = Sequence[cst.BaseStatement]
_IMPORT = "import contextlib as managers\n"
_HELPER = "main_part"


# -- a block around bodies ------------------------------------------------------------------------------------


class _Around(cst.CSTTransformer):
    """Puts the bodies of functions and of the main guard into the place of `pass` in some text."""

    def __init__(self, block: str) -> None:
        self.block = block

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        return updated_node.with_changes(body=self._around(updated_node.body))

    def leave_If(self, original_node: cst.If, updated_node: cst.If) -> cst.If:
        return (
            updated_node.with_changes(body=self._around(updated_node.body)) if is_guard(original_node) else updated_node
        )

    def _around(self, suite: cst.BaseSuite) -> cst.BaseSuite:
        if not isinstance(suite, cst.IndentedBlock):
            return suite
        said = 1 if is_docstring(suite.body[0]) else 0
        if len(suite.body) == said:
            return suite
        (block,) = statements(self.block)
        filled = block.visit(_Filled(suite.body[said:]))
        return suite.with_changes(body=[*suite.body[:said], filled])


class _Filled(cst.CSTTransformer):
    """The first `pass` becomes a body; statements within it are left alone."""

    def __init__(self, body: Body) -> None:
        self.body: Body | None = body

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        body, self.body = self.body, None
        return updated_node if body is None else updated_node.with_changes(body=body)


def _within(block: str, head: str = "") -> Callable[[cst.Module], Files | None]:
    def apply(module: cst.Module) -> Files | None:
        changed = module.visit(_Around(block))
        if changed.code == module.code:
            return None
        at = opening(changed.body)
        return alone(changed.with_changes(body=[*changed.body[:at], *statements(head), *changed.body[at:]]), module)

    return apply


# -- definitions in another order ------------------------------------------------------------------------------


def _backwards(module: cst.Module) -> Files | None:
    """Functions that stand one after the other, and evaluate nothing where they are defined."""
    body: list[cst.BaseStatement] = []
    run: list[cst.BaseStatement] = []
    for statement in (*module.body, None):
        if statement is not None and _evaluates_nothing(statement):
            run.append(statement)
            continue
        body += reversed(run)
        run = []
        if statement is not None:
            body.append(statement)
    names = [s.name.value for s in body if isinstance(s, cst.FunctionDef)]
    return alone(module.with_changes(body=body), module) if len(set(names)) == len(names) else None


def _evaluates_nothing(statement: cst.CSTNode) -> bool:
    if not isinstance(statement, cst.FunctionDef) or statement.decorators or statement.returns is not None:
        return False
    given = statement.params
    every = (*given.posonly_params, *given.params, *given.kwonly_params)
    return all(one.default is None and one.annotation is None for one in every)


# -- a helper ----------------------------------------------------------------------------------------------------


class _Bound(cst.CSTVisitor):
    """What a body binds, and whether it defines what is known by where it is defined."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.defines = False

    def visit_AssignTarget_target(self, node: cst.AssignTarget) -> None:
        self._bind(node.target)

    def visit_AsName(self, node: cst.AsName) -> None:
        self._bind(node.name)

    def visit_For_target(self, node: cst.For) -> None:
        self._bind(node.target)

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        self._bind(node.target)

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        self._bind(node.target)

    def visit_NamedExpr(self, node: cst.NamedExpr) -> None:
        self._bind(node.target)

    def visit_ImportAlias(self, node: cst.ImportAlias) -> None:
        self.defines = True

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self.defines = True

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self.defines = True

    def visit_Lambda(self, node: cst.Lambda) -> None:
        self.defines = True

    def visit_Del(self, node: cst.Del) -> None:
        self.defines = True

    def _bind(self, node: cst.CSTNode) -> None:
        found = _Read()
        node.visit(found)
        self.names |= found.names


class _Read(cst.CSTVisitor):
    def __init__(self) -> None:
        self.names: set[str] = set()

    def visit_Name(self, node: cst.Name) -> None:
        self.names.add(node.value)


def _extracted(module: cst.Module) -> Files | None:
    """What the main guard runs, in a function, where nothing else reads what it sets."""
    body = list(module.body)
    last = body[-1]
    if not isinstance(last, cst.If) or not is_guard(last) or not isinstance(last.body, cst.IndentedBlock):
        return None
    bound, read = _Bound(), _Read()
    last.visit(bound)
    for statement in body[:-1]:
        statement.visit(read)
    if bound.defines or bound.names & read.names or last.orelse is not None:
        return None
    helper, call = statements(f"def {_HELPER}():\n    pass\n\n\n{_HELPER}()\n")
    helper = cst.ensure_type(helper, cst.FunctionDef).with_changes(body=last.body)
    guard = last.with_changes(body=last.body.with_changes(body=[call], footer=[]))
    return alone(module.with_changes(body=[*body[:-1], helper, guard]), module)


IN_IF = Transformation("in-if", preserving=True, apply=_within("if True:\n    pass\n"))
IN_TRY = Transformation("in-try", preserving=True, apply=_within("try:\n    pass\nfinally:\n    print(end='')\n"))
IN_WITH = Transformation("in-with", preserving=True, apply=_within("with managers.nullcontext():\n    pass\n", _IMPORT))
IN_LOOP = Transformation("in-loop", preserving=True, apply=_within("for _once in range(1):\n    pass\n"))
BACKWARDS = Transformation("backwards", preserving=True, apply=_backwards)
EXTRACTED = Transformation("extracted", preserving=True, apply=_extracted)
