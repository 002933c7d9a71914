"""What a spawned worker lacks: functions and globals that it finds by importing a module."""

from __future__ import annotations

import builtins
from collections.abc import Iterator

import libcst as cst

from cudalint.fixes import layout
from cudalint.fixes.edits import Change
from cudalint.fixes.proposal import Case, Proof, Proposal, in_file
from cudalint.fixes.view import View
from cudalint.machine.outcome import Kind

_PLAIN = (
    cst.SimpleString, cst.Integer, cst.Float, cst.UnaryOperation, cst.Minus, cst.List, cst.Tuple, cst.Dict, cst.Set,
    cst.Element, cst.DictElement, cst.Comma, cst.BaseParenthesizableWhitespace, cst.LeftParen, cst.RightParen,
    cst.LeftSquareBracket, cst.RightSquareBracket, cst.LeftCurlyBrace, cst.RightCurlyBrace, cst.BinaryOperation,
    cst.BaseBinaryOp, cst.Colon,
)  # fmt: skip
_CONSTANTS = frozenset({"True", "False", "None"})


def constant_above_guard(case: Case) -> Iterator[Proposal]:
    """A constant of the main guard, set above it, so that each import of the module sets it."""
    if case.outcome.kind is not Kind.MISSING_GLOBAL or not case.outcome.effect:
        return
    found = case.at(case.outcome.effect[-1].site)
    if found is None:
        return
    view = found[0]
    for guard in view.tree.body:
        if not layout.is_guard(view, guard) or not isinstance(guard, cst.If):
            continue
        for statement in guard.body.body:
            if isinstance(statement, cst.SimpleStatementLine) and _sets(statement, case.outcome.subject):
                moved = layout.moved_above(view, statement, guard)
                changes = [Change(moved[0].start, moved[0].end, moved[0].content + view.newline * 2), *moved[1:]]
                yield Proposal(
                    f"set `{case.outcome.subject}` above the main guard",
                    in_file(view, changes),
                    Proof.SPAWN,
                    "other modules that import this one then see it too",
                )


def _sets(statement: cst.SimpleStatementLine, name: str) -> bool:
    match statement.body:
        case [cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=target))], value=value)]:
            return target == name and _is_plain(value)
    return False


def _is_plain(value: cst.CSTNode) -> bool:
    if isinstance(value, cst.Name):
        return value.value in _CONSTANTS
    return isinstance(value, _PLAIN) and all(_is_plain(c) for c in value.children)


def function_at_top(case: Case) -> Iterator[Proposal]:
    """A local function that captures nothing, at the top of the module."""
    if case.outcome.kind is not Kind.UNPICKLABLE_TARGET:
        return
    name = case.outcome.subject.rpartition(" ")[2]
    view = case.view(case.outcome.anchor.module)
    if view is None:
        return
    for node in view.inside(view.tree):
        if not isinstance(node, cst.FunctionDef) or node.name.value != name or view.function(node) is None:
            continue
        outer = view.outermost(node)
        if outer is None or node.decorators or not layout.has_own_rows(view, node) or _captures(view, node):
            continue
        moved = layout.moved_above(view, node, outer)
        gap = Change(moved[0].start, moved[0].end, moved[0].content + view.newline * 2)
        yield Proposal(
            f"define `{name}` at the top of the module, where a fresh process finds it",
            in_file(view, [gap, *moved[1:]]),
            Proof.SPAWN,
            "the function is then visible in the whole module",
        )


def _captures(view: View, function: cst.FunctionDef) -> bool:
    """Whether a function reads what only its surroundings have: any name that is neither its own nor of the module."""
    own = {n.value for n in view.inside(function.params) if isinstance(n, cst.Name)}
    for node in view.inside(function.body):
        if isinstance(node, cst.Nonlocal | cst.Global):
            return True
        if isinstance(node, cst.AssignTarget | cst.For | cst.CompFor | cst.NamedExpr | cst.AsName | cst.WithItem):
            target = getattr(node, "target", None) or getattr(node, "name", None)
            own |= {n.value for n in view.inside(target) if isinstance(n, cst.Name)} if target is not None else set()
    around = [f for f in view.around(function) if isinstance(f, cst.FunctionDef)]
    bound_around = {n.value for f in around for n in view.inside(f) if isinstance(n, cst.Name)} - own
    top = _top_names(view)
    read = {
        n.value for n in view.inside(function.body) if isinstance(n, cst.Name) and not _is_attribute_or_keyword(view, n)
    }
    return bool({n for n in read - own if n in bound_around and n not in top and not hasattr(builtins, n)})


def _is_attribute_or_keyword(view: View, name: cst.Name) -> bool:
    around = view.parent(name)
    if isinstance(around, cst.Attribute):
        return around.attr is name
    return isinstance(around, cst.Arg) and around.keyword is name


def _top_names(view: View) -> set[str]:
    """Names that the top of the module binds."""
    result: set[str] = set()
    for statement in view.tree.body:
        if isinstance(statement, cst.FunctionDef | cst.ClassDef):
            result.add(statement.name.value)
            continue
        for node in view.inside(statement) if isinstance(statement, cst.SimpleStatementLine) else ():
            if isinstance(node, cst.AssignTarget):
                result |= {n.value for n in view.inside(node.target) if isinstance(n, cst.Name)}
    imported = (n for n in view.inside(view.tree) if isinstance(n, cst.Import | cst.ImportFrom))
    for node in imported:
        if view.function(node) is None and not isinstance(node.names, cst.ImportStar):
            result |= {n.value for a in node.names for n in view.inside(a) if isinstance(n, cst.Name)}
    return result


def call_itself(case: Case) -> Iterator[Proposal]:
    """``target=lambda: f(x)`` as ``target=f, args=(x,)``."""
    found = case.call_at(case.outcome.anchor)
    if found is None or case.outcome.kind is not Kind.UNPICKLABLE_TARGET:
        return
    view, call = found
    target = view.keyword(call, "target")
    if target is None or view.keyword(call, "args") is not None or view.keyword(call, "kwargs") is not None:
        return
    match target.value:
        case cst.Lambda(params=cst.Parameters(params=[], kwonly_params=[]), body=cst.Call() as inner):
            pass
        case _:
            return
    if any(a.star or a.keyword is not None for a in inner.args):
        return
    arguments = ", ".join(view.source(a.value) for a in inner.args)
    comma = "," if len(inner.args) == 1 else ""
    yield Proposal(
        f"start `{view.source(inner.func)}` itself",
        in_file(view, [view.replace(target.value, f"{view.source(inner.func)}, args=({arguments}{comma})")]),
        Proof.SPAWN,
        "the arguments are computed when the process is made, not in it",
    )


def named_function(case: Case) -> Iterator[Proposal]:
    """``lambda x: f(x)`` as ``f``, where that is a function of the module."""
    if case.outcome.kind is not Kind.UNPICKLABLE_TARGET:
        return
    places = [case.outcome.anchor, *((case.launch.made,) if case.launch is not None else ())]
    for view, call in [found for p in dict.fromkeys(places) if (found := case.call_at(p)) is not None]:
        for node in view.inside(call):
            name = _handed_on(node)
            if name is not None and name in _top_names(view):
                yield Proposal(
                    f"send `{name}` itself",
                    in_file(view, [view.replace(node, name)]),
                    Proof.SPAWN,
                    "a lambda reads the name when it is called, here it is read when it is sent",
                )


def _handed_on(node: cst.CSTNode) -> str | None:
    """The function to which a lambda hands its arguments as they are."""
    match node:
        case cst.Lambda(params=parameters, body=cst.Call(func=cst.Name(value=name), args=arguments)):
            given = [*parameters.posonly_params, *parameters.params]
            names = [p.name.value for p in given if p.default is None]
            starred = isinstance(parameters.star_arg, cst.Param) or parameters.star_kwarg or parameters.kwonly_params
            sent = [a.value.value for a in arguments if isinstance(a.value, cst.Name) and not a.star and not a.keyword]
            if not starred and names == sent and len(names) == len(given) == len(arguments) and names:
                return name
    return None


def sent_along(case: Case) -> Iterator[Proposal]:
    """Advice: where functions and values of a spawned worker belong."""
    subject = case.outcome.subject
    match case.outcome.kind:
        case Kind.UNPICKLABLE_TARGET:
            what = "it" if subject == "a lambda" else f"`{subject.rpartition(' ')[2]}`"
            message = f"define {what} as a function at the top of the module, and send what it captures as arguments"
            doubt = "what the function captures has to become arguments, which changes its signature"
        case Kind.MISSING_GLOBAL:
            message = f"send `{subject}` to the worker as an argument, or through the initializer of the pool"
            doubt = "the functions between the worker and the place that reads it need a parameter more"
        case _:
            message = "make queues, locks and events from the context that starts the worker"
            doubt = "the code does not show where it is made"
    yield Proposal(message, {}, doubt=doubt, shown=True)
