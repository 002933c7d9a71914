"""Queues, pipes and locks of another context than the workers'."""

from __future__ import annotations

import libcst as cst

from metamorphic.program import Files
from metamorphic.transformation import Transformation, alone, opening, statements

_SHARED = frozenset(
    {"Queue", "SimpleQueue", "JoinableQueue", "Lock", "RLock", "Event", "Semaphore", "Barrier", "Condition", "Value"}
)
_NOT_PROCESSES = frozenset({"queue", "threading", "manager", "asyncio", "torch", "cuda", "Manager"})


class _Moved(cst.CSTTransformer):
    def __init__(self, method: str) -> None:
        self.method = method

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        function = updated_node.func
        if not isinstance(function, cst.Attribute) or function.attr.value not in _SHARED:
            return updated_node
        if _last(function.value) in _NOT_PROCESSES:
            return updated_node
        other = cst.parse_expression(f'other_context.get_context("{self.method}")')
        return updated_node.with_changes(func=function.with_changes(value=other))


def _last(receiver: cst.BaseExpression) -> str:
    if isinstance(receiver, cst.Call):
        return _last(receiver.func)
    if isinstance(receiver, cst.Attribute):
        return receiver.attr.value
    return receiver.value if isinstance(receiver, cst.Name) else ""


def _moved(module: cst.Module, method: str) -> Files | None:
    changed = module.visit(_Moved(method))
    if changed.code == module.code:
        return None
    at = opening(changed.body)
    line = statements("import torch.multiprocessing as other_context\n")
    return alone(changed.with_changes(body=[*changed.body[:at], *line, *changed.body[at:]]), module)


def _fork(module: cst.Module) -> Files | None:
    return _moved(module, "fork")


def _spawn(module: cst.Module) -> Files | None:
    return _moved(module, "spawn")


QUEUE_FORK = Transformation("queue-of-fork", preserving=False, apply=_fork)
QUEUE_SPAWN = Transformation("queue-of-spawn", preserving=False, apply=_spawn)
