"""Naming a GPU by its place among those that a process sees, where a variable hides the others."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from cudalint.fixes import names
from cudalint.fixes.edits import Change
from cudalint.fixes.loaders import dotted_attribute
from cudalint.fixes.proposal import Case, Proposal, in_file
from cudalint.fixes.view import View

_PREFIX = "cuda:"
# What takes the number of a GPU by its place, and what the argument is called where it is given by name.
_TAKES_NUMBER = frozenset({"set_device", "cuda", "Device", "device"})
_NAMES = frozenset({"device", "device_id", "index"})
_MAKES_DEVICE = "device"


def by_its_place(case: Case) -> Iterator[Proposal]:
    """``cuda:0`` for ``cuda:1`` where the process sees that GPU alone; only what both name is seen to be meant."""
    number = case.outcome.number
    found = None if number is None else case.call_at(case.outcome.anchor)
    if number is None or found is None:
        return
    view, call = found
    for argument in call.args:
        if argument.star or (argument.keyword is not None and argument.keyword.value not in _NAMES):
            continue
        change = _renumbered(view, argument.value, number, dotted_attribute(call) in _TAKES_NUMBER)
        if change is not None:
            yield Proposal(
                f"name the GPU by its place among those that the process sees: {number}",
                in_file(view, [change]),
                doubt="the program may mean to see all GPUs, and to choose this one by its number alone",
            )


def decide(case: Case) -> Iterator[Proposal]:
    """Advice where the variable and the number do not name one GPU."""
    del case
    yield Proposal(
        "count the GPUs from 0, in the order in which CUDA_VISIBLE_DEVICES lists them, or leave that variable alone",
        {},
        doubt="whether the variable or the number is meant is a decision about the program",
        shown=True,
    )


def _renumbered(view: View, node: cst.BaseExpression, number: int, is_number: bool) -> Change | None:
    """The change of an expression, or of what it stands for, that names a GPU by another number."""
    match node:
        case cst.SimpleString(evaluated_value=str() as text) if text.startswith(_PREFIX):
            return view.replace(node, f"{node.quote}{_PREFIX}{number}{node.quote}")
        case cst.FormattedString(parts=[cst.FormattedStringText(value="cuda:"), *_], end=quote):
            return view.replace(node, f"{quote}{_PREFIX}{number}{quote}")
        case cst.Call() if dotted_attribute(node) == _MAKES_DEVICE:
            return _of_device(view, node, number)
        case cst.Integer() if is_number:
            return view.replace(node, str(number))
        case cst.Name() | cst.Attribute():
            made = _made(view, node)
            change = None if made is None else _renumbered(view, made, number, False)
            return view.replace(node, str(number)) if change is None and is_number else change
    return None


def _of_device(view: View, call: cst.Call, number: int) -> Change | None:
    """``torch.device("cuda", 1)``, or the text that it is given alone."""
    given = [a for a in call.args if a.keyword is None or a.keyword.value in _NAMES | {"type"}]
    last = given[-1] if given else None
    return None if last is None else _renumbered(view, last.value, number, len(given) > 1)


def _made(view: View, node: cst.Name | cst.Attribute) -> cst.BaseExpression | None:
    """What a name or an attribute is set to, where the file says so once."""
    if isinstance(node, cst.Name):
        assigned = names.definition(view, node.value, node)
        return None if assigned is None else assigned.value
    text = view.source(node)
    found = [a.value for a in _assignments(view) if any(view.source(t.target) == text for t in a.targets)]
    return found[0] if len(found) == 1 else None


def _assignments(view: View) -> Iterator[cst.Assign]:
    return view.each(view.tree, cst.Assign)
