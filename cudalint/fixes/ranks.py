"""Ranks: the device first, and a place to meet."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from cudalint.fixes import imports, layout
from cudalint.fixes.proposal import Case, Proposal, in_file
from cudalint.fixes.view import View, dotted

_MEETING = (("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "29500"))
_EARLY = "selecting the device initialises CUDA earlier than before"


def select_first(case: Case) -> Iterator[Proposal]:
    """Move ``set_device`` above the call that needs it, where its argument is known there."""
    found = case.at(case.outcome.cause[-1].site) if case.outcome.cause else None
    found = found or case.at(case.outcome.anchor)
    if found is None:
        return
    view, node = found
    function = view.function(node)
    target = view.statement(node)
    if target is None:
        return
    for call in view.calls():
        statement = view.statement(call)
        if not dotted(call.func).endswith("set_device") or statement is None or view.function(call) is not function:
            continue
        if view.start(call) < view.start(node) or not layout.has_own_rows(view, statement):
            continue
        if _known_at(view, call, target):
            changes = layout.moved_above(view, statement, target)
            yield Proposal("select the device first", in_file(view, changes), doubt=_EARLY)


def _known_at(view: View, call: cst.Call, target: cst.BaseStatement) -> bool:
    """Whether the arguments of a call have their values above a statement: nothing from there on binds them."""
    used = {n.value for a in call.args for n in view.inside(a.value) if isinstance(n, cst.Name)}
    start, end = view.start(target), view.start(call)
    for node in view.inside(view.function(target) or view.tree):
        if not isinstance(node, cst.AssignTarget | cst.AnnAssign) or not start <= view.start(node) < end:
            continue
        if used & {n.value for n in view.inside(node.target) if isinstance(n, cst.Name)}:
            return False
    return True


def rendezvous(case: Case) -> Iterator[Proposal]:
    """Set ``MASTER_ADDR`` and ``MASTER_PORT`` where they are not set yet, before the ranks start."""
    place = case.outcome.launch[-1].site if case.outcome.launch else case.outcome.anchor
    found = case.at(place)
    if found is None:
        return
    view, node = found
    statement = view.statement(node)
    if statement is None or not layout.has_own_rows(view, statement):
        return
    environ = imports.member(view, "os", "environ")
    lines = [f'{environ.text}.setdefault("{name}", "{value}")' for name, value in _MEETING]
    yield Proposal(
        "say where the ranks meet, unless the environment does",
        in_file(view, [view.lines_before(statement, lines), *environ.changes]),
        doubt="the address and the port are a guess that holds for one machine",
    )
