"""Choosing a device where a program only seems to."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from cudalint.fixes import imports
from cudalint.fixes.proposal import Case, Proposal, in_file


def select_instead(case: Case) -> Iterator[Proposal]:
    """``torch.cuda.set_device(i)`` for the statement ``torch.cuda.device(i)``."""
    found = case.call_at(case.outcome.anchor)
    if found is None:
        return
    view, call = found
    if isinstance(call.func, cst.Attribute):
        changes = [view.replace(call.func.attr, "set_device")]
    else:
        name = imports.member(view, "torch.cuda", "set_device")
        changes = [view.replace(call.func, name.text), *name.changes]
    yield Proposal(
        "select the device with `set_device`",
        in_file(view, changes),
        doubt="what follows then runs on that GPU, where it ran on another",
    )
