"""What a launcher runs, wrapped: in a partial, a bound method, a callable object, a lambda."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from metamorphic.program import Files
from metamorphic.transformation import Transformation, alone, dotted, imported, opening, statements

_KEYWORDS = frozenset({"target", "initializer", "collate_fn", "worker_init_fn"})
_METHODS = frozenset(
    {
        "map", "imap", "imap_unordered", "starmap", "apply", "map_async", "starmap_async", "apply_async", "submit",
        "filter", "spawn", "start_processes",
    }
)  # fmt: skip
_FUNCTIONS = frozenset({"delayed", "spawn", "start_processes", "notebook_launcher"})

Wrap = Callable[[cst.BaseExpression], cst.BaseExpression]


class _Wrapper(cst.CSTTransformer):
    """Wraps the callables that are handed to launchers, but for those of libraries, which may start something."""

    def __init__(self, wrap: Wrap, unpickled: bool, libraries: frozenset[str]) -> None:
        self.wrap, self.unpickled, self.wrapped, self.libraries = wrap, unpickled, 0, libraries

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        args = list(updated_node.args)
        for i, argument in enumerate(args):
            if self._launched(original_node, i) and isinstance(argument.value, cst.Name | cst.Attribute | cst.Lambda):
                args[i] = argument.with_changes(value=self.wrap(argument.value))
                self.wrapped += 1
        return updated_node.with_changes(args=args)

    def _launched(self, call: cst.Call, index: int) -> bool:
        argument, function = call.args[index], dotted(call.func) or _last(call.func)
        if argument.star or dotted(argument.value) in self.libraries:
            return False
        last = function.rpartition(".")[2]
        if argument.keyword is not None:
            return argument.keyword.value in _KEYWORDS and (not self.unpickled or last in ("Process", "Thread"))
        if index or (self.unpickled and last not in ("delayed", "Thread")):
            return False
        return last in _METHODS if isinstance(call.func, cst.Attribute) else last in _FUNCTIONS


def _last(function: cst.BaseExpression) -> str:
    return function.attr.value if isinstance(function, cst.Attribute) else ""


def _with(module: cst.Module, wrap: Wrap, definition: str, *, unpickled: bool = False) -> Files | None:
    wrapper = _Wrapper(wrap, unpickled, frozenset(found.name for s in module.body for found in imported(s)))
    changed = module.visit(wrapper)
    if not wrapper.wrapped:
        return None
    at = opening(changed.body)
    return alone(changed.with_changes(body=[*changed.body[:at], *statements(definition), *changed.body[at:]]), module)


def _partial(module: cst.Module) -> Files | None:
    return _with(module, lambda f: _call("bind_nothing", f), "from functools import partial as bind_nothing\n")


_HOLDER = '''\
class HolderOfOne:
    """Holds a function."""

    def __init__(self, function):
        self.function = function

    def {name}(self, *args, **kwargs):
        return self.function(*args, **kwargs)


'''


def _callable(module: cst.Module) -> Files | None:
    return _with(module, lambda f: _call("HolderOfOne", f), _HOLDER.format(name="__call__"))


def _method(module: cst.Module) -> Files | None:
    return _with(
        module, lambda f: cst.Attribute(_call("HolderOfOne", f), cst.Name("apply_it")), _HOLDER.format(name="apply_it")
    )


def _lambda(module: cst.Module) -> Files | None:
    """Where nothing pickles it: a Process, a Thread, joblib's own pickler."""

    def wrap(function: cst.BaseExpression) -> cst.BaseExpression:
        made = cst.ensure_type(cst.parse_expression("lambda *args, **kwargs: called(*args, **kwargs)"), cst.Lambda)
        body = cst.ensure_type(made.body, cst.Call).with_changes(func=_callee(function))
        return made.with_changes(body=body)

    return _with(module, wrap, "", unpickled=True)


def _callee(function: cst.BaseExpression) -> cst.BaseExpression:
    if not isinstance(function, cst.Lambda) or function.lpar:
        return function
    return function.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def _call(name: str, argument: cst.BaseExpression) -> cst.Call:
    return cst.Call(cst.Name(name), [cst.Arg(argument)])


PARTIAL = Transformation("partial", preserving=True, apply=_partial)
CALLABLE = Transformation("callable", preserving=True, apply=_callable)
METHOD = Transformation("method", preserving=True, apply=_method)
LAMBDA = Transformation("lambda", preserving=False, apply=_lambda)
