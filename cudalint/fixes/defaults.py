"""Parameters whose defaults are taken from around a local function, for where that is not: they are given by name."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from cudalint.fixes import layout, names
from cudalint.fixes.captures import Function, is_constant
from cudalint.fixes.edits import Change
from cudalint.fixes.view import View, dotted
from cudalint.structs import Frozen

# Launchers that call a function with as many arguments as they are given after it, and those that have them in a tuple.
_AS_GIVEN = frozenset({"map", "imap", "imap_unordered", "map_async", "submit"})
_IN_A_TUPLE = frozenset({"apply", "apply_async", "Process"})


class Taken(Frozen):
    """Parameters whose defaults are names from around their function, and these names."""

    parameters: tuple[cst.Param, ...] = ()
    values: tuple[cst.Name, ...] = ()
    # How many parameters by position stand before them, where some of them could be given so.
    before: int | None = None

    @property
    def is_positional(self) -> bool:
        """Whether some of them could be given by position."""
        return self.before is not None

    def by_name(self, view: View) -> list[Change]:
        """The parameters without defaults, to be given by name."""
        changes = [
            Change(view.after(param.annotation or param.name, "").start, view.after(value, "").start, "")
            for param, value in zip(self.parameters, self.values, strict=True)
        ]
        return [view.before(self.parameters[0].name, "*, "), *changes] if self.is_positional else changes

    def leaves_to(self, view: View, use: cst.CSTNode) -> bool:
        """Whether a use of the function gives none of them by position."""
        if self.before is None:
            return True
        call = view.parent(use)
        if isinstance(call, cst.Call) and call.func is use:
            given = _by_position(call.args)
        else:
            given = _launched_with(view, use)
        return given is not None and given <= self.before


NONE_TAKEN = Taken()


def taken_defaults(view: View, function: Function) -> Taken | None:
    """The parameters whose defaults mean nothing at the top of the module; None where they are not just handed over."""
    params, outer = function.params, view.outermost(function)
    found = [
        param
        for param in layout.all_parameters(params)
        if param.default is not None and outer is not None and not is_readable_at(view, [param.default], outer)
    ]
    values = [param.default for param in found if isinstance(param.default, cst.Name)]
    is_sent_here = isinstance(function, cst.Lambda) and isinstance(view.parent(function), cst.Arg)
    if len(values) < len(found) or not (is_sent_here or all(is_constant(view, v, function) for v in values)):
        return None
    placed = [param for param in found if param in params.params]
    before = len(params.posonly_params) + len(params.params) - len(placed)
    if any(param in params.posonly_params for param in found):
        return None
    is_last = list(params.params[len(params.params) - len(placed) :]) == placed
    if placed and (not is_last or params.kwonly_params or not isinstance(params.star_arg, cst.MaybeSentinel)):
        return None
    return Taken(tuple(found), tuple(values), before if placed else None)


def is_readable_at(view: View, header: Sequence[cst.CSTNode], outer: cst.CSTNode) -> bool:
    """Whether what is read when a function is defined means the same at the top of the module."""
    if any(isinstance(n, cst.Call) for node in header for n in view.inside(node)):
        return False
    return names.known_at(view, frozenset[str]().union(*(names.read(view, node) for node in header)), outer)


def _by_position(args: Sequence[cst.Arg]) -> int | None:
    """How many arguments are given by position; None where that is not shown."""
    return None if any(arg.star for arg in args) else sum(arg.keyword is None for arg in args)


def _launched_with(view: View, use: cst.CSTNode) -> int | None:
    """How many arguments by position a launcher calls a function with that it is given."""
    arg = view.parent(use)
    call = None if arg is None else view.parent(arg)
    if not isinstance(arg, cst.Arg) or not isinstance(call, cst.Call):
        return None
    method = (dotted(call.func) or "").rpartition(".")[2]
    given = _by_position(call.args)
    if method in _IN_A_TUPLE:
        tasks = view.keyword(call, "args") or next((a for a in call.args if isinstance(a.value, cst.Tuple)), None)
        if tasks is None:
            return 0 if given is not None and given <= 1 else None
        return len(tasks.value.elements) if isinstance(tasks.value, cst.Tuple) else None
    if method in _AS_GIVEN:
        # An executor's takes several, one for each parameter; a pool's last one says how large its chunks are.
        return None if given is None else given - 1
    return None
