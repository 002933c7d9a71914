"""Using CUDA: what it does to a process, where it fails, and reading memory that was inherited."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from cudalint.machine import questions
from cudalint.machine.frame import Frame, Raised
from cudalint.machine.gpu_memory import memory_of, owner_of
from cudalint.machine.heap import Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.outcome import Doubt, Kind, Outcome
from cudalint.machine.reporting import outcome_of
from cudalint.machine.state import Context, Launch, Process, State
from cudalint.machine.trace import Chain, Site
from cudalint.machine.values import Atom, Const, Dev, Index, Rank, Ref, Unknown, Value, const, constant, only
from cudalint.structs import Frozen, replace

FAILS = frozenset({"driver", "init", "use", "touch"})

POISONS = frozenset({"query", "driver", "init", "use"})

VISIBLE = questions.VISIBLE
# What hides all GPUs where the variable is this.
HIDING = (const(""), const("-1"))
# They work on the CPU where no GPU is in sight, unless one is named.
_FALL_BACK = frozenset({"tensorflow", "jax"})
# Frameworks that refuse a GPU by a number that no visible one has; TensorFlow may take another.
_NUMBERS_CHECKED = frozenset({"torch", "cupy"})
_RENUMBERED = "a GPU by its number in CUDA_VISIBLE_DEVICES, and those that it lists are counted from 0"
# The number of the current device of a thread that selected none: GPU 0, whatever other threads selected.
THREAD_DEFAULT = Rank("thread")


def touch(
    machine: Machine,
    state: State,
    frame: Frame,
    site: Site,
    framework: str,
    effect: str,
    what: str,
    device: Dev | None = None,
    context: bool = False,
    by_default: bool = False,
    unnamed: bool = False,
) -> State | None:
    """Apply one use of the GPU; None where it ends the path.

    ``effect`` is one of the model's: query poisons forks; driver poisons and fails in a poisoned child;
    init also initialises the framework; use is what other frameworks than torch call init; touch only fails; told does
    nothing by itself. ``unnamed``: the program does not ask for a GPU, the framework takes it.
    """
    process = state.process
    if process.dead or effect == "none" or framework in process.hidden:
        return state
    if effect == "told":
        state.process = replace(process, told=process.told | {framework})
        return state
    if (framework == "jax" and keeps_to_cpu(process)) or (framework == "numba" and is_simulated(process)):
        return state
    if effect in FAILS and process.forked and process.poison is not None:
        return _fail_in_child(machine, state, frame, site, framework, what, by_default)
    if effect in FAILS and process.forked_unseen:
        # A caller that is not seen may have used CUDA before the fork. If it did not, this process is like others.
        _fail_in_child(machine, state.clone(), frame, site, framework, what, by_default)
        state.process = process = replace(process, forked_unseen=False)
    if sees_none(machine, process):
        return state
    if process.withheld is not None and not (framework in _FALL_BACK and (unnamed or device is None)):
        _note_withheld(machine, state, frame, site, effect, what, *process.withheld)
        process = state.process
    if effect in ("init", "use") and process.hidden_late is not None:
        state.process = process = _note_hidden_late(machine, state, site, process.hidden_late, what)
    if effect in FAILS and device is not None and framework in _NUMBERS_CHECKED and not process.misnumbered:
        hidden = _hidden(state, device.index)
        after = state if hidden is None else _note_hidden(machine, state, frame, site, framework, what, hidden)
        if after is None or after.process.dead:
            return after
    if effect in POISONS:
        state.process = process = _poison(machine, state, site, framework, effect, what)
    if context:
        _open_context(machine, state, frame, site, what, device, _seen(state, framework))
    return state


def _poison(machine: Machine, state: State, site: Site, framework: str, effect: str, what: str) -> Process:
    process = state.process
    verb = "asks the driver" if effect == "query" else "initialises CUDA"
    made: Chain | None = None
    if process.driver is None or (process.driver.missing and (state.stack is None or not state.stack.missing)):
        made = machine.chain(state, site, f"{what} {verb}")
        process = replace(process, driver=made, seen=process.environ(VISIBLE) or ())
    if framework not in process.asked_by:
        process = replace(process, asked_by=process.asked_by | {framework})
    if effect in ("init", "use") and not process.is_initialised(framework):
        made = made or machine.chain(state, site, f"{what} {verb}")
        process = replace(process, initialised=tuple(sorted((*process.initialised, (framework, made)), key=_first)))
        if framework == "tensorflow" and process.growth is None and _grows(process):
            process = replace(process, growth=made)
    return process


def _honoured(process: Process) -> Value:
    """CUDA_VISIBLE_DEVICES as the driver of this process found it, or is going to find it."""
    return (process.environ(VISIBLE) or ()) if process.driver is None else process.seen


def _visible(process: Process) -> tuple[str, ...]:
    """The GPUs that the program lets its driver see; none where that is not known. What names none ends the list."""
    names = constant(_honoured(process))
    if not isinstance(names, str):
        return ()
    return tuple(takewhile(lambda name: name and not name.startswith("-"), map(str.strip, names.split(","))))


class Hidden(Frozen):
    """What a GPU is named by that a process does not see, whether that is certain, and what it sees it as."""

    said: str
    certain: bool
    number: int | None


def _hidden(state: State, index: Index) -> Hidden | None:
    """The GPU that this process does not see under its number, if it does not.

    The visible GPUs are counted from 0, whatever the variable calls them.
    """
    process = state.process
    match index:
        case int():
            names = _visible(process)
            count = len(names)
            # Where the program found more GPUs than that, it does not come here.
            if not names or index < count or questions.exceeds(state.facts, questions.DEVICES, count):
                return None
            number = names.index(str(index)) if str(index) in names else None
            return Hidden(f"GPU {index}, and CUDA_VISIBLE_DEVICES leaves {_numbers(count)}", True, number)
        case Rank(kind="system"):
            return Hidden(_RENUMBERED, False, None)
        case Rank(kind="local" | "global", derived=False) if only(_honoured(process)) == index:
            # The first of several ranks has the number 0, the others fail.
            return Hidden(_RENUMBERED, process.launch is not None and process.launch.many, 0)
    return None


def _numbers(count: int) -> str:
    return "only GPU 0" if count == 1 else f"only GPUs 0 to {count - 1}"


def _note_hidden(
    machine: Machine, state: State, frame: Frame, site: Site, framework: str, what: str, hidden: Hidden
) -> State | None:
    """A GPU by a number that no visible one has: refused as an invalid device ordinal."""
    detail, certain = hidden.said, hidden.certain
    process, launch = state.process, state.process.launch
    outcome = outcome_of(
        machine,
        state,
        Kind.HIDDEN_GPU,
        site,
        "crash" if launch is None else launch.failure,
        certain=certain,
        cause=process.narrowed,
        effect=machine.chain(state, site, f"{what} names {detail}"),
        subject=what,
        detail=detail,
        launch=launch,
    )
    outcome = replace(outcome, number=hidden.number)
    if not certain:
        machine.emit(replace(outcome, doubt=outcome.doubt and Doubt.NAMES))
        state.process = replace(process, misnumbered=True)
        return state
    if frame.tries > 0:
        # Whoever handles it may ask in this way which GPUs there are.
        frame.raises.append((state, Raised(outcome, _error_names(framework), harmless=True)))
        return None
    machine.emit(outcome)
    state.process = replace(process, dead=True)
    return state


def _note_withheld(
    machine: Machine, state: State, frame: Frame, site: Site, effect: str, what: str, started: Chain, releases: str
) -> None:
    """The GPU in a process that was given none: some releases of its scheduler hide them all. Who asks first, knows."""
    state.process = replace(state.process, withheld=None)
    if effect not in FAILS or frame.tries > 0:
        return
    detail = f"a GPU, and {releases} hides them all from what asks for none"
    effects = machine.chain(state, site, f"{what} needs a GPU here")
    outcome = outcome_of(
        machine,
        state,
        Kind.HIDDEN_GPU,
        site,
        "crash",
        certain=False,
        cause=started,
        effect=effects,
        subject=what,
        detail=detail,
    )
    machine.emit(replace(outcome, doubt=outcome.doubt and Doubt.RELEASE))


def _note_hidden_late(machine: Machine, state: State, site: Site, hidden: Site, what: str) -> Process:
    """A GPU is used although the program hid them all before: the driver had looked even earlier."""
    process = state.process
    machine.emit(
        outcome_of(
            machine,
            state,
            Kind.VISIBLE_TOO_LATE,
            hidden,
            "wrong-device",
            cause=process.driver,
            effect=machine.chain(state, site, f"{what} uses a GPU, although all of them were hidden"),
            launch=process.launch,
        )
    )
    return replace(process, hidden_late=None, late_visible=(*process.late_visible, hidden))


def _grows(process: Process) -> bool:
    """Whether the environment asks TensorFlow for memory growth, which it reads when it starts the GPU."""
    value = process.environ("TF_FORCE_GPU_ALLOW_GROWTH") or ()
    return any(isinstance(a, Const) and str(a.value).lower() in ("1", "true") for a in value)


def _first(pair: tuple[str, Chain]) -> str:
    return pair[0]


def one_of_all(choice: Value, state: State) -> Atom | None:
    """The number of the GPU of all that is chosen alone, as in ``gpus[n]`` and ``[gpus[n]]``."""
    atom = only(choice)
    listed = state.get(atom) if isinstance(atom, Ref) else None
    if isinstance(listed, Sequence) and listed.items is not None and len(listed.items) == 1:
        atom = only(listed.items[0])
    match atom:
        case Unknown(sym=((kind, _), "[]", (key,))) if kind == questions.EVERY_GPU[0]:
            return key if isinstance(key, Const | Rank | Unknown) else None
    return None


def _seen(state: State, framework: str) -> Value:
    """The GPUs that a process sees: by the variable, or by the one of all that it has TensorFlow see."""
    number = one_of_all(state.process.visible_choice, state) if framework == "tensorflow" else None
    # The first of them is what other frameworks use as well.
    if number is None or number == Const(0):
        return state.process.environ(VISIBLE) or ()
    return (number,)


def _open_context(
    machine: Machine, state: State, frame: Frame, site: Site, what: str, device: Dev | None, visible: Value
) -> None:
    process = state.process
    index = current_index(process, device)
    there = f" on GPU {index}" if isinstance(index, int) else ""
    where = machine.chain(state, site, f"{what} opens a context{there}")
    prepared = process.launch is not None and process.launch.stage == "initializer"
    rank = questions.only_rank(state.facts)
    if device is not None and not any(opened.index == device.index for opened in process.contexts):
        note_rank(machine, state, site, what, device.index, where)
    unnamed = device is None or device.index in (None, THREAD_DEFAULT)
    bare = unnamed or index == 0
    take_current(machine, state, site, what, device)
    is_first = process.allocated is None and bare and process.device() is None
    opened = process.contexts | {Context(visible, index, where, prepared, rank)}
    state.process = replace(process, contexts=opened, allocated=where if is_first else process.allocated)


def note_rank(machine: Machine, state: State, site: Site, what: str, index: Index, where: Chain) -> None:
    """A rank takes the GPU of its number: the global number is wrong on several machines."""
    selected = state.process.device()
    if not isinstance(index, Rank) or (selected is not None and selected.index == index):
        return
    if index.kind != "global":
        machine.record.local_choices.add(tuple(step.site for step in where.steps()))
        return
    if _meets_at_home(state.process):
        return
    # Where nothing tells of several machines, there may be one only, on which both numbers are equal.
    known = state.process.local_rank_at_hand
    machine.emit(
        outcome_of(
            machine,
            state,
            Kind.GLOBAL_RANK_DEVICE,
            site,
            "wrong-device",
            effect=where,
            subject=what,
            detail="; a local rank is at hand" if known else "",
            launch=state.process.launch,
            benign=not known,
        )
    )


def _meets_at_home(process: Process) -> bool:
    """Whether the program has its ranks meet on their own machine: it is the only one, and both numbers are equal."""
    address = process.environ("MASTER_ADDR") or ()
    return bool(address) and all(isinstance(atom, Const) and atom.value in _AT_HOME for atom in address)


_AT_HOME = frozenset({"localhost", "127.0.0.1", "::1"})


def open_beside(machine: Machine, state: State, site: Site, what: str) -> None:
    """A process that this one started and keeps, and of which no code is seen, has a context on the first GPU."""
    process = state.process
    where = machine.chain(state, site, f"{what} has a process that opens a context")
    opened = Context(process.environ(VISIBLE) or (), None, where, False, questions.only_rank(state.facts))
    state.process = replace(process, contexts=process.contexts | {opened})


def take_current(machine: Machine, state: State, site: Site, what: str, device: Dev | None) -> None:
    """What takes the device that is current in its thread, unless it is told another."""
    process = state.process
    unnamed = device is None or device.index in (None, THREAD_DEFAULT)
    if process.in_thread and process.device() is None and unnamed:
        _thread_outcome(machine, state, site, what)


def _thread_outcome(machine: Machine, state: State, site: Site, what: str) -> None:
    """A thread that uses the current device, while another thread selected one that is not GPU 0."""
    process = state.process
    others = [s for t, s in process.selected if t != process.thread and s.index not in (0, None)]
    started = process.thread_start
    if not others or started is None:
        return
    anchor, chain = started
    launch = process.launch
    machine.emit(
        outcome_of(
            machine,
            state,
            Kind.THREAD_DEVICE,
            anchor,
            "wrong-device",
            cause=others[0].where,
            effect=machine.chain(state, site, f"{what} uses GPU 0, the current device of this thread"),
            subject=what,
            detail=str(index) if isinstance(index := others[0].index, int) else "",
            launch=launch,
            started=chain,
        )
    )


def current_index(process: Process, device: Dev | None) -> Index:
    """The GPU that a device means in this process and thread."""
    if device is not None and device.index == THREAD_DEFAULT:
        return 0
    if device is not None and device.index is not None:
        return device.index
    selected = process.device()
    return 0 if selected is None else selected.index


def index_value(index: Index) -> Value:
    """The number of a GPU as a value."""
    return (index,) if isinstance(index, Rank) else const(index)


def _fail_in_child(
    machine: Machine, state: State, frame: Frame, site: Site, framework: str, what: str, by_default: bool
) -> State | None:
    """CUDA in a forked child whose parent had used it: what the model of the launcher says happens."""
    process = state.process
    launch = process.launch
    if launch is None:
        return state
    if framework == "jax" and process.poison is not None and "jax" not in process.poisoned_by:
        outcome = _child_outcome(machine, state, site, launch, f"{what}: JAX falls back to the CPU")
        machine.emit(replace(outcome, how="wrong-device"))
        state.process = replace(process, dead=True)
        return state
    outcome = _child_outcome(machine, state, site, launch, what)
    if by_default and launch.family == "loader":
        outcome = replace(outcome, kind=Kind.DEFAULT_DEVICE_LOADER, detail="have workers that make tensors")
    if framework in ("jax", "tensorflow") and outcome.how == "crash" and launch.family == "pool":
        outcome = replace(outcome, how="hang")
    if frame.tries > 0 and framework != "jax":
        frame.raises.append((state, Raised(outcome, _error_names(framework))))
        return None
    machine.emit(outcome)
    state.process = replace(process, dead=True)
    return state


def _error_names(framework: str) -> tuple[str, ...]:
    match framework:
        case "torch":
            return ("RuntimeError",)
        case "cupy":
            return ("CUDARuntimeError", "RuntimeError")
        case "numba":
            return ("CudaDriverError", "CudaSupportError")
    return ("RuntimeError", "InternalError")


def _child_outcome(machine: Machine, state: State, site: Site, launch: Launch, what: str) -> Outcome:
    process = state.process
    kinds = {"loader": Kind.CUDA_IN_LOADER_FORK, "fork-launcher": Kind.FORK_LAUNCHER}
    guilty = process.poison
    return outcome_of(
        machine,
        state,
        kinds.get(launch.family, Kind.CUDA_IN_FORK),
        launch.anchor,
        launch.failure,
        certain=guilty is not None and launch.certain,
        cause=guilty,
        effect=machine.chain(state, site, f"{what} needs CUDA here"),
        subject=what,
        condition=launch.condition,
        detail="" if guilty is not None else "unseen",
        launch=launch,
    )


def read(machine: Machine, tensor: Atom, state: State, frame: Frame, site: Site, what: str) -> State | None:
    """Use the data of a GPU value; None where that ends the path."""
    owner, origin = owner_of(tensor, state)
    process = state.process
    if owner is None or owner == process.identity or not process.forked or process.launch is None:
        return state
    if process.identity[: len(owner)] != owner or process.misread:
        return state
    launch = process.launch
    kinds = {"loader": Kind.INHERITED_IN_LOADER, "fork-launcher": Kind.FORK_LAUNCHER}
    kind = kinds.get(launch.family, Kind.INHERITED_CUDA)
    outcome = outcome_of(
        machine,
        state,
        kind,
        launch.anchor,
        launch.failure,
        certain=launch.certain,
        cause=origin,
        effect=machine.chain(state, site, f"{what} reads GPU memory of the parent"),
        subject=what,
        condition=launch.condition,
        launch=launch,
    )
    memory = memory_of(tensor, state)
    if memory is not None and memory.framework == "jax":
        # Nothing is raised: arithmetic waits for ever, and what was compiled before the fork aborts (H100, JAX 0.11.2).
        outcome = replace(outcome, how="hang")
    elif frame.tries > 0 and not process.dead:
        frame.raises.append((state, Raised(outcome, ("RuntimeError", "AcceleratorError"))))
        return None
    machine.emit(outcome)
    state.process = replace(process, dead=True, misread=True)
    return state


def asks_nvml(state: State) -> bool:
    """Whether torch's question for a GPU goes past the driver, as PYTORCH_NVML_BASED_CUDA_CHECK wants it."""
    return is_known_set(state, "PYTORCH_NVML_BASED_CUDA_CHECK")


def is_known_set(state: State, variable: str) -> bool:
    """Whether a variable is set so by the program, or by whoever started it, where it asked and goes on only then."""
    return is_set(state.process, variable) or any(
        state.process.environ(name) is None
        and state.fact(("is", "==", Unknown(("environ", name)), Const(wanted))) is True
        for name, wanted in _wanted(variable)
    )


def is_set(process: Process, variable: str) -> bool:
    """Whether a variable of the environment is ``"1"``, or what ``NAME=0`` says, or so one of several."""
    return any(Const(wanted) in (process.environ(name) or ()) for name, wanted in _wanted(variable))


def _wanted(variable: str) -> Iterator[tuple[str, str]]:
    """The variables of the environment that a model names, each with what it has to be."""
    for name, _, wanted in (one.partition("=") for one in variable.split()):
        yield name, wanted or "1"


def keeps_to_cpu(process: Process) -> bool:
    """Whether the environment keeps JAX off the GPU, which it looks at when it is imported."""
    is_told = process.environ("JAX_PLATFORMS") == const("cpu") and "JAX_PLATFORMS" not in process.unread
    return is_told and not process.is_initialised("jax")


def is_simulated(process: Process) -> bool:
    """Whether numba simulates its kernels on the host, as a variable says that it looks at when it is imported."""
    return is_set(process, "NUMBA_ENABLE_CUDASIM") and "NUMBA_ENABLE_CUDASIM" not in process.unread


def computes_on_cpu(process: Process, framework: str) -> bool:
    """Whether a framework computes on the CPU where nothing names a device, although it may start the GPU as well."""
    is_told = process.environ("JAX_PLATFORM_NAME") == const("cpu") and "JAX_PLATFORM_NAME" not in process.unread
    return framework in process.on_cpu or (framework == "jax" and is_told)


def begin_on_cpu(machine: Machine, state: State, frame: Frame, site: Site, framework: str, what: str) -> None:
    """What runs on the CPU: JAX starts all of its platforms at its first operation, wherever that runs."""
    if framework != "jax":
        return
    process = state.process
    touch(machine, state, frame, site, framework, "query", what)
    if process.forked and not process.dead and process.launch is not None and "jax" in process.poisoned_by:
        # A product of 4 by 4 numbers is computed, one of 200 by 200 waits for ever (H200, JAX 0.11.2, Python 3.12).
        outcome = _child_outcome(machine, state, site, process.launch, what)
        machine.emit(replace(outcome, how="hang", certain=False, doubt=Doubt.THREADS))


def sees_none(machine: Machine, process: Process) -> bool:
    """Whether there is no GPU, or the program hid all of them before the driver looked, here or before it forked.

    A child whose parent had asked the driver is told of GPUs by ``is_available()`` as ever (torch 2.11 on an H200).
    """
    value, has_looked = process.environ(VISIBLE), process.driver is not None or process.poison is not None
    return machine.options.without_gpus or (not has_looked and value in HIDING)
