"""Lightning's trainer and its strategies."""

from __future__ import annotations

from cudalint.machine import gpu_memory, questions
from cudalint.machine.effects.concurrency.environments import named_methods
from cudalint.machine.effects.gpu import arrays, cuda, devices
from cudalint.machine.effects.receivers import library_object
from cudalint.machine.effects.torch import loaders
from cudalint.machine.frame import Call, Raised, Results
from cudalint.machine.heap import Instance, LibraryObject
from cudalint.machine.interpreter import Machine
from cudalint.machine.joining import merge
from cudalint.machine.launch import workers
from cudalint.machine.launch.arguments import named_arguments, task
from cudalint.machine.launch.forbidden import bootstrapping, daemon_child
from cudalint.machine.launch.launching import Start, Way
from cudalint.machine.outcome import Kind
from cudalint.machine.reporting import outcome_of
from cudalint.machine.state import Selected, State
from cudalint.machine.values import (
    NONE,
    Bound,
    Const,
    Dev,
    Lib,
    Rank,
    Ref,
    Value,
    const,
    constant,
    only,
    strings,
    unknown,
)
from cudalint.structs import replace


def trainer(machine: Machine, call: Call) -> Results:
    """``Trainer(strategy=)``: starts nothing yet."""
    fields: dict[str, Value] = {
        "<strategy>": strategy_told(machine, call),
        "<accelerator>": call.get("accelerator") or const("auto"),
        "<several>": const(several_asked(machine, call)),
        "<callbacks>": call.kwargs.get("callbacks", NONE),
    }
    made = LibraryObject("lightning.Trainer", fields, call.site)
    return [(call.state, (call.state.new(("trainer", call.site), made),))]


def several_asked(machine: Machine, call: Call) -> bool | None:
    """Whether ``devices=`` asks for several GPUs; none where that depends on how many there are."""
    # Until Lightning 2 it was gpus=, whose strategy by default was another one.
    older = call.kwargs.get("gpus") if call.get("strategy") else None
    value = call.get("devices") or older or const("auto")
    rows = [machine.exact_items((atom,), call.state) for atom in value if isinstance(atom, Ref)]
    if rows:
        return all(row is not None and len(row) > 1 for row in rows)
    named = str(constant(value))
    if named in ("auto", "-1"):
        return None
    return "," in named or (named.isdecimal() and int(named) > 1)


def strategy_told(machine: Machine, call: Call) -> Value:
    """The strategy that a trainer is told; without one it forks in a notebook, where it is to use several GPUs."""
    told, number, several = call.get("strategy") or NONE, call.get("devices"), several_asked(machine, call)
    is_left = told == NONE or constant(told) == "auto"
    if not is_left or not machine.program.is_notebook(machine.main) or several is False:
        return told
    if number is None or constant(number) == "auto":
        # One of them in a notebook.
        return told
    return const("ddp_fork") if several else (Const("ddp_fork"), Const("auto"))


def strategy(machine: Machine, call: Call) -> Results:
    """``DDPStrategy(start_method=)``: the strategy that its class name stands for."""
    names = strings(call.kwargs.get("start_method", const("popen")))
    return [(call.state, tuple(Const(_STRATEGIES[n]) for n in names if n in _STRATEGIES) or unknown("strategy"))]


_STRATEGIES = {"popen": "ddp", "fork": "ddp_fork", "spawn": "ddp_spawn", "forkserver": "ddp_spawn"}


def trainer_fit(machine: Machine, call: Call) -> Results:
    """``trainer.fit(model)``: strategies that fork refuse a process that initialised CUDA."""
    obj = library_object(call)
    strategies = [] if obj is None else strings(obj.fields.get("<strategy>", ()))
    if strategies and all(name.startswith(_SPAWNS) for name in strategies):
        return _start_ranks(machine, call, "spawn")
    forking = [name for name in strategies if forks([name])]
    if forking and len(forking) < len(strategies):
        return _either_way(machine, call, strategies, forking)
    if forking:
        return _by_fork(machine, call, strategies)
    return _here(machine, call)


def _either_way(machine: Machine, call: Call, strategies: list[str], forking: list[str]) -> Results:
    """Of several strategies one forks its ranks, and another one trains here: which it is stays so on each path."""
    question = (questions.BY_FORK, tuple(forking), tuple(strategies))
    answer = call.state.fact(question)
    if answer is not None:
        return _by_fork(machine, call, strategies) if answer else _here(machine, call)
    other = replace(call, state=call.state.split(question))
    return [*_by_fork(machine, call, strategies), *_here(machine, other)]


def _by_fork(machine: Machine, call: Call, strategies: list[str]) -> Results:
    if refuses_to_fork(machine, call, strategies, f"Trainer.{call.path.rpartition('.')[2]}"):
        return machine.fail(call.state, call.frame, Raised(None, ("RuntimeError",)))
    return _start_ranks(machine, call, "fork")


def _here(machine: Machine, call: Call) -> Results:
    found = library_object(call)
    accelerators = () if found is None else strings(found.fields["<accelerator>"])
    if found is not None and accelerators and set(accelerators) <= ON_GPU:
        starts_others(machine, call, found)
    trained = _trains(machine, call, found, call.path.rpartition(".")[2])
    return [(after, unknown("fit", call.site)) for after in trained]


def starts_others(machine: Machine, call: Call, trainer: LibraryObject) -> None:
    """The other ranks run the program from its start: each of them uses GPU 0 where it did before it trains."""
    state = call.state
    process, early = state.process, state.process.allocated
    if process.launch is not None or process.device() is not None or not _has_ranks(machine, trainer):
        return
    is_one = devices.is_alone(state) or questions.only_rank(state.facts) is not None
    if early is not None and not is_one:
        devices.allocation_before_ranks(machine, call, early)
    where = machine.chain(state, call.site, f"{call.label} selects the GPU of each rank")
    state.process = replace(process, allocated=None).with_device(Selected(Rank("local"), False, where))


def _has_ranks(machine: Machine, trainer: LibraryObject) -> bool:
    """Whether a trainer starts the program once more for each other rank: it is told of several, or is for several."""
    told, several = trainer.fields["<strategy>"], constant(trainer.fields["<several>"])
    if machine.program.is_notebook(machine.main) or several is False:
        return False
    names = strings(told)
    is_left = told == NONE or names == ["auto"]
    return several is True if is_left else bool(names) and all(name.startswith(_AS_SCRIPTS) for name in names)


# The strategies that start the program once more for each of their ranks.
_AS_SCRIPTS = ("ddp", "fsdp", "deepspeed")
_FORKS = ("ddp_fork", "ddp_notebook")
_SPAWNS = "ddp_spawn"
# What a trainer is given to train on, which is pickled to ranks that it spawns.
_GIVEN = ("model", "datamodule", "train_dataloaders", "val_dataloaders", "dataloaders")


def _start_ranks(machine: Machine, call: Call, method: str) -> Results:
    """``Trainer(strategy="ddp_spawn").fit(model)``: trains in ranks that are started afresh, or ("ddp_fork") forked."""
    state = call.state
    what = f"Trainer.{call.path.rpartition('.')[2]}"
    is_fresh = method == "spawn"
    if (is_fresh and bootstrapping(machine, call, f"{what}()")) or daemon_child(machine, call, f"{what}()"):
        return machine.fail(state, call.frame, Raised(None, ("RuntimeError", "AssertionError")))
    given = {name: value for name in _GIVEN if (value := call.get(name)) is not None}
    trainer: Value = (call.receiver,) if call.receiver is not None else NONE
    stage = const(call.path.rpartition(".")[2])
    start = Start(
        launcher=what,
        family="spawn",
        anchor=call.site,
        chain=machine.chain(state, call.site, f"{what}() {method}s the ranks"),
        many=False,
        reused=False,
        daemon=False,
        failures={"body": "crash", "unpickle": "crash"},
        tasks=(task((Lib("cudalint.trainer.rank"),), [trainer, stage], given),),
        inherited=(trainer, *given.values()),
        label="rank",
        shares=False,
        waits=True,
        looks=not is_fresh,
    )
    ended = workers.start(machine, state, call.frame, start, Way(method, True, explicit=True))
    if workers.raise_in_parent(machine, state, call.frame, [ended]):
        return []
    return [(state, unknown("fit", call.site))]


def trains_in_rank(machine: Machine, call: Call) -> Results:
    """A rank that a trainer started."""
    trainer, stage, *_ = call.args
    found = call.state.get(atom) if isinstance(atom := only(trainer), Ref) else None
    name = next(iter(strings(stage)), "fit")
    kept = found if isinstance(found, LibraryObject) else None
    return [(after, NONE) for after in _trains(machine, call, kept, name)]


def forks(strategies: list[str]) -> bool:
    """Whether one of these strategies forks its ranks."""
    return any(name.startswith(_FORKS) for name in strategies)


# What the ranks do for the ways of running a trainer that do not train.
_WORK = {"validate": "validation", "test": "testing", "predict": "prediction"}


def refuses_to_fork(machine: Machine, call: Call, strategies: list[str], launcher: str) -> bool:
    """Whether a strategy that forks its ranks refuses to, because this process used CUDA."""
    state = call.state
    driver = state.process.driver
    if driver is None or not forks(strategies):
        return False
    forking = next(name for name in strategies if forks([name]))
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
            subject=_WORK.get(launcher.rpartition(".")[2], "training"),
            started=machine.chain(state, call.site, f"strategy {forking} forks the ranks"),
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


def _move(machine: Machine, call: Call, state: State) -> None:
    """The model lies on the GPU before the loaders of its data are made and iterated."""
    model = only(call.get("model") or ())
    if isinstance(model, Ref):
        gpu_memory.place(model, arrays.new_tensor(machine, call, state, Dev("cuda"), "torch.Tensor"), state)


def _trains(machine: Machine, call: Call, trainer: LibraryObject | None, stage: str) -> list[State]:
    """Training in this process: CUDA is initialised, the data is set up, its loaders are made and iterated."""
    accelerators = set(strings(() if trainer is None else trainer.fields.get("<accelerator>", ())))
    on_gpu = bool(accelerators) and accelerators <= ON_GPU
    state: State | None = call.state
    if on_gpu:
        what = f"Trainer.{stage}"
        state = cuda.touch(machine, call.state, call.frame, call.site, "torch", "init", what, context=True)
    states = [] if state is None else [state]
    kept = NONE if trainer is None else trainer.fields.get("<callbacks>", NONE)
    for current in states:
        machine.hands_over((kept, *machine.elements(kept, current)), current, call.frame, call.site)
    given = [call.get(name) for name in ("train_dataloaders", "val_dataloaders", "dataloaders")]
    holders = call.get("datamodule"), call.get("model"), given[0] or given[2]
    for holder in holders:
        for method, args in (("prepare_data", []), ("setup", [const(stage)])):
            states = merge([s for c in states for s in _hook(machine, call, holder, method, args, c)])
    for current in states if on_gpu else ():
        _move(machine, call, current)
    for loader in given:
        states = [s for c in states for s in _iterated(machine, call, loader, c)]
    for holder in holders:
        for method in _LOADERS.get(stage, ()):
            states = merge([s for c in states for s in _hook(machine, call, holder, method, [], c)])
    for current in states:
        machine.hands_over(_steps(machine, call, current), current, call.frame, call.site)
    return states


def _steps(machine: Machine, call: Call, state: State) -> list[Value]:
    """What a trainer may call of its module: its steps, and the hooks around them."""
    model = call.get("model") or NONE
    atom = only(model)
    found = state.get(atom) if isinstance(atom, Ref) else None
    if atom is None or not isinstance(found, Instance):
        return []
    names = named_methods(machine, state, model, call.texts("methods"))
    methods = (machine.user_method(found, name, state) for name in names)
    return [(Bound(method, atom),) for method in methods if method is not None]


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


def loops(machine: Machine, call: Call) -> Results:
    """``trainer.fit()`` of a trainer that was made with its loaders: it goes through these, or those it is given.

    With ``kind = "datasets"`` it makes loaders of what is no loader, as its other arguments and the dict ``key`` say.
    """
    kept = library_object(call)
    fields = {} if kept is None else kept.fields
    states = [call.state]
    for name in call.texts("methods"):
        given = call.get(name) or fields.get(name)
        for_each = [_loader_of(machine, replace(call, state=current), given) for current in states]
        states = [
            after
            for results in for_each
            for current, loader in results
            for after in _iterated(machine, call, loader, current)
        ]
    return [(after, NONE) for after in states]


def _loader_of(machine: Machine, call: Call, given: Value | None) -> list[tuple[State, Value | None]]:
    """A loader, or the one that the library makes of a dataset."""
    atom = only(given) if given else None
    if call.text("kind") != "datasets" or not isinstance(atom, Ref) or _is_loader(call.state.get(atom)):
        return [(call.state, given)]
    told = named_arguments(call.state, call.get(call.text("key")))
    handed = {**call.kwargs, **told, "dataset": (atom,)}
    made = loaders.loader(machine, replace(call, args=[], kwargs=handed, receiver=None, spec={"does": "loader"}))
    return [(state, loader) for state, loader in made]


def _is_loader(found: object) -> bool:
    return isinstance(found, LibraryObject) and found.type == "torch.utils.data.DataLoader"


def _iterated(machine: Machine, call: Call, value: Value | None, state: State) -> list[State]:
    """The states after the batches of a loader were read."""
    atom = only(value) if value else None
    found = state.get(atom) if isinstance(atom, Ref) else None
    if value is None or not isinstance(found, LibraryObject):
        return [state]
    return [after for after, _ in machine.iterate(value, state, call.frame, call.site)]
