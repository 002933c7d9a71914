"""Which names code reads and binds, so that a statement can stand at another place."""

from __future__ import annotations

import builtins
from collections.abc import Iterator

import libcst as cst

from cudalint.fixes.view import View, dotted

BUILTINS = frozenset(dir(builtins))
_Scope = cst.FunctionDef | cst.Module
# Calls whose result depends on nothing but their arguments and the environment.
_PLAIN_CALLS = frozenset({"int", "str", "getenv", "get", "device", "is_available", "divmod", "min", "max", "len"})
_COMPOSED = (
    cst.Name, cst.Attribute, cst.Subscript, cst.Integer, cst.SimpleString, cst.FormattedString, cst.ConcatenatedString,
    cst.BinaryOperation, cst.UnaryOperation, cst.Comparison, cst.BooleanOperation, cst.IfExp, cst.Call, cst.Tuple,
)  # fmt: skip


def scope_of(view: View, node: cst.CSTNode) -> _Scope:
    """The function whose names code at a node sees first, else the module."""
    return view.function(node) or view.tree


def read(view: View, node: cst.CSTNode) -> frozenset[str]:
    """The names that code needs from outside itself."""
    names = {n.value for n in view.each(node, cst.Name) if is_variable(view, n)}
    return frozenset(names - _own(view, node))


def is_variable(view: View, name: cst.Name) -> bool:
    """Whether a name is read as a variable: not an attribute, a keyword, or something that is bound."""
    match view.parent(name):
        case cst.Attribute(attr=attr):
            return attr is not name
        case cst.Arg(keyword=keyword):
            return keyword is not name
        case cst.Param(name=bound) | cst.AsName(name=bound) | cst.NamedExpr(target=bound):
            return bound is not name
        case cst.AssignTarget():
            return False
        case cst.ImportAlias():
            return False
    return True


def _own(view: View, node: cst.CSTNode) -> set[str]:
    """Names that a compound statement, a comprehension or a lambda binds for itself."""
    own: set[str] = set()
    for inner in view.inside(node):
        match inner:
            case cst.For(target=target) | cst.CompFor(target=target):
                own |= _plain_names(view, target)
            case cst.Param(name=name):
                own.add(name.value)
            case cst.AsName(name=cst.Name(value=value)):
                own.add(value)
    return own


def _plain_names(view: View, target: cst.CSTNode) -> set[str]:
    """The names that a target binds; ``x.y`` and ``x[i]`` bind none."""
    if isinstance(target, cst.Name):
        return {target.value}
    if isinstance(target, cst.Tuple | cst.List | cst.StarredElement | cst.Element):
        return {n for child in target.children for n in _plain_names(view, child)}
    return set()


def bindings(view: View, scope: _Scope) -> Iterator[tuple[str, cst.CSTNode]]:
    """Names that a function or the module binds, each with the node that binds it."""
    return iter(view.once(_bindings).get(scope, ()))


def _bindings(view: View) -> dict[_Scope, list[tuple[str, cst.CSTNode]]]:
    """What each scope of a file binds, by one walk through it: asked scope by scope, it would be quadratic."""
    found: dict[_Scope, list[tuple[str, cst.CSTNode]]] = {}
    for node in view.inside(view.tree):
        bound = _bound_by(view, node)
        if not bound:
            continue
        scope = scope_of(view, node)
        # What stands in parameters and decorators is of no scope that anybody asks for.
        if isinstance(scope, cst.Module) or scope.body in view.around(node):
            found.setdefault(scope, []).extend((name, node) for name in bound)
    return found


# Asked of each node of a file: to ask for one class after the other takes long, since those of libcst are abstract.
_BINDING = frozenset(
    {
        cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.For, cst.NamedExpr, cst.AsName, cst.ImportAlias,
        cst.FunctionDef, cst.ClassDef,
    }
)  # fmt: skip


def _bound_by(view: View, node: cst.CSTNode) -> set[str]:
    if type(node) not in _BINDING:
        return set()
    match node:
        case cst.AssignTarget(target=target) | cst.AnnAssign(target=target) | cst.AugAssign(target=target):
            return _plain_names(view, target)
        case cst.For(target=target):
            return _plain_names(view, target)
        case cst.NamedExpr(target=target):
            return _plain_names(view, target)
        case cst.AsName(name=name):
            return _plain_names(view, name)
        case cst.ImportAlias(asname=None, name=name):
            return {dotted(name).partition(".")[0]}
        case cst.FunctionDef(name=name) | cst.ClassDef(name=name):
            return {name.value}
    return set()


def changed(view: View, scope: _Scope) -> Iterator[tuple[str, cst.CSTNode]]:
    """Names of objects of which a function or the module sets an attribute or an item, each with the node that does."""
    modules = view.bindings()
    for node in view.inside(scope.body if isinstance(scope, cst.FunctionDef) else scope):
        match node:
            case cst.AssignTarget(target=target) | cst.AnnAssign(target=target) | cst.AugAssign(target=target):
                name = _root(target)
                if name is not None and name not in modules and scope_of(view, node) is scope:
                    yield name, node


def _root(target: cst.CSTNode) -> str | None:
    """The name whose object an assignment to ``name.x`` or ``name[i]`` changes."""
    part = target
    while isinstance(part, cst.Attribute | cst.Subscript):
        part = part.value
    return part.value if isinstance(part, cst.Name) and part is not target else None


def top(view: View) -> set[str]:
    """Names that the top of the module binds."""
    result: set[str] = set()
    for statement in view.tree.body:
        if isinstance(statement, cst.FunctionDef | cst.ClassDef):
            result.add(statement.name.value)
            continue
        for node in view.inside(statement) if isinstance(statement, cst.SimpleStatementLine) else ():
            if isinstance(node, cst.AssignTarget):
                result |= {n.value for n in view.each(node.target, cst.Name)}
    imported = view.each(view.tree, cst.Import, cst.ImportFrom)
    for node in imported:
        if view.function(node) is None and not isinstance(node.names, cst.ImportStar):
            result |= {n.value for a in node.names for n in view.each(a, cst.Name)}
    return result


def hidden(view: View, at: cst.CSTNode) -> dict[str, cst.FunctionDef]:
    """The names that stand for something of a function around a place there, each with the innermost that has it."""
    result: dict[str, cst.FunctionDef] = {}
    for function in [node for node in view.around(at) if isinstance(node, cst.FunctionDef)][::-1]:
        own = {name for name, _ in bindings(view, function)} | _all_parameters(function)
        given_up = set(_declared(view, function))
        result = {n: f for n, f in result.items() if n not in given_up}
        result.update(dict.fromkeys(own - given_up, function))
    return result


def _declared(view: View, function: cst.FunctionDef) -> Iterator[str]:
    """The names of its module that a function says it means."""
    for node in view.each(function.body, cst.Global):
        if view.function(node) is function:
            yield from (item.name.value for item in node.names)


def _all_parameters(function: cst.FunctionDef) -> set[str]:
    given = function.params
    starred = [p.name.value for p in (given.star_arg, given.star_kwarg) if isinstance(p, cst.Param)]
    return {*parameters(function), *starred}


def unsteady(view: View) -> frozenset[str]:
    """Names of the module that its top takes away, or gives something else than an import does."""
    return view.once(_unsteady)


def _unsteady(view: View) -> frozenset[str]:
    result: set[str] = set()
    for statement in view.tree.body:
        match statement:
            case cst.FunctionDef(name=name) | cst.ClassDef(name=name):
                result.add(name.value)
            case cst.SimpleStatementLine(body=lines):
                for small in lines:
                    targets = small.targets if isinstance(small, cst.Assign) else ()
                    result.update(name for each in targets for name in _plain_names(view, each.target))
                    if isinstance(small, cst.Del):
                        result |= _plain_names(view, small.target)
    return frozenset(result)


def parameters(function: cst.FunctionDef) -> list[str]:
    """The names of a function's parameters, in the order of positional arguments; keyword-only ones last."""
    given = function.params
    return [p.name.value for p in (*given.posonly_params, *given.params, *given.kwonly_params)]


def known_at(view: View, names: frozenset[str], place: cst.CSTNode) -> bool:
    """Whether all names have values where a node stands: bound earlier there, or around it."""
    scope = scope_of(view, place)
    missing = set(names) - BUILTINS
    if isinstance(scope, cst.FunctionDef):
        local = {n for n, _ in bindings(view, scope)} | set(parameters(scope))
        early = {n for n, b in bindings(view, scope) if view.start(b) < view.start(place)} | set(parameters(scope))
        if missing & (local - early):
            return False
        around = {n for n, _ in bindings(view, view.tree)}
        return not missing - early - around - _enclosing(view, scope)
    return not missing - {n for n, b in bindings(view, scope) if view.start(b) < view.start(place)}


def _enclosing(view: View, function: cst.FunctionDef) -> set[str]:
    """Names of the functions around a function."""
    outer = view.function(function)
    if outer is None:
        return set()
    return {n for n, _ in bindings(view, outer)} | set(parameters(outer)) | _enclosing(view, outer)


def global_names(view: View, names: frozenset[str], scope: _Scope) -> bool:
    """Whether names mean the same in any function of the file: none of them is local to this one."""
    local: set[str] = set()
    if isinstance(scope, cst.FunctionDef):
        local = {n for n, _ in bindings(view, scope)} | set(parameters(scope)) | _enclosing(view, scope)
    around = {n for n, _ in bindings(view, view.tree)} | BUILTINS
    return not names & local and names <= around


def is_plain(view: View, node: cst.CSTNode) -> bool:
    """Whether an expression is made of constants, names and the environment: it can be computed earlier."""
    for inner in view.inside(node):
        if isinstance(inner, cst.Call) and dotted(inner.func).rpartition(".")[2] not in _PLAIN_CALLS:
            return False
    return isinstance(node, _COMPOSED)


def only_binding(view: View, scope: _Scope, name: str) -> cst.CSTNode | None:
    """What alone binds a name of a function or the module, beside its parameters; None where nothing or more does."""
    found = [node for bound, node in bindings(view, scope) if bound == name]
    return found[0] if len(found) == 1 else None


def definition(view: View, name: str, place: cst.CSTNode) -> cst.Assign | None:
    """The only assignment of a name in the scope of a node, where it is a simple one above it."""
    found = only_binding(view, scope_of(view, place), name)
    if found is None or view.start(found) >= view.start(place):
        return None
    parent = view.parent(found)
    if not isinstance(parent, cst.Assign) or parent in view.around(place):
        return None
    return parent if len(parent.targets) == 1 and isinstance(parent.targets[0].target, cst.Name) else None


def assigned_to(view: View, value: cst.CSTNode) -> str | None:
    """The only name that something is assigned to as it stands."""
    match view.parent(value):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]):
            return name
    return None


def made_for(view: View, name: str) -> Iterator[cst.Call]:
    """Calls that make what a name stands for: in an assignment, or in a ``with``."""
    for node in view.inside(view.tree):
        match node:
            case cst.WithItem(item=cst.Call() as made, asname=cst.AsName(name=target)) if view.source(target) == name:
                yield made
            case cst.Assign(targets=[cst.AssignTarget(target=target)], value=cst.Call() as made):
                if view.source(target) == name:
                    yield made
