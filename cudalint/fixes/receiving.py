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


def put_back(case: Case, sent: Shape | None) -> dict[str, tuple[Change, ...]]:
    """The calls that receive as arrays what the call of the finding sends, each with what it gives on the GPU again.

    Empty where it is not seen which these are: both sides call the channel by one name, and nothing else is sent there.
    """
    found = case.call_at(case.outcome.anchor)
    channel = None if found is None else _channel(found[1], _SENDS)
    if sent is None or channel is None:
        return {}
    views = [view for module in sorted(case.basis.modules(case.finding)) if (view := case.view(module)) is not None]
    if sum(1 for view in views for _ in _calls(view, channel, _SENDS)) != 1:
        return {}
    try:
        back = {view: _back(view, channel, sent) for view in views}
    except NoCopyError:
        return {}
    return {view.path: tuple(dict.fromkeys(changes)) for view, changes in back.items() if changes}


def _channel(call: cst.Call, methods: frozenset[str]) -> str | None:
    """The last name of what a method of a channel is called on."""
    match call.func:
        case cst.Attribute(
            value=cst.Name(value=name) | cst.Attribute(attr=cst.Name(value=name)), attr=cst.Name(value=method)
        ) if method in methods:
            return name
    return None


def _calls(view: View, channel: str, methods: frozenset[str]) -> Iterator[cst.Call]:
    return (call for call in view.calls() if _channel(call, methods) == channel)


def _back(view: View, channel: str, shape: Shape) -> list[Change]:
    copier = Copier(view, Way.FROM_ARRAY)
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
