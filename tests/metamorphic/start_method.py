"""Fork becomes spawn, and spawn becomes fork."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from metamorphic.program import Files
from metamorphic.transformation import Transformation, alone, dotted, is_guard, statements

_METHODS = ("fork", "spawn", "forkserver")


class _Method(cst.CSTTransformer):
    """Every start method that is named."""

    def __init__(self, method: str) -> None:
        self.method, self.set = method, False

    def visit_Call(self, node: cst.Call) -> None:
        name = dotted(node.func) or ""
        self.set = self.set or name.rpartition(".")[2] == "set_start_method"

    def leave_SimpleString(self, original_node: cst.SimpleString, updated_node: cst.SimpleString) -> cst.SimpleString:
        if updated_node.evaluated_value not in _METHODS:
            return updated_node
        return updated_node.with_changes(value=f'"{self.method}"')


def _to_spawn(module: cst.Module) -> Files | None:
    """Named methods are exchanged, and the default is set first of all under the guard."""
    method = _Method("spawn")
    changed = module.visit(method)
    if not any(is_guard(s) for s in changed.body):
        return None  # every child would start its own
    return alone(changed if method.set else _first_in_guard(changed, _SET.format(method="spawn")), module)


_SET = "import multiprocessing as start_methods\n\nstart_methods.set_start_method('{method}', force=True)\n"


def _first_in_guard(module: cst.Module, text: str) -> cst.Module:
    return module.with_changes(body=[_guarded(s, statements(text)) if is_guard(s) else s for s in module.body])


def _guarded(guard: cst.BaseStatement, first: Sequence[cst.BaseStatement]) -> cst.BaseStatement:
    block = cst.ensure_type(guard, cst.If).body
    return guard.with_changes(body=block.with_changes(body=[*first, *block.body]))


def _to_fork(module: cst.Module) -> Files | None:
    """Named methods are exchanged, `spawn` of torch forks."""
    return alone(module.visit(_Method("fork")).visit(_Forked()), module)


class _Forked(cst.CSTTransformer):
    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        function = updated_node.func
        if not isinstance(function, cst.Attribute) or function.attr.value != "spawn":
            return updated_node
        method = cst.Arg(cst.SimpleString('"fork"'), cst.Name("start_method"))
        return updated_node.with_changes(
            func=function.with_changes(attr=cst.Name("start_processes")), args=[*updated_node.args, method]
        )


def _guilty(module: cst.Module) -> Files | None:
    """The parent initialises CUDA before anything else under the guard."""
    text = "import torch as first_of_all\n\nfirst_of_all.cuda.init()\n"
    return alone(_first_in_guard(module, text), module)


def _asked(module: cst.Module) -> Files | None:
    """The parent only asks for the number of GPUs, and then whether there is one."""
    text = "import torch as first_of_all\n\nprint(first_of_all.cuda.is_available())\n"
    return alone(_first_in_guard(module, text), module)


SPAWN = Transformation("to-spawn", preserving=False, apply=_to_spawn)
FORK = Transformation("to-fork", preserving=False, apply=_to_fork)
GUILTY = Transformation("parent-initialises", preserving=False, apply=_guilty)
ASKED = Transformation("parent-asks", preserving=False, apply=_asked)
