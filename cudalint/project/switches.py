"""What callers may give that nobody has to: for some numbers and switches a function starts processes."""

from __future__ import annotations

from collections.abc import Callable

from cudalint.ir import nodes as ir
from cudalint.machine.values import Value, unknown


def switches(module: ir.Module, function: ir.Function | None) -> dict[str, Value]:
    """The numbers and switches that a function takes and that have a default, as arguments that are not known."""
    return {} if function is None else _unknown(module, function, _counts_or_switches)


def left_out(module: ir.Module, function: ir.Function) -> dict[str, Value]:
    """The parameters that have None for their default, as arguments that are not known."""
    return _unknown(module, function, _is_left_out)


def _unknown(module: ir.Module, function: ir.Function, asked: Callable[[ir.Param], bool]) -> dict[str, Value]:
    given = [param.name for param in function.params if not param.unnamed and asked(param)]
    return {name: unknown("param", module.name, function.ordinal, name) for name in given}


def _is_left_out(param: ir.Param) -> bool:
    return isinstance(param.default, ir.Const) and param.default.value is None


def _counts_or_switches(param: ir.Param) -> bool:
    """Whether a parameter has a number or a truth value for its default, or None in the place of one."""
    if not isinstance(param.default, ir.Const):
        return False
    value = param.default.value
    return isinstance(value, int) or (value is None and param.type in ("int", "bool"))
