"""Loaders that pin, shuffle or carry what is on the GPU already."""

from __future__ import annotations

from collections.abc import Iterator

from cudalint.fixes.proposal import Case, Proof, Proposal, in_file


def no_pinning(case: Case) -> Iterator[Proposal]:
    """No ``pin_memory=True`` for batches that are on the GPU: there is nothing to pin."""
    found = case.call_at(case.outcome.anchor)
    if found is None:
        return
    view, call = found
    argument = view.keyword(call, "pin_memory")
    if argument is not None:
        change = view.without_argument(call, argument)
        yield Proposal("drop `pin_memory`: the batches are on the GPU already", in_file(view, [change]), Proof.NOTHING)
