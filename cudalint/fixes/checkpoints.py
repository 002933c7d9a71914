"""Files of tensors that each rank loads onto one GPU."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from cudalint.fixes.edits import Change
from cudalint.fixes.proposal import Case, Proposal, in_file
from cudalint.fixes.view import View
from cudalint.machine.outcome import Kind

# What an outcome calls the function.
_LOAD = "torch.load()"


def to_own_gpu(case: Case) -> Iterator[Proposal]:
    """``map_location=``: the GPU that the rank selected, where it did, else the host."""
    found = case.call_at(case.outcome.anchor) if case.outcome.kind is Kind.LOADED_ONTO_ONE else None
    if found is None:
        return
    view, call = found
    for place, where in (('"cuda"', "the GPU of the rank"), ('"cpu"', "the host")):
        changes = _told(view, call, place)
        yield Proposal(f"load it onto {where}", in_file(view, changes), doubt="what is loaded then lies there")


def to_the_host(case: Case) -> Iterator[Proposal]:
    """``map_location="cpu"`` where a worker loads a file that goes back to the GPU from which it was saved."""
    place = case.outcome.effect[-1].site if case.outcome.effect else None
    found = case.call_at(place) if place is not None and case.outcome.subject == _LOAD else None
    if found is None:
        return
    view, call = found
    doubt = "what is loaded then lies on the host, wherever that is called from"
    yield Proposal("load it onto the host", in_file(view, _told(view, call, '"cpu"')), doubt=doubt)


def _told(view: View, call: cst.Call, place: str) -> list[Change]:
    positional = [argument for argument in call.args if argument.keyword is None and not argument.star]
    if len(positional) > 1:
        return [view.replace(positional[1].value, place)]
    return view.with_keyword(call, "map_location", place)
