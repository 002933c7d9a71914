"""What functions of workers give back and have put on the GPU last, so that whoever takes it can do so instead."""

from __future__ import annotations

from enum import Enum

import libcst as cst

from cudalint.fixes import layout
from cudalint.fixes.edits import Change
from cudalint.fixes.loaders import dotted_attribute
from cudalint.fixes.view import View, dotted
from cudalint.structs import Frozen

_MOVES = ("cuda", "to")
# What gives a tensor that lies where those lie that it is given.
_JOINS = frozenset({"stack", "cat", "concat", "hstack", "vstack"})
Function = cst.FunctionDef | cst.Lambda


class Form(Enum):
    """How the parts of what is given back are held."""

    WHOLE = "it is moved itself"
    PARTS = "some of several"
    KEYS = "some entries of a dictionary"
    EACH = "each of them"


class Moved(Frozen):
    """What a worker's function gives back and had moved: each part by its place, with the call that moved it."""

    form: Form
    parts: tuple[tuple[str, cst.Call], ...]
    count: int = 1
    computed: bool = False


def moves_of(view: View, function: Function) -> list[tuple[cst.Call, Change]]:
    """All calls of a function that put something on a GPU, with the change that leaves it where it is."""
    found: list[tuple[cst.Call, Change]] = []
    for node in view.each(function.body, cst.Call):
        device = view.keyword(node, "device")
        if dotted_attribute(node) in _MOVES and isinstance(node.func, cst.Attribute):
            found.append((node, _without_move(view, node)))
        elif device is not None:
            found.append((node, view.without_argument(node, device)))
    return found


def _without_move(view: View, move: cst.Call) -> Change:
    """``x.cuda()`` as ``x``; ``x = x.cuda()`` as nothing."""
    match view.parent(move), move.func:
        case (
            cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=target))]) as assign,
            cst.Attribute(value=cst.Name(value=moved)),
        ) if target == moved:
            statement = view.statement(assign)
            if statement is not None and layout.has_own_rows(view, statement):
                (dropped,) = layout.dropped(view, statement)
                return dropped
    return without_call(view, move)


def without_call(view: View, call: cst.Call) -> Change:
    """``x.cuda()`` as ``x``."""
    assert isinstance(call.func, cst.Attribute)
    start = view.after(call.func.value, "").start
    return Change(start, view.end(call), "")


def results_of(view: View, function: Function, moves: list[cst.Call]) -> Moved | None:
    """Which parts of what a function gives back were moved; None where that cannot be read off."""
    value = given_back(view, function)
    if value is None or not moves:
        return None
    moved: Moved | None = None
    match value:
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            found = [(str(i), m) for i, e in enumerate(elements) if (m := _move(view, function, e.value, moves))]
            moved = Moved(Form.PARTS, tuple(found), len(elements))
        case cst.Dict(elements=entries):
            keyed = [e for e in entries if isinstance(e, cst.DictElement) and isinstance(e.key, cst.SimpleString)]
            found = [(view.source(e.key), m) for e in keyed if (m := _move(view, function, e.value, moves))]
            moved = Moved(Form.KEYS, tuple(found)) if len(keyed) == len(entries) else None
        case cst.ListComp(elt=cst.Call() as one) if one in moves:
            moved = Moved(Form.EACH, (("", one),))
        case cst.Call(
            func=cst.Name(value="tuple" | "list"), args=[cst.Arg(value=cst.GeneratorExp(elt=cst.Call() as one))]
        ) if one in moves:
            moved = Moved(Form.EACH, (("", one),))
        case _ if (whole := _move(view, function, value, moves)) is not None:
            moved = Moved(Form.WHOLE, (("", whole),))
    if moved is None or {id(m) for _, m in moved.parts} != {id(m) for m in moves} or len(moved.parts) != len(moves):
        return None
    held = {v.value for v in view.each(value, cst.Name)} if moved.form is not Form.EACH else set()
    computed = any(_is_used_on(view, function, name, moves, value) for name in held)
    return Moved(moved.form, moved.parts, moved.count, computed)


def _is_used_on(view: View, function: Function, name: str, moves: list[cst.Call], value: cst.BaseExpression) -> bool:
    """Whether a name is used after something was moved and before it is given back, perhaps on the GPU."""
    given = set(view.inside(value))
    first = min(view.end(move) for move in moves)
    return any(
        isinstance(node, cst.Name) and node.value == name and view.start(node) > first and node not in given
        for node in view.inside(function.body)
    )


def given_back(view: View, function: Function) -> cst.BaseExpression | None:
    """What a function gives back, where it does so at one place only."""
    if isinstance(function, cst.Lambda):
        return function.body
    results = [n.value for n in view.each(function.body, cst.Return, cst.Yield)]
    return results[0] if len(results) == 1 and isinstance(results[0], cst.BaseExpression) else None


def _move(view: View, function: Function, part: cst.CSTNode, moves: list[cst.Call]) -> cst.Call | None:
    """The call that moved a part: the part itself, or what its name was given."""
    if not isinstance(part, cst.Name):
        return _moved_by(part, moves)
    found = [m for value in _assigned(view, function, part.value) if (m := _moved_by(value, moves)) is not None]
    return found[0] if len(found) == 1 else None


def _moved_by(value: cst.CSTNode, moves: list[cst.Call]) -> cst.Call | None:
    """The call that moved a value, or each of the samples that are joined in it."""
    if not isinstance(value, cst.Call) or value in moves:
        return value if isinstance(value, cst.Call) else None
    match value:
        case cst.Call(args=[cst.Arg(value=cst.ListComp(elt=cst.Call() as one)), *_]) if one in moves:
            return one if dotted_attribute(value) in _JOINS else None
    return None


def _assigned(view: View, function: Function, name: str) -> list[cst.CSTNode]:
    """What a name is given in a function."""
    return [
        node.value
        for node in view.inside(function.body)
        if isinstance(node, cst.Assign) and any(dotted(t.target) == name for t in node.targets)
    ]
