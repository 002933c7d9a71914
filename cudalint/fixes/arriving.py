"""Where the results of tasks arrive that a program asks for later: ``future.result()``, ``pending.get()``.

A future is followed through the names and containers of one function. Where it goes anywhere else, nobody knows who
asks for its result.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

import libcst as cst

from cudalint.fixes.loaders import dotted_attribute
from cudalint.fixes.view import View, dotted

# What gives the result of a task, and what only tells how far it is.
_ASKS = frozenset({"get", "result"})
_TELLS = frozenset({"ready", "successful", "done", "running", "cancel", "cancelled", "wait", "exception"})
# Functions that go through futures, and those that give nothing of them away.
_GOES_THROUGH = frozenset({"as_completed", "list", "tuple", "iter", "reversed", "tqdm"})
_LOOKS = frozenset({"wait", "len", "print"})
_ADDS = frozenset({"append", "add"})
_PARTS = frozenset({"values", "keys", "items"})


class Kept(Enum):
    """How a name has a future: it is one, or holds some."""

    ITSELF = "it is one"
    ITEMS = "in a list or a set"
    VALUES = "as values of a dictionary"
    KEYS = "as keys of a dictionary"


def arrivals_of(view: View, call: cst.Call) -> list[cst.Call]:
    """The calls that give what a task gave; none where a future goes where it is not followed."""
    asked = _asked(view, call)
    if asked is not None:
        return [asked]
    kept = _keeper(view, call)
    if kept is None:
        return []
    name, how, own = kept
    scope = view.function(call) or view.tree
    found: list[cst.Call] = []
    for use in _uses(view, scope, name):
        if view.parent(use) in own or use in own:
            continue
        taken = _taken(view, use, how)
        if taken is None:
            return []
        found.extend(taken)
    return list(dict.fromkeys(found))


def _asked(view: View, future: cst.CSTNode) -> cst.Call | None:
    """``future.result()`` for an expression that is a future."""
    attribute = view.parent(future)
    call = None if attribute is None else view.parent(attribute)
    if isinstance(attribute, cst.Attribute) and isinstance(call, cst.Call) and attribute.attr.value in _ASKS:
        return call if call.func is attribute else None
    return None


def _keeper(view: View, call: cst.Call) -> tuple[str, Kept, list[cst.CSTNode]] | None:
    """The name that keeps a future, how it does so, and the nodes around which the name is given that."""
    above = view.parent(call)
    match above:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name) as target)]):
            return name, Kept.ITSELF, [target]
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript(value=cst.Name(value=name) as owner))]):
            return _of_empty(view, call, name, Kept.VALUES, [owner])
        case cst.ListComp() | cst.SetComp() | cst.DictComp():
            how = Kept.ITEMS if not isinstance(above, cst.DictComp) else _side(above, call)
            match view.parent(above):
                case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name) as target)]):
                    return name, how, [target]
        case cst.Arg():
            outer = view.parent(above)
            match outer:
                case cst.Call(func=cst.Attribute(value=cst.Name(value=name) as owner, attr=cst.Name(value=method))):
                    return _of_empty(view, call, name, Kept.ITEMS, [owner]) if method in _ADDS else None
        case cst.Index():
            subscript = view.parent(view.parent(above) or above)
            match subscript:
                case cst.Subscript(value=cst.Name(value=name) as owner):
                    return _of_empty(view, call, name, Kept.KEYS, [owner])
    return None


def _side(made: cst.DictComp, call: cst.Call) -> Kept:
    return Kept.KEYS if made.key is call else Kept.VALUES


def _of_empty(
    view: View, call: cst.Call, name: str, how: Kept, own: list[cst.CSTNode]
) -> tuple[str, Kept, list[cst.CSTNode]] | None:
    """A container that begins empty, in the function where futures are put into it."""
    scope = view.function(call) or view.tree
    begun = [
        node.targets[0].target
        for node in view.inside(scope)
        if isinstance(node, cst.Assign) and dotted(node.targets[0].target) == name and _is_empty(node.value)
    ]
    return (name, how, [*own, *begun]) if len(begun) == 1 else None


def _is_empty(value: cst.BaseExpression) -> bool:
    match value:
        case cst.List(elements=elements) | cst.Dict(elements=elements):
            return not elements
        case cst.Call(func=cst.Name(value="list" | "set" | "dict"), args=args):
            return not args
    return False


def _uses(view: View, scope: cst.CSTNode, name: str) -> Iterator[cst.Name]:
    """Where a name is used in a function, and in those within it."""
    for node in view.inside(scope):
        if isinstance(node, cst.Name) and node.value == name:
            above = view.parent(node)
            is_label = isinstance(above, cst.Attribute) and above.attr is node
            if not is_label and not (isinstance(above, cst.Arg) and above.keyword is node):
                yield node


def _taken(view: View, use: cst.Name, how: Kept) -> list[cst.Call] | None:
    """What asks for results where a name is used; None where the futures go elsewhere."""
    if how is Kept.ITSELF:
        return _of_future(view, use)
    above = view.parent(use)
    match above:
        case cst.Subscript() if above.value is use and how is Kept.KEYS:
            # What a future stands for.
            return []
        case cst.Subscript() if above.value is use:
            return _of_future(view, above)
        case cst.Arg() if _is_given_to(view, above, _LOOKS):
            return []
    return _of_loop(view, use, how)


def _of_future(view: View, future: cst.CSTNode) -> list[cst.Call] | None:
    """What asks for the result of one future."""
    asked = _asked(view, future)
    if asked is not None:
        return [asked]
    above = view.parent(future)
    if isinstance(above, cst.Attribute) and above.attr.value in _TELLS:
        return []
    if isinstance(above, cst.Arg) and _is_given_to(view, above, _LOOKS):
        return []
    # It is what something is looked up by.
    return [] if isinstance(above, cst.Index) else None


def _is_given_to(view: View, arg: cst.Arg, functions: frozenset[str]) -> bool:
    call = view.parent(arg)
    return isinstance(call, cst.Call) and (dotted(call.func) or "").rpartition(".")[2] in functions


def _of_loop(view: View, use: cst.CSTNode, how: Kept) -> list[cst.Call] | None:
    """What asks for results in a loop over the futures that a name holds."""
    through, position = _gone_through(view, use, how)
    above = view.parent(through)
    if not isinstance(above, cst.For | cst.CompFor) or above.iter is not through:
        return None
    target = _target(above.target, position)
    body = _body(view, above)
    if target is None or body is None:
        return None
    found: list[cst.Call] = []
    for inner in _uses(view, body, target):
        if _is_within(view, inner, above.target):
            continue
        taken = _of_future(view, inner)
        if taken is None:
            return None
        found.extend(taken)
    return found


def _gone_through(view: View, use: cst.CSTNode, how: Kept) -> tuple[cst.CSTNode, int | None]:
    """The whole expression that a loop goes through, and which part of each element a future is."""
    position = {Kept.VALUES: 0, Kept.KEYS: None}.get(how)
    through: cst.CSTNode = use
    while True:
        above = view.parent(through)
        outer = None if above is None else view.parent(above)
        match above, outer:
            case cst.Arg(), cst.Call() if _is_given_to(view, above, _GOES_THROUGH) and outer.args[0] is above:
                through = outer
            case cst.Arg(), cst.Call() if dotted(outer.func) == "enumerate" and position is None:
                through, position = outer, 1
            case cst.Arg(), cst.Call() if dotted(outer.func) == "zip" and position is None and above in outer.args:
                through, position = outer, list(outer.args).index(above)
            case cst.Attribute(attr=cst.Name(value=part)), cst.Call() if dotted_attribute(outer) in _PARTS:
                position = {"values": None, "items": 1 if how is Kept.VALUES else 0}.get(part)
                through = outer
            case _:
                return through, position


def _target(target: cst.BaseAssignTargetExpression, position: int | None) -> str | None:
    match target:
        case cst.Name(value=name) if position is None:
            return name
        case cst.Tuple(elements=elements) if position is not None and position < len(elements):
            found = elements[position].value
            return found.value if isinstance(found, cst.Name) else None
    return None


def _body(view: View, loop: cst.For | cst.CompFor) -> cst.CSTNode | None:
    """Where the variable of a loop is used: its body, or the whole comprehension."""
    return loop.body if isinstance(loop, cst.For) else view.parent(loop)


def _is_within(view: View, node: cst.CSTNode, outer: cst.CSTNode) -> bool:
    return node is outer or any(each is outer for each in view.around(node))
