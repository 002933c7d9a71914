"""Lightning's trainer and its strategies."""

from __future__ import annotations

from cudalint.machine.behaviours.callees import thing_of
from cudalint.machine.behaviours.outcomes import outcome_of
from cudalint.machine.frame import Call, Raised, Results
from cudalint.machine.heap import Thing
from cudalint.machine.interpret import Machine
from cudalint.machine.outcome import Kind
from cudalint.machine.values import NONE, Value, strings, unknown


def trainer(machine: Machine, call: Call) -> Results:
    """``Trainer(strategy=)``: starts nothing yet."""
    fields: dict[str, Value] = {"<strategy>": call.get("strategy") or NONE}
    return [(call.state, (call.state.new(("trainer", call.site), Thing("lightning.Trainer", fields, call.site)),))]


def trainer_fit(machine: Machine, call: Call) -> Results:
    """``trainer.fit(model)``: strategies that fork refuse a process that initialised CUDA."""
    state = call.state
    thing = thing_of(call)
    strategies = [] if thing is None else strings(thing.fields.get("<strategy>", ()))
    if not any(s.startswith(("ddp_fork", "ddp_notebook")) for s in strategies):
        return [(state, unknown("fit", call.site))]
    driver = state.process.driver
    if driver is None:
        return [(state, unknown("fit", call.site))]
    machine.emit(
        outcome_of(
            machine,
            Kind.FORK_LAUNCHER,
            call.site,
            "crash",
            certain=len(strategies) == 1,
            cause=driver,
            launcher="Trainer.fit",
            subject="training",
            started=machine.chain(state, call.site, f"strategy {strategies[0]} forks the ranks"),
        )
    )
    return machine.fail(state, call.frame, Raised(None, ("RuntimeError",)))
