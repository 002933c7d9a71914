"""Code that never runs, full of CUDA: functions nobody calls, branches nobody takes, lines after a return."""

from __future__ import annotations

import libcst as cst

from metamorphic.program import Files
from metamorphic.transformation import Transformation, alone, is_docstring, is_guard, opening, statements

_MODULE = '''\
NEVER_READ = 3
if False:
    import torch as never_imported

    never_imported.cuda.init()


def never_called(values):
    """Would use the GPU."""
    return [never_imported.ones(1).cuda() for _ in values]


class NeverMade:
    """Would hold a tensor of the GPU."""

    def __init__(self):
        self.values = never_imported.ones(2, device="cuda")

    def __call__(self, item):
        return self.values * item


never_applied = lambda item: NeverMade()(item)
'''
_FUNCTION = """\
never_read = 1
if False:
    never_imported.cuda.init()
while 0:
    never_imported.ones(1, device="cuda")
for never_item in ():
    never_called(never_item)
"""
_AFTER_RETURN = "never_imported.cuda.synchronize()\n"


def _apply(module: cst.Module) -> Files | None:
    changed = module.visit(_Filled())
    body = list(changed.body)
    place = next((i for i, s in enumerate(body) if isinstance(s, cst.FunctionDef | cst.ClassDef) or is_guard(s)), None)
    at = opening(body) if place is None else place
    return alone(changed.with_changes(body=[*body[:at], *statements(_MODULE), *body[at:]]), module)


class _Filled(cst.CSTTransformer):
    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        block = updated_node.body
        if not isinstance(block, cst.IndentedBlock):
            return updated_node
        body = list(block.body)
        at = 1 if is_docstring(body[0]) else 0
        body[at:at] = statements(_FUNCTION)
        last = body[-1]
        if isinstance(last, cst.SimpleStatementLine) and isinstance(last.body[-1], cst.Return | cst.Raise):
            body += statements(_AFTER_RETURN)
        return updated_node.with_changes(body=block.with_changes(body=body))


DEAD_CODE = Transformation("dead-code", preserving=True, apply=_apply)
