"""Questions to the driver: whether a program asks any, and those that leave the driver alone."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from cudalint.fixes.proposal import Case, Proposal, in_file
from cudalint.fixes.view import View, dotted
from cudalint.ir import nodes as ir
from cudalint.ir.walk import mentions

_QUESTIONS = frozenset({"is_available", "device_count", "is_initialized"})
_TIGHTER = (cst.BinaryOperation, cst.Comparison, cst.ComparisonTarget, cst.UnaryOperation, cst.Attribute, cst.Await)


def asks_for_gpus(module: ir.Module) -> bool:
    """Whether some code of a module asks for GPUs: then the program may also run without one."""
    return mentions(module, _QUESTIONS)


def count_instead(case: Case) -> Iterator[Proposal]:
    """``torch.cuda.device_count() > 0`` for ``is_available()``, where that is what spoils the fork."""
    found = case.cause_call()
    if found is None or not _asks(*found):
        return
    view, call = found
    assert isinstance(call.func, cst.Attribute)
    counted = f"{view.source(call.func.value)}.device_count()"
    around = view.parent(call)
    if isinstance(around, cst.UnaryOperation) and isinstance(around.operator, cst.Not) and not call.lpar:
        change = view.replace(around, f"{counted} == 0")
    else:
        # Where nothing takes the answer, nothing is compared.
        asked = counted if isinstance(around, cst.Expr) else f"{counted} > 0"
        change = view.replace(call, f"({asked})" if _binds_tighter(view, call) else asked)
    yield Proposal(
        "ask `torch.cuda.device_count() > 0`, which leaves the driver alone, in place of `is_available()`",
        in_file(view, [change]),
        doubt="the two can differ where a driver is installed and broken",
    )


def _asks(view: View, call: cst.Call) -> bool:
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "is_available" or call.args:
        return False
    name = dotted(call.func)
    root = view.bindings().get(name.partition(".")[0])
    if root is None:
        return False
    home = root.module if root.name is None else f"{root.module}.{root.name}"
    full = ".".join([home.partition(".")[0] if root.name is None else home, *name.split(".")[1:]])
    return full == "torch.cuda.is_available" or (root.module, name.split(".")[1:]) == ("torch.cuda", ["is_available"])


def _binds_tighter(view: View, call: cst.Call) -> bool:
    """Whether what is around the call would tear a comparison apart."""
    return not call.lpar and isinstance(view.parent(call), _TIGHTER)
