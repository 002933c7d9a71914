"""Whether the failure of a worker is sure to reach the program: it fails where the result is taken.

The machine lets the failure of a worker end its parent where the work is handed over. For what gives a promise or an
iterator that is too early: the result may never be taken, or be taken where failures are caught.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat

import libcst as cst

from cudalint.fixes import names
from cudalint.fixes.proposal import Case
from cudalint.fixes.view import View, dotted

_PROMISING = frozenset({"apply_async", "map_async", "starmap_async", "submit"})
_ITERATING = frozenset({"imap", "imap_unordered"})
_TAKING = frozenset({"get", "result"})
_ENDING = frozenset({"sys.exit", "exit", "quit", "os._exit"})
_CODE = "exitcode"
_TELLING = frozenset({"exception", "successful"})
# Rules about loaders, whose iterators fail when a batch is taken.
_OF_LOADERS = frozenset({"CUD401", "CUD403"})
# What runs a function where its failure is told, and goes no further.
_SWALLOWING = "add_done_callback"


def may_be_lost(case: Case) -> bool:
    """Whether nothing takes what the worker gives, or what takes it may catch that the worker failed."""
    if _taken_one_by_one(case):
        return True
    place = case.place_of_launch
    found = None if place is None else case.call_at(place)
    if found is None:
        return False
    view, call = found
    if case.launch is not None and case.launch.family == "process" and _goes_by_exit_codes(view):
        return True
    name = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
    lazy = name in _ITERATING or (name == "map" and "Pool.map" not in case.outcome.launcher)
    if name not in _PROMISING and not lazy:
        return False
    body = view.function(call) or view.tree
    if isinstance(view.parent(call), cst.Expr) or any(_catches(view, body, call)):
        return True
    if any(map(_asks_whether_it_failed, view.calls())):
        return True
    if lazy:
        return _is_dropped(view, body, call)
    return not any(_takes(node) and not _is_swallowed(view, node) for node in view.inside(body))


def _taken_one_by_one(case: Case) -> bool:
    """Whether the next batch of a loader is taken where failures are caught: it fails there, not at ``iter()``."""
    found = case.call_at(case.outcome.anchor)
    if found is None or case.finding.code not in _OF_LOADERS:
        return False
    view, _ = found
    for call in view.calls():
        takes = isinstance(call.func, cst.Name) and call.func.value == "next"
        if takes and any(isinstance(node, cst.Try | cst.TryStar) and node.handlers for node in view.around(call)):
            return True
    return False


def _catches(view: View, body: cst.CSTNode, call: cst.Call) -> Iterator[cst.CSTNode]:
    """The statements of a body that catch something behind a launch: what is around it the machine saw.

    What stands before it comes behind it where both are in a loop, or where it is in a function that is called there.
    """
    around = list(view.around(call))
    seen = {id(node) for node in around}
    inside = around[: next((i for i, node in enumerate(around) if node is body), len(around))]
    is_behind = any(isinstance(node, cst.For | cst.While) for node in inside)
    home = view.function(call)
    for node in view.inside(body):
        is_behind = is_behind or node is call
        if not isinstance(node, cst.Try | cst.TryStar) or not node.handlers or id(node) in seen:
            continue
        if is_behind or view.function(node) is not home:
            yield node


def _goes_by_exit_codes(view: View) -> bool:
    """Whether a condition asks how a process ended, and the program goes on where that failed."""
    asking = (node for node in view.each(view.tree, cst.Attribute) if node.attr.value == _CODE)
    return any(map(_decides, asking, repeat(view)))


def _decides(asking: cst.CSTNode, view: View) -> bool:
    """Whether a condition, of which this is a part, does not end the program."""
    below = asking
    for outer in view.around(asking):
        if isinstance(outer, cst.If | cst.While | cst.IfExp) and outer.test is below:
            return not (isinstance(outer, cst.If) and _gives_up(outer.body))
        below = outer
    return False


def _gives_up(body: cst.BaseSuite) -> bool:
    """Whether a block ends by an exception, or ends the program."""
    last = body.body[-1] if body.body else None
    if isinstance(last, cst.SimpleStatementLine):
        last = last.body[-1]
    ends = isinstance(last, cst.Expr) and isinstance(last.value, cst.Call) and dotted(last.value.func) in _ENDING
    return ends or isinstance(last, cst.Raise)


def _asks_whether_it_failed(call: cst.Call) -> bool:
    """``future.exception()``, ``result.successful()``: the failure is told, not raised. A log's are given a text."""
    named = isinstance(call.func, cst.Attribute) and call.func.attr.value in _TELLING
    return named and all(argument.keyword is not None and argument.keyword.value == "timeout" for argument in call.args)


def _takes(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in _TAKING


def _is_swallowed(view: View, node: cst.CSTNode) -> bool:
    """Whether a call stands in a function that a promise runs when it is kept."""
    return any(
        isinstance(outer, cst.Call) and isinstance(outer.func, cst.Attribute) and outer.func.attr.value == _SWALLOWING
        for outer in view.around(node)
    )


def _is_dropped(view: View, body: cst.CSTNode, call: cst.Call) -> bool:
    """Whether an iterator gets a name that is not used again."""
    name = names.assigned_to(view, call)
    uses = (isinstance(node, cst.Name) and node.value == name for node in view.inside(body))
    return name is not None and sum(uses) < 2
