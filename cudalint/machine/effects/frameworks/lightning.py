"""Lightning's trainer and its strategies."""

from __future__ import annotations

from cudalint.machine.effects.gpu import cuda
from cudalint.machine.effects.receivers import library_object
from cudalint.machine.frame import Call, Raised, Results
from cudalint.machine.heap import Instance, LibraryObject
from cudalint.machine.interpreter import Machine
from cudalint.machine.joining import merge
from cudalint.machine.outcome import Kind
from cudalint.machine.reporting import outcome_of
from cudalint.machine.state import State
from cudalint.machine.values import NONE, Bound, Const, Ref, Value, const, only, strings, unknown


def trainer(machine: Machine, call: Call) -> Results:
    """``Trainer(strategy=)``: starts nothing yet."""
    fields: dict[str, Value] = {
        "<strategy>": call.get("strategy") or NONE,
        "<accelerator>": call.get("accelerator") or const("auto"),
        "<callbacks>": call.kwargs.get("callbacks", NONE),
    }
    made = LibraryObject("lightning.Trainer", fields, call.site)
    return [(call.state, (call.state.new(("trainer", call.site), made),))]


def strategy(machine: Machine, call: Call) -> Results:
    """``DDPStrategy(start_method=)``: the strategy that its class name stands for."""
    names = strings(call.kwargs.get("start_method", const("popen")))
    return [(call.state, tuple(Const(_STRATEGIES[n]) for n in names if n in _STRATEGIES) or unknown("strategy"))]


_STRATEGIES = {"popen": "ddp", "fork": "ddp_fork", "spawn": "ddp_spawn", "forkserver": "ddp_spawn"}


def trainer_fit(machine: Machine, call: Call) -> Results:
    """``trainer.fit(model)``: strategies that fork refuse a process that initialised CUDA."""
    state = call.state
    obj = library_object(call)
    strategies = [] if obj is None else strings(obj.fields.get("<strategy>", ()))
    if not forks(strategies):
        return [(after, unknown("fit", call.site)) for after in _trains(machine, call, obj)]
    if not refuses_to_fork(machine, call, strategies, "Trainer.fit"):
        return [(state, unknown("fit", call.site))]
    return machine.fail(state, call.frame, Raised(None, ("RuntimeError",)))


_FORKS = ("ddp_fork", "ddp_notebook")


def forks(strategies: list[str]) -> bool:
    """Whether one of these strategies forks its ranks."""
    return any(name.startswith(_FORKS) for name in strategies)


def refuses_to_fork(machine: Machine, call: Call, strategies: list[str], launcher: str) -> bool:
    """Whether a strategy that forks its ranks refuses to, because this process used CUDA."""
    state = call.state
    driver = state.process.driver
    if driver is None or not forks(strategies):
        return False
    machine.emit(
        outcome_of(
            machine,
            state,
            Kind.FORK_LAUNCHER,
            call.site,
            "crash",
            certain=len(strategies) == 1,
            cause=driver,
            launcher=launcher,
            subject="training",
            started=machine.chain(state, call.site, f"strategy {strategies[0]} forks the ranks"),
        )
    )
    return True


ON_GPU = frozenset({"auto", "gpu", "cuda"})
# The loaders that each way of running a trainer asks its data for.
_LOADERS = {
    "fit": ("train_dataloader", "val_dataloader"),
    "validate": ("val_dataloader",),
    "test": ("test_dataloader",),
    "predict": ("predict_dataloader",),
}


def _trains(machine: Machine, call: Call, trainer: LibraryObject | None) -> list[State]:
    """Training in this process: CUDA is initialised, the data is set up, its loaders are made and iterated."""
    accelerators = set(strings(() if trainer is None else trainer.fields.get("<accelerator>", ())))
    state: State | None = call.state
    if accelerators and accelerators <= ON_GPU:
        state = cuda.touch(machine, call.state, call.frame, call.site, "torch", "init", "Trainer.fit", context=True)
    states = [] if state is None else [state]
    kept = NONE if trainer is None else trainer.fields.get("<callbacks>", NONE)
    for current in states:
        machine.hands_over((kept, *machine.elements(kept, current)), current, call.frame, call.site)
    stage = call.path.rpartition(".")[2]
    given = [call.get(name) for name in ("train_dataloaders", "val_dataloaders", "dataloaders")]
    for loader in given:
        states = [s for c in states for s in _iterated(machine, call, loader, c)]
    hooks = (("prepare_data", []), ("setup", [const(stage)]), *((name, []) for name in _LOADERS.get(stage, ())))
    for holder in (call.get("datamodule"), call.get("model"), given[0] or given[2]):
        for method, args in hooks:
            states = merge([s for c in states for s in _hook(machine, call, holder, method, args, c)])
    return states


def _hook(
    machine: Machine, call: Call, holder: Value | None, method: str, args: list[Value], state: State
) -> list[State]:
    """One hook of a data module or model, where the program defines it; a loader that it returns is iterated."""
    states = [state]
    for atom in holder or ():
        for current in tuple(states):
            found = current.get(atom) if isinstance(atom, Ref) else None
            function = machine.user_method(found, method, current) if isinstance(found, Instance) else None
            if function is None:
                continue
            made = machine.call_value((Bound(function, atom),), list(args), {}, current, call.frame, call.site)
            states.remove(current)
            states.extend(s for after, value in made for s in _iterated(machine, call, value, after))
    return states


def _iterated(machine: Machine, call: Call, value: Value | None, state: State) -> list[State]:
    """The states after the batches of a loader were read."""
    atom = only(value) if value else None
    found = state.get(atom) if isinstance(atom, Ref) else None
    if value is None or not isinstance(found, LibraryObject):
        return [state]
    return [after for after, _ in machine.iterate(value, state, call.frame, call.site)]
