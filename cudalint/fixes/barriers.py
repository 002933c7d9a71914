"""Barriers that guess their GPU: naming it, where the group is sure to be one of NCCL."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from cudalint.fixes import imports, ranks
from cudalint.fixes.edits import Change
from cudalint.fixes.proposal import Case, Proposal, Repair, in_file
from cudalint.fixes.view import View, dotted
from cudalint.machine.outcome import Kind

_GUESSES = frozenset({Kind.BARRIER_BEFORE_DEVICE, Kind.BARRIER_GUESSES})
_CHOSEN = "the barrier may have run on another GPU until now"


def unless_guessed(repair: Repair) -> Repair:
    """A repair that chooses the rank's GPU earlier: a barrier guesses all the same."""

    def chosen(case: Case) -> Iterator[Proposal]:
        if case.outcome.kind not in _GUESSES:
            yield from repair(case)

    return chosen


def name_the_gpu(case: Case) -> Iterator[Proposal]:
    """``device_ids=`` with the GPU of the rank, else advice: gloo refuses the argument, and the CPU has no GPU."""
    if case.outcome.kind not in _GUESSES:
        return
    found = case.call_at(case.outcome.anchor)
    if found is not None and found[0].keyword(found[1], "device_ids") is None and ranks.is_of_nccl(found[0]):
        view, call = found
        for gpu, changes, doubt in _gpus(case, view, call):
            named = view.with_keyword(call, "device_ids", f"[{gpu}]")
            yield Proposal("name the barrier's GPU", in_file(view, [*changes, *named]), doubt=doubt)
    yield Proposal(
        "name the GPU: `device_ids=` of the barrier, or `device_id=` of `init_process_group` beside `set_device`",
        {},
        doubt="gloo refuses device_ids=, and the code does not show that the group is always one of NCCL",
        shown=True,
    )


def _gpus(case: Case, view: View, call: cst.Call) -> Iterator[tuple[str, tuple[Change, ...], str]]:
    """Expressions for the rank's GPU at a barrier, with what they need and what is uncertain about them."""
    if case.outcome.kind is Kind.BARRIER_GUESSES:
        current = imports.torch_cuda(view, "current_device", call)
        if _selects_before(view, call):
            yield f"{current.text}()", current.changes, _CHOSEN
        # The rank's number is what the barrier guessed, and not what the program chose.
        return
    for rank, doubt in ranks.local_numbers(case, view, call):
        yield rank, (), doubt


def _selects_before(view: View, call: cst.Call) -> bool:
    """Whether the GPU is chosen in the rows above the barrier, and not in a block of its own."""
    function = view.function(call)
    for other in view.calls():
        if dotted(other.func).rpartition(".")[2] != "set_device" or view.function(other) is not function:
            continue
        statement = view.statement(other)
        barrier = view.statement(call)
        if statement is not None and barrier is not None and view.start(other) < view.start(call):
            return view.parent(statement) is view.parent(barrier)
    return False
