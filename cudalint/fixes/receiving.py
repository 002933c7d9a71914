"""What queues and connections hand over, put back on the GPU where it arrives."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from cudalint.fixes.copies import Copier, NoCopyError, Way
from cudalint.fixes.edits import Change
from cudalint.fixes.proposal import Case
from cudalint.fixes.view import View
from cudalint.machine.shapes import Form, Shape

_SENDS = frozenset({"put", "put_nowait", "send"})
_RECEIVES = frozenset({"get", "get_nowait", "recv"})


def put_back(case: Case, way: Way) -> dict[str, tuple[Change, ...]]:
    """The calls that receive what the call of the finding sends, each with what it gives put on the GPU again.

    Empty where it is not seen which these are: both sides call the channel by one name, and nothing else is sent there.
    """
    found = case.call_at(case.outcome.anchor)
    if found is None or not found[1].args:
        return {}
    sent = found[1].args[0].value
    shape, channel = case.shapes(found[0], [sent]).get(sent), _channel(found[1], _SENDS)
    views = list(_views(case))
    if shape is None or channel is None or sum(1 for view in views for _ in _calls(view, channel, _SENDS)) != 1:
        return {}
    try:
        back = {view: _back(view, channel, shape, way) for view in views}
    except NoCopyError:
        return {}
    return {view.path: tuple(dict.fromkeys(changes)) for view, changes in back.items() if changes}


def _views(case: Case) -> Iterator[View]:
    """The files that the entries of the finding went through."""
    entered = (place for entry in case.basis.entries[case.finding] for place in case.basis.entered.get(entry, ()))
    for module in sorted({module for module, _ in entered}):
        view = case.view(module)
        if view is not None:
            yield view


def _channel(call: cst.Call, methods: frozenset[str]) -> str | None:
    """The last name of what a method of a channel is called on."""
    match call:
        case cst.Call(func=cst.Attribute(value=of, attr=cst.Name(value=method))) if method in methods:
            match of:
                case cst.Name(value=name) | cst.Attribute(attr=cst.Name(value=name)):
                    return name
    return None


def _calls(view: View, channel: str, methods: frozenset[str]) -> Iterator[cst.Call]:
    return (call for call in view.calls() if _channel(call, methods) == channel)


def _back(view: View, channel: str, shape: Shape, way: Way) -> list[Change]:
    copier = Copier(view, way)
    changes: list[Change] = []
    for call in _calls(view, channel, _RECEIVES):
        if shape.form is Form.ARRAY:
            changes.extend(copier.changes(call, {call: shape}))
        else:
            changes.append(_named(view, call, shape, copier))
    return [*changes, *copier.imports] if changes else []


def _named(view: View, call: cst.Call, shape: Shape, copier: Copier) -> Change:
    """Lines behind an assignment, for the names that it gives a container or its parts."""
    match view.parent(call):
        case cst.Assign(targets=[cst.AssignTarget(target=target)]) as assignment:
            line = view.parent(assignment)
        case _:
            raise NoCopyError
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) > 1:
        raise NoCopyError
    if not isinstance(view.parent(line), cst.IndentedBlock | cst.Module):
        raise NoCopyError
    copier.at = line
    copies = ((name, copier.expression(name, part)) for name, part in _parts(target, shape))
    lines = [f"{name} = {copied}" for name, copied in copies if copied != name]
    if not lines:
        raise NoCopyError
    return view.lines_after(line, lines)


def _parts(target: cst.BaseExpression, shape: Shape) -> Iterator[tuple[str, Shape]]:
    """The names of a target, each with what it is given; those of which it is known."""
    known = dict(shape.parts)
    match target:
        case cst.Name(value=name):
            yield name, shape
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            for place, element in enumerate(elements):
                part = known.get(place)
                if isinstance(element.value, cst.Name) and part is not None:
                    yield element.value.value, part
