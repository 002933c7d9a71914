"""How outcomes are made: from what the machine runs, the launch of the process, and where it goes wrong."""

from __future__ import annotations

from cudalint.machine import caches, messages
from cudalint.machine.interpreter import Machine
from cudalint.machine.outcome import Doubt, Kind, Outcome
from cudalint.machine.questions import (
    BEFORE,
    BUILT,
    DEFINES,
    INSTALLED,
    STARTS,
    TAKES,
    USES,
    WORKERS,
    Fact,
    choices,
    settled,
)
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
    facts = messages.assumed(settled(state.facts))
    if missing and (INSTALLED, missing) not in (question for question, _ in facts):
        facts = (((INSTALLED, missing), False), *facts)
    doubt = _doubt(machine, certain, facts)
    if doubt is None and caches.may_be_there(facts, state.process.identity, machine.made_files):
        doubt = Doubt.WRITTEN
    return Outcome(
        kind=kind,
        anchor=anchor,
        how=how,
        certain=doubt is None,
        assumed=machine.options.assumed,
        cause=() if cause is None else cause.steps(),
        launch=(*steps, *(() if started is None else started.steps())),
        effect=() if effect is None else effect.steps(),
        launcher=launcher or ("" if launch is None else launch.launcher),
        subject=subject,
        detail=detail,
        condition=condition,
        doubt=doubt,
        in_test=machine.options.in_test,
        within=within,
        facts=facts,
        choices=tuple(choices(state.facts)),
        unsaid=machine.record.spent or (detail == "unseen" and any(map(_supposes, facts))),
        benign=benign,
        chosen=launch is not None and launch.chosen,
    )


def told_by_worker(state: State, worker: State) -> State:
    """The state of a process with all that a path of its worker assumes: what the worker does may rest on that."""
    told = state.clone()
    told.facts = worker.facts
    return told


def _supposes(fact: Fact) -> bool:
    """Whether a path goes on as if something unknown were of a type, or used the GPU that it is told of.

    With a caller that is not seen either, that is a guess upon a guess.
    """
    question, holds = fact
    return holds and isinstance(question, tuple) and question[0] in ("isinstance", TAKES, USES, STARTS)


# What a path was told of something that the code does not show, and the doubt that comes of it: the first one counts.
_IN_DOUBT = {
    (INSTALLED, False): Doubt.MISSING,
    (DEFINES, True): Doubt.DEFINED,
    (DEFINES, False): Doubt.DEFINED,
    (USES, True): Doubt.USES,
    (STARTS, True): Doubt.STARTS,
    (TAKES, True): Doubt.TYPE,
    (BUILT, True): Doubt.BUILT,
    (BEFORE, True): Doubt.RELEASE,
}


def _doubt(machine: Machine, certain: bool, facts: tuple[Fact, ...]) -> Doubt | None:
    told = {(question[0], answer) for question, answer in facts if isinstance(question, tuple)}
    for about, doubt in _IN_DOUBT.items():
        if about in told:
            return doubt
    if any(answer and question in machine.record.stand_ins for question, answer in facts):
        return Doubt.DEVICE
    if machine.record.cut is not None:
        return Doubt.CUT
    if certain:
        return None
    return Doubt.WORKERS if (WORKERS, True) in told else Doubt.METHOD
