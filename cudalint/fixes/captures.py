"""What local functions and lambdas close over, and whether they can stand at the top of their module."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from cudalint.fixes import layout, names
from cudalint.fixes.view import View
from cudalint.structs import Frozen

Function = cst.FunctionDef | cst.Lambda
# These look at what is around the code that calls them.
_LOOK_AROUND = frozenset({"super", "__class__", "locals", "vars", "eval", "exec", "dir"})
_UNMOVED = (cst.Global, cst.Nonlocal, cst.ClassDef, cst.Match, cst.Yield, cst.Await)
_PERHAPS = (cst.If, cst.For, cst.While, cst.Try, cst.TryStar)


class Capture(Frozen):
    """The names that a function reads from around itself, in the order in which they stand there.

    ``varies``: one of them is the variable of a loop, or set in one: it may be another one when the function runs.
    """

    names: tuple[str, ...]
    varies: bool = False


def capture(view: View, function: Function) -> Capture | None:
    """What a function closes over; None where that may change, or where the function cannot stand elsewhere."""
    body = function.body
    if any(isinstance(n, _UNMOVED) for n in view.inside(body)):
        return None
    found: dict[str, None] = {}
    varies = False
    for name in _free(view, function):
        if name in _LOOK_AROUND or (name.startswith("__") and not name.endswith("__")):
            return None
        around = binding_scope(view, function, name)
        if _is_itself(view, function, name, around):
            # It is found by that name wherever it stands.
            continue
        if around is None:
            if not _is_global(view, name):
                return None
            if not _only_main_sets(view, name):
                continue
        elif not _is_settled(view, around, name, function):
            return None
        found[name] = None
        varies = varies or around is None or _varies(view, around, name)
    if any(isinstance(n, cst.Attribute) and _is_mangled(n.attr.value) for n in view.inside(body)):
        return None
    return Capture(tuple(found), varies)


def _is_itself(view: View, function: Function, name: str, scope: cst.CSTNode | None) -> bool:
    """Whether a function calls itself by a name that nothing else has where it is defined."""
    if not isinstance(function, cst.FunctionDef) or not isinstance(scope, cst.FunctionDef):
        return False
    bound = names.only_binding(view, scope, name)
    return bound is function and not any(name in _declared(node) for node in view.inside(scope))


def own_uses(view: View, function: cst.FunctionDef) -> list[cst.Name]:
    """Where a function reads its own name."""
    name = function.name.value
    uses = (node for node in view.each(function.body, cst.Name) if node.value == name)
    return [use for use in uses if names.is_variable(view, use) and not _is_bound_inside(view, use, function)]


def _varies(view: View, scope: cst.CSTNode, name: str) -> bool:
    """Whether a name of a scope is set round by round."""
    if not isinstance(scope, cst.FunctionDef):
        return True
    bound = [node for n, node in names.bindings(view, scope) if n == name]
    loops = (n for node in bound for n in (node, *view.around(node)) if isinstance(n, cst.For | cst.While))
    return any(scope in view.around(loop) for loop in loops)


def is_constant(view: View, value: cst.BaseExpression, function: Function) -> bool:
    """Whether a name that a function reads, or a constant, is the same whenever it is read."""
    if not isinstance(value, cst.Name):
        return isinstance(value, cst.SimpleString | cst.Integer | cst.Float)
    scope = binding_scope(view, function, value.value)
    if scope is not None:
        return _is_settled(view, scope, value.value, function) and not _varies(view, scope, value.value)
    return names.only_binding(view, view.tree, value.value) is not None and not is_declared(view, value.value)


def _is_mangled(name: str) -> bool:
    return name.startswith("__") and not name.endswith("__")


def _free(view: View, function: Function) -> Iterator[str]:
    """The names that the body of a function reads and does not bind."""
    for node in view.inside(function.body):
        if isinstance(node, cst.Name) and names.is_variable(view, node) and not _is_bound_inside(view, node, function):
            yield node.value


def _is_bound_inside(view: View, name: cst.Name, function: Function) -> bool:
    for around in view.around(name):
        if name.value in bound_by_scope(view, around):
            return True
        if around is function:
            break
    return False


def bound_by_scope(view: View, scope: cst.CSTNode) -> set[str]:
    """The names that belong to a function, a lambda or a comprehension."""
    match scope:
        case cst.FunctionDef():
            return {n for n, _ in names.bindings(view, scope)} | _parameters(view, scope.params)
        case cst.Lambda(params=params):
            return _parameters(view, params)
        case cst.GeneratorExp() | cst.ListComp() | cst.SetComp() | cst.DictComp():
            targets = (n.target for n in view.each(scope, cst.CompFor))
            return {n.value for t in targets for n in view.each(t, cst.Name)}
    return set()


def _parameters(view: View, params: cst.Parameters) -> set[str]:
    return {n.name.value for n in view.each(params, cst.Param)}


def binding_scope(view: View, node: cst.CSTNode, name: str) -> cst.CSTNode | None:
    """The function, lambda or comprehension around a node that binds a name; None for the module."""
    return next((a for a in view.around(node) if name in bound_by_scope(view, a)), None)


def is_declared(view: View, name: str) -> bool:
    """Whether a name is declared somewhere to be of another scope, or deleted."""
    return name in view.once(_all_declared)


def _all_declared(view: View) -> frozenset[str]:
    return frozenset(name for node in view.inside(view.tree) for name in _declared(node))


def _is_global(view: View, name: str) -> bool:
    return name in names.BUILTINS or any(n == name for n, _ in names.bindings(view, view.tree))


def _only_main_sets(view: View, name: str) -> bool:
    """Whether a variable of the module is set under the main guard only: a fresh process does not have it."""
    bound = [node for n, node in names.bindings(view, view.tree) if n == name]
    return bool(bound) and all(layout.is_guard(view, view.outermost(node)) for node in bound)


def _is_settled(view: View, scope: cst.CSTNode, name: str, function: Function) -> bool:
    """Whether a name of a scope has one value wherever the function is handed on: it is bound once, and before."""
    if not isinstance(scope, cst.FunctionDef):
        return True  # A parameter of a lambda, or the variable of a comprehension: the function stands inside it.
    if any(name in _declared(n) for n in view.inside(scope)):
        return False
    if name in _parameters(view, scope.params):
        return all(n != name for n, _ in names.bindings(view, scope))
    bound = names.only_binding(view, scope, name)
    if bound is None or isinstance(bound, cst.ImportAlias | cst.FunctionDef | cst.ClassDef | cst.AugAssign):
        return False
    outside = {id(n) for n in view.around(function)}
    perhaps = [n for n in (bound, *view.around(bound)) if isinstance(n, _PERHAPS)]
    within = [n for n in perhaps if scope in view.around(n)]
    return view.start(bound) < view.start(function) and all(id(n) in outside for n in within)


def _declared(node: cst.CSTNode) -> set[str]:
    """The names that a statement declares to be of another scope, or deletes."""
    match node:
        case cst.Nonlocal(names=items) | cst.Global(names=items):
            return {item.name.value for item in items}
        case cst.Del(target=cst.Name(value=name)):
            return {name}
        case cst.Del(target=cst.Tuple(elements=elements)):
            return {e.value.value for e in elements if isinstance(e.value, cst.Name)}
    return set()


def references(view: View, scope: cst.FunctionDef, name: str, function: cst.CSTNode) -> list[cst.Name] | None:
    """Where a name of a scope is read, outside of a function; None where an inner scope has another of that name."""
    inside = {id(n) for n in view.inside(function)}
    found: list[cst.Name] = []
    for node in view.inside(scope.body):
        if id(node) in inside:
            continue
        if name in _declared(node) or (node is not scope and name in bound_by_scope(view, node)):
            return None
        if isinstance(node, cst.Name) and node.value == name and names.is_variable(view, node):
            found.append(node)
    return found
