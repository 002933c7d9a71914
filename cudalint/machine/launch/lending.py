"""GPU memory that a process lends to others through CUDA IPC, and whether it lives on until they are done with it."""

from __future__ import annotations

from cudalint.machine.interpreter import Machine
from cudalint.machine.outcome import Kind
from cudalint.machine.state import Loan, State
from cudalint.machine.trace import Site
from cudalint.structs import replace


def lent_since(machine: Machine, state: State, before: int, *waits_for: Site) -> None:
    """What was sent to other processes since an outcome of that number is lent until one of these is waited for."""
    for outcome in machine.record.outcomes[before:]:
        if outcome.kind is Kind.CUDA_ACROSS and not outcome.benign:
            lend(state, outcome.anchor, *waits_for)


def lend(state: State, anchor: Site, *waits_for: Site) -> None:
    """What is sent at a place is lent until a process, a future or a pool that was made at one of these has ended."""
    loan = Loan(anchor, frozenset(waits_for))
    if loan not in state.process.loans:
        state.process = replace(state.process, loans=state.process.loans | {loan})


def awaited(machine: Machine, state: State, made: Site) -> None:
    """This process waits for what was made at a place: whatever it had lent it is done with."""
    over = {loan for loan in state.process.loans if made in loan.waits_for}
    if over:
        machine.record.returned |= {loan.anchor for loan in over}
        state.process = replace(state.process, loans=state.process.loans - over)


def ends(machine: Machine, state: State) -> None:
    """A process ends in this state, whoever still looks into its memory."""
    machine.record.left_behind |= {loan.anchor for loan in state.process.loans}
