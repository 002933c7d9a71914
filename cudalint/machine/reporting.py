"""How outcomes are made: from what the machine runs, the launch of the process, and where it goes wrong."""

from __future__ import annotations

from cudalint.machine.interpreter import Machine
from cudalint.machine.outcome import Kind, Outcome
from cudalint.machine.state import Launch, State
from cudalint.machine.trace import Chain, Site, TraceStep


def outcome_of(
    machine: Machine,
    state: State,
    kind: Kind,
    anchor: Site,
    how: str,
    *,
    cause: Chain | None = None,
    launch: Launch | None = None,
    started: Chain | None = None,
    effect: Chain | None = None,
    certain: bool = True,
    launcher: str = "",
    subject: str = "",
    detail: str = "",
    condition: str | None = None,
    within: Site | None = None,
    benign: bool = False,
) -> Outcome:
    """One outcome on the path of ``state``. ``launch`` is how its process was started; ``started`` is made here.

    After a bound has cut, what would have averted it may lie in what was left out: it is not certain. Neither is what
    needs a package to be missing that the program asks for first.
    """
    steps: tuple[TraceStep, ...] = () if launch is None else launch.chain.steps()
    chains = (cause, started, effect, None if launch is None else launch.chain)
    missing = next((chain.missing for chain in chains if chain is not None and chain.missing), "")
    if missing and condition is None:
        condition = f"{missing} is not installed"
    return Outcome(
        kind=kind,
        anchor=anchor,
        how=how,
        certain=certain and machine.record.cut is None and not missing,
        assumed=machine.options.assumed,
        cause=() if cause is None else cause.steps(),
        launch=(*steps, *(() if started is None else started.steps())),
        effect=() if effect is None else effect.steps(),
        launcher=launcher or ("" if launch is None else launch.launcher),
        subject=subject,
        detail=detail,
        condition=condition,
        in_test=machine.options.in_test,
        within=within,
        facts=state.facts,
        unsaid=machine.record.spent,
        benign=benign,
    )
