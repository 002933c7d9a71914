"""Ranks of torch.distributed: process groups, collectives, devices."""

from __future__ import annotations

from cudalint.ir.walk import mentions
from cudalint.machine import gpu_memory, operators, questions
from cudalint.machine.assumed import is_one
from cudalint.machine.effects.gpu import arrays, cuda, devices
from cudalint.machine.effects.stdlib.environment import RENDEZVOUS
from cudalint.machine.frame import Call, Raised, Results
from cudalint.machine.heap import LibraryObject
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch import workers
from cudalint.machine.outcome import Doubt, Kind
from cudalint.machine.questions import IN_ENVIRONMENT
from cudalint.machine.reporting import outcome_of
from cudalint.machine.state import Group, Process, Selected, State
from cudalint.machine.trace import Chain, Site
from cudalint.machine.values import (
    EACH,
    NONE,
    Const,
    Dev,
    Index,
    Lib,
    Rank,
    Ref,
    Tensor,
    Unknown,
    Value,
    const,
    constant,
    integer,
    only,
    strings,
    unknown,
)
from cudalint.structs import replace


def init(machine: Machine, call: Call) -> Results:
    """``init_process_group``: NCCL, or both backends where none is named."""
    state = call.state
    if not call.text("library") and _meets_by_environment(call) and _lacks_its_rank(call, state):
        return machine.fail(state, call.frame, Raised(None, ("ValueError",)))
    backend = call.get(call.text("key", "backend"))
    names = strings(backend) if backend is not None and backend != NONE else []
    name = "?" if backend is not None and backend != NONE and not names else names[0].lower() if names else "default"
    lacking = _rendezvous_missing(machine, call, state)
    if lacking:
        _emit(machine, call, state, Kind.RENDEZVOUS_NOT_SET, call.site, "crash", detail=" and ".join(lacking))
    elif not call.text("library") and _is_not_told(machine, call, state):
        _emit(machine, call, state, Kind.RANK_NOT_SAID, call.site, "crash")
    given = call.get("device_id")
    devices = [] if given is None else operators.device_of(given)
    made = machine.chain(state, call.site, "joins the process group")
    device = devices[0] if devices else (Dev("cuda") if given is not None and given != NONE else None)
    alone = is_one(call.get("world_size") or (), state) or _is_one_by_environment(call)
    for sym, holds in questions.of_as_many_ranks(state.facts, call.get("world_size") or ()):
        state.assume(sym, holds)
    if state.process.device() is not None:
        machine.record.device_first.add(call.site)
    rank = only(call.get("rank") or ())
    own = rank if isinstance(rank, Rank) or (isinstance(rank, Const) and isinstance(rank.value, int)) else None
    early = state.process.allocated is not None
    by_hand = questions.is_option(call.get("rank") or ())
    if call.text("kind") == "local":
        # It names the GPU of the local rank by itself, which selects none.
        device = Dev("cuda", Rank("local"))
    group = Group(name, device, made, alone, own, early, by_hand=by_hand, built=call.text("library"))
    after: State | None = state
    if call.text("kind") == "local" and _uses_nccl(group):
        after = cuda.touch(machine, state, call.frame, call.site, "torch", "init", call.label, device, context=True)
    if after is None:
        return []
    after.process = replace(after.process, group=group)
    return [(after, NONE)]


def _meets_by_environment(call: Call) -> bool:
    """Whether ranks meet where the variables of the environment say, which is so unless something else is given."""
    method = call.get("init_method")
    by_variables = method is None or method == NONE or strings(method) == ["env://"]
    return by_variables and call.get("store") in (None, NONE)


def _lacks_its_rank(call: Call, state: State) -> bool:
    """Whether nothing says which rank this is: torch then raises ``ValueError`` (torch 2.11, ``rendezvous.py``)."""
    rank = call.get("rank")
    is_given = rank is not None and rank not in (NONE, const(-1))
    return not is_given and state.process.environ("RANK") is None and state.fact((IN_ENVIRONMENT, "RANK")) is False


def _is_one_by_environment(call: Call) -> bool:
    """Whether the program itself has set ``WORLD_SIZE`` to 1, and says nothing else here."""
    given = call.get("world_size")
    says = given is not None and given not in (NONE, const(-1))
    return not says and call.state.process.environ("WORLD_SIZE") == const("1")


def _over_cpu(group: Group) -> bool:
    """Whether what has no tensor goes over the CPU: a backend is named for it beside NCCL.

    Where none is named, NCCL carries it: measured on an H200 with torch 2.11.
    """
    return "cpu:" in group.backend


def _uses_nccl(group: Group) -> bool:
    """Whether a group communicates over NCCL; a group of one rank does not communicate."""
    return ("nccl" in group.backend or group.backend == "default") and not group.alone


def _rendezvous_missing(machine: Machine, call: Call, state: State) -> list[str]:
    """The variables that say where the ranks meet and that nothing sets; none where somebody else may."""
    if not _asks_environment(machine, call, state):
        return []
    given = {name for name in RENDEZVOUS if _is_set(state, name)}
    lacking = sorted(name for name in RENDEZVOUS - given if name not in machine.meeting_seen)
    if not given:
        # Who reads one of them expects both. Who starts the process of a caller that is not seen may have set them.
        set_by_caller = machine.options.assumed and all(map(machine.program.is_named, RENDEZVOUS))
        return [] if len(lacking) < len(RENDEZVOUS) or set_by_caller else lacking
    # Whose code sets one does not leave the other to whoever starts it, as long as nothing of it names that.
    return [] if machine.options.assumed or any(map(machine.program.is_named, lacking)) else lacking


# What tells a rank its number and how many there are: by an argument, or by a variable.
_TOLD = (("rank", "RANK"), ("world_size", "WORLD_SIZE"))


def _is_not_told(machine: Machine, call: Call, state: State) -> bool:
    """Whether a started rank is told by nobody which one it is, or of how many: ``mp.spawn`` says so by no variable."""
    if machine.options.assumed or not _asks_environment(machine, call, state):
        return False
    return any(
        call.get(argument) in (None, NONE, const(-1))
        and variable not in machine.meeting_seen
        and not _is_set(state, variable)
        for argument, variable in _TOLD
    )


def _is_set(state: State, variable: str) -> bool:
    return state.process.environ(variable) is not None


def _asks_environment(machine: Machine, call: Call, state: State) -> bool:
    """Whether a rank of ``mp.spawn`` asks its environment what other ranks it meets, which only the program may set."""
    launch = state.process.launch
    if launch is None or launch.family != "spawn" or not _meets_by_environment(call):
        return False
    if call.get("init_method") == NONE and machine.options.assumed:
        # Who calls with an address cannot be seen; this is what becomes of the default.
        return False
    # What was left out may set them.
    return machine.record.cut is None and not machine.abandoned


def _emit(
    machine: Machine,
    call: Call,
    state: State,
    kind: Kind,
    anchor: Site,
    how: str,
    subject: str = "",
    certain: bool = True,
    benign: bool = False,
    detail: str = "",
) -> None:
    process = state.process
    launch = process.launch
    group = process.group
    found = outcome_of(
        machine,
        state,
        kind,
        anchor,
        how,
        certain=certain,
        cause=group.made if group is not None and kind not in _OWN_CAUSE else None,
        effect=machine.chain(state, call.site, subject or call.label),
        subject=subject or call.label,
        detail=detail,
        within=None if machine.running or group is None else group.made.step.site,
        launch=launch,
        benign=benign,
    )
    if found.certain and group is not None and group.by_hand and kind not in _OWN_CAUSE:
        found = replace(found, certain=False, doubt=Doubt.PLACES)
    if found.certain and launch is None and process.of_slurm and kind in _ON_ONE_GPU:
        found = replace(found, certain=False, doubt=Doubt.BOUND)
    if found.certain and group is not None and group.built:
        found = replace(found, certain=False, doubt=Doubt.BUILT)
    machine.emit(found)


_SELECTORS = frozenset({"set_device", "set_device_index"})
_ON_ONE_GPU = frozenset({Kind.RANK_WITHOUT_DEVICE, Kind.COLLECTIVE_BEFORE_DEVICE})
_OWN_CAUSE = frozenset({Kind.RENDEZVOUS_NOT_SET, Kind.RANK_NOT_SAID, Kind.INIT_BEFORE_DEVICE})


def selected(machine: Machine, state: State, where: Call) -> None:
    """A device is selected: report it where the group was joined before."""
    group = state.process.group
    if group is None or not _uses_nccl(group) or group.device_id is not None or group.built:
        return
    if state.process.device() is not None:
        return
    site = group.made.step.site
    untouched = (not group.bound or group.named) and (group.early or state.process.allocated is None)
    words = "set_device after init_process_group"
    _emit(machine, where, state, Kind.INIT_BEFORE_DEVICE, site, "latent", words, benign=untouched)


def set_device(machine: Machine, call: Call) -> Results:
    """``torch.cuda.set_device`` of a rank."""
    if not _has_no_other(call.state.process, call.args[0] if call.args else ()):
        selected(machine, call.state, call)
    results = devices.set_device(machine, call)
    for state, _ in results:
        _guess_shown(machine, state)
        if _names_the_same(state.process.environ(cuda.VISIBLE), call.args[0] if call.args else ()):
            workers.forget_late_variable(machine, state)
    return results


def _has_no_other(process: Process, device: Value) -> bool:
    """Whether a rank selects the only GPU that the program lets it see, which it uses without a choice, too."""
    chosen = {d.index for d in operators.device_of(device) if d.is_gpu} or {integer(device)}
    return chosen == {0} and _sees_one(process)


def _sees_one(process: Process) -> bool:
    """Whether the program lets a rank see one GPU alone, before anything looks at them."""
    visible = process.environ(cuda.VISIBLE)
    if visible is None or process.late_visible:
        return False
    names = constant(visible)
    return _visible_per_rank(visible) or (isinstance(names, str) and "," not in names)


def _names_the_same(visible: Value | None, device: Value) -> bool:
    """Whether the visible GPU is the one that is selected, by the number that differs from rank to rank."""
    named, selected = only(visible or ()), only(device)
    match named:
        case Rank():
            return named == selected
        case Unknown(sym=("str", sym)):
            return Unknown(sym) == selected
    return False


def select(machine: Machine, call: Call) -> Results:
    """A library call that selects the rank's device itself: init_device_mesh(), deepspeed.initialize()."""
    state = selected_by_library(machine, call)
    if state is None:
        return []
    return [(state, arrays.returned(machine, call, state, Dev("cuda", Rank("local"))))]


def selected_by_library(machine: Machine, call: Call) -> State | None:
    """The state after a library selected the rank's device; None where touching the GPU ends the path."""
    state: State | None = call.state
    assert state is not None
    if state.process.withheld is not None:
        # It works on the CPU where it sees no GPU.
        return state
    framework = call.text("framework", "torch")
    state = cuda.touch(machine, state, call.frame, call.site, framework, call.text("gpu", "init"), call.label)
    if state is None:
        return None
    where = machine.chain(state, call.site, f"{call.label} selects the device")
    if call.text("kind") == "group" and state.process.group is None:
        state.process = replace(state.process, group=Group("nccl", Dev("cuda", Rank("local")), where))
    if state.process.device() is None:
        state.process = state.process.with_device(Selected(Rank("local"), False, where))
    return state


def new_group(machine: Machine, call: Call) -> Results:
    """``new_group(ranks, backend="gloo")``: a group beside the one that was joined, with its backend or another."""
    fields: dict[str, Value] = {_BACKEND: call.get("backend") or NONE}
    return [(call.state, (call.state.new(("group", call.site), LibraryObject(_GROUP, fields, call.site)),))]


_GROUP = "torch.distributed.ProcessGroup"
_BACKEND = "<backend>"


def _subgroup(call: Call) -> LibraryObject | None:
    """The group beside the default one that a collective is given."""
    for value in (*call.args, *call.kwargs.values()):
        found = call.state.get(atom) if isinstance(atom := only(value), Ref) else None
        if isinstance(found, LibraryObject) and found.type == _GROUP:
            return found
    return None


def _over(call: Call) -> Group | None:
    """The group that a collective is of, as far as it communicates otherwise than the one that was joined.

    What a library does among ranks of its own is none of another one's group.
    """
    joined, given, library = call.state.process.group, _subgroup(call), call.text("library")
    if joined is not None and library and joined.built != library:
        return None
    names = strings(given.fields[_BACKEND]) if given is not None else []
    return replace(joined, backend=names[0].lower()) if joined is not None and names else joined


def collective(machine: Machine, call: Call) -> Results:
    """``all_reduce(tensor)`` and its like: NCCL takes the device of the tensor."""
    state = call.state
    group = _over(call)
    tensors = gpu_memory.tensors_in([*call.args, *call.kwargs.values()], state)
    indices = {a.device.index for a in tensors if isinstance(a, Tensor)}
    if group is None or not _uses_nccl(group):
        return [(state, unknown("collective", call.site))]
    if indices or not tensors:
        _meets(call, group)
    if not indices:
        return [(state, unknown("collective", call.site))]
    index = indices.pop() if len(indices) == 1 else Rank("each")
    return _used(machine, call, state, group, index, call.label)


def batched(machine: Machine, call: Call) -> Results:
    """``batch_isend_irecv(operations)``: each of them has a tensor that it sends or receives, and may have a group."""
    state = call.state
    told: list[Value] = []
    for operation in (atom for value in machine.elements(call.get("p2p_op_list") or (), state) for atom in value):
        found = state.get(operation) if isinstance(operation, Ref) else None
        if isinstance(found, LibraryObject):
            told.extend(found.fields[name] for name in ("tensor", "group") if name in found.fields)
    return collective(machine, replace(call, args=told, kwargs={}))


def object_collective(machine: Machine, call: Call) -> Results:
    """``all_gather_object`` and its like: NCCL takes the current device, where no other backend has the CPU.

    Some are told which device, which is taken then.
    """
    state = call.state
    group = _over(call)
    if group is None or not _uses_nccl(group) or _over_cpu(group):
        return [(state, unknown("collective", call.site))]
    told = call.get("device") or NONE
    named = next((d for d in operators.device_of(told) if d.is_gpu), None)
    if named is None and told != NONE:
        return [(state, unknown("collective", call.site))]
    index = cuda.current_index(state.process, named)
    if state.process.device() is None and named is None and group.device_id is not None:
        index = group.device_id.index if group.device_id.index is not None else Rank("local")
    _meets(call, group)
    return _used(machine, call, state, group, index, call.label)


def barrier(machine: Machine, call: Call) -> Results:
    """``barrier()``: the first thing on which a group of NCCL meets takes the GPU of the global rank's number.

    Where another backend is named for the CPU, and no GPU is named, it waits there.
    """
    state = call.state
    process = state.process
    group = process.group
    if group is None or not _uses_nccl(group) or group.bound or not _of_all(call):
        return [(state, NONE)]
    if _over_cpu(group) and group.device_id is None and call.get("device_ids") in (None, NONE):
        return [(state, NONE)]
    named = group.device_id is not None or call.get("device_ids") not in (None, NONE)
    _meets(call, replace(group, named=named))
    if named:
        return [(state, NONE)]
    where = machine.chain(state, call.site, call.label)
    if process.device() is None and not _numbered_by_launcher(process, group):
        _guesses(machine, state, group, Kind.BARRIER_BEFORE_DEVICE, where)
        return [(state, NONE)]
    met = state.process.group
    assert met is not None
    state.process = replace(state.process, group=replace(met, guess=where))
    _guess_shown(machine, state)
    return [(state, NONE)]


def _of_all(call: Call) -> bool:
    """Whether a collective is one of the default group."""
    if _subgroup(call) is not None:
        return False
    group = call.get("group") or call.kwargs.get("group") or call.get("process_group") or NONE
    return all(atom == NONE[0] or (isinstance(atom, Lib) and atom.path.endswith(".WORLD")) for atom in group)


def _meets(call: Call, group: Group) -> None:
    """The default group has met on a GPU by now, and stays there."""
    if _of_all(call):
        call.state.process = replace(call.state.process, group=replace(group, bound=True))


def _numbered_by_launcher(process: Process, group: Group) -> bool:
    """Whether a launcher in the program gave this process its number, with which it joined."""
    number = group.rank
    if process.launch is None or number is None:
        return False
    return not (isinstance(number, Rank) and number.derived)


def _numbered_otherwise(process: Process, group: Group, index: Index) -> bool:
    """Whether the GPU that a rank chose has, as far as is seen, another number than the rank.

    A local rank that a launcher told is alike: on one machine it is the global one, and on several, where each has as
    many ranks as GPUs, what is guessed is the global rank modulo these.
    """
    number = group.rank
    if index is None or _visible_per_rank(process.environ(cuda.VISIBLE)):
        return False
    if isinstance(index, int):
        return number != Const(index)
    return index.derived or (isinstance(number, Rank) and number.derived)


def _guess_shown(machine: Machine, state: State) -> None:
    """The GPU that a barrier guessed is held against the one that the rank chose."""
    process = state.process
    group, chosen = process.group, process.device()
    if group is None or group.guess is None or chosen is None:
        return
    state.process = replace(process, group=replace(group, guess=None))
    if _has_the_only_gpu(state) or questions.only_rank(state.facts) == chosen.index:
        return
    if _numbered_otherwise(process, group, chosen.index):
        _guesses(machine, state, group, Kind.BARRIER_GUESSES, group.guess)


def _guesses(machine: Machine, state: State, group: Group, kind: Kind, where: Chain) -> None:
    machine.emit(
        outcome_of(
            machine,
            state,
            kind,
            where.step.site,
            "cost" if kind is Kind.BARRIER_GUESSES else "latent",
            cause=group.made,
            effect=where,
            subject=where.step.message,
            within=None if machine.running else group.made.step.site,
            launch=state.process.launch,
        )
    )


def _has_the_only_gpu(state: State) -> bool:
    """Whether a program takes the only GPU, as far as it knows; what led it to its choice may be forgotten since."""
    if state.process.launch is not None:
        return False
    chosen = state.process.device()
    if chosen is None:
        return questions.sees_one_gpu(state.facts)
    return chosen.alone or devices.is_alone(state)


def _is_told(state: State, group: Group, index: int) -> bool:
    """Whether this process was told both its rank and its GPU by options, and others are told other ones.

    Which ones, those say that start it: a program of the project runs it with its own words.
    """
    return group.by_hand and state.process.launch is None and questions.is_told(state.facts, index)


def _used(machine: Machine, call: Call, state: State, group: Group, index: Index, what: str) -> Results:
    process = state.process
    chosen = process.device()
    if chosen is not None and chosen.maybe:
        return [(state, unknown("collective", call.site))]
    if (
        not isinstance(index, int)
        or not _several_ranks(machine, process, call.site, index)
        or questions.only_rank(state.facts) == index
        or _has_the_only_gpu(state)
        or (chosen is not None and _is_told(state, group, index))
        or _visible_per_rank(process.environ(cuda.VISIBLE))
    ):
        return [(state, unknown("collective", call.site))]
    later = _selects_later(machine, call)
    if chosen is None:
        kind = Kind.COLLECTIVE_BEFORE_DEVICE if later else Kind.RANK_WITHOUT_DEVICE
    else:
        kind = Kind.RANK_WITHOUT_DEVICE
        if chosen.index == index:
            machine.record.same_choices[call.site] = tuple(step.site for step in chosen.where.steps())
    outcome_at = len(machine.record.outcomes)
    launch = process.launch
    how = "crash" if launch is None else launch.failure
    _emit(machine, call, state, kind, call.site, how, what)
    raised = machine.record.outcomes[outcome_at]
    if call.frame.tries > 0:
        machine.record.outcomes.pop()
        return machine.fail(state, call.frame, Raised(raised, ("DistBackendError", "RuntimeError")))
    return machine.fail(state, call.frame, Raised(None, ("DistBackendError", "RuntimeError")))


def _selects_later(machine: Machine, call: Call) -> bool:
    """Whether the code selects a device later: then the order is wrong, the choice is not missing."""
    stack = call.state.stack
    callers = () if stack is None else tuple(step.site.module for step in stack.steps())
    modules = [machine.program.module(name) for name in dict.fromkeys((call.frame.module, *callers))]
    return any(m is not None and mentions(m, _SELECTORS) for m in modules)


_MAIN = "the main process"


def _several_ranks(machine: Machine, process: Process, site: Site, index: int) -> bool:
    """Whether other ranks use this GPU here too: ranks of one launch do; of single processes, two must be observed."""
    launch, group = process.launch, process.group
    if launch is None and process.program is None and group is not None and isinstance(group.rank, Const):
        # The main process of ranks that it starts itself: it alone joins with that number.
        own = (group.made.step.site, _MAIN)
    elif launch is None and process.program is not None and (told := _told_rank(process)) is not None:
        own = (process.program.step.site, told)
    elif launch is None or launch.many:
        return True
    elif launch.family != "process":
        return False
    else:
        own = (launch.chain.step.site, launch.chain.step.message)
    started = machine.rank_gpus.setdefault(site, {})
    gpu = _named_by_system(process, index)
    started.setdefault(own, set()).add(gpu)
    return any(gpu in gpus for other, gpus in started.items() if other != own)


def _told_rank(process: Process) -> str | None:
    """Which rank a program is that another program starts; None where that is not known."""
    told = process.environ("RANK") or (
        () if process.group is None or process.group.rank is None else (process.group.rank,)
    )
    rank = constant(told)
    return str(rank) if isinstance(rank, int | str) else None


def _named_by_system(process: Process, index: int) -> str:
    """What the system calls the GPU that a process numbers so, of those that it lets itself see."""
    visible = constant(process.environ(cuda.VISIBLE) or ())
    names = visible.split(",") if isinstance(visible, str) else []
    return names[index].strip() if index < len(names) else str(index)


def _visible_per_rank(value: Value | None) -> bool:
    return value is not None and not isinstance(only(value), Const)


def ddp(machine: Machine, call: Call) -> Results:
    """``DistributedDataParallel(model)``: its parameters take part in collectives, where they are or are moved to."""
    state = call.state
    group = _over(call)
    model = call.args[0] if call.args else call.kwargs.get("module", NONE)
    memory: Tensor | None = None
    for atom in model:
        if isinstance(atom, Ref):
            memory = memory or gpu_memory.whole_or_parts(atom, state)
        elif isinstance(atom, Tensor) and atom.device.is_gpu:
            memory = memory or atom
    result: Value = model if model else unknown("ddp", call.site)
    target = next((d for d in operators.device_of(call.get("device_id") or ()) if d.is_gpu), None)
    if target is not None:
        after = cuda.touch(machine, state, call.frame, call.site, "torch", "init", call.label, target, context=True)
        if after is None:
            return []
        state = after
        memory = arrays.new_tensor(machine, call, state, target, "torch.Tensor")
        for atom in model:
            if isinstance(atom, Ref):
                gpu_memory.place(atom, memory, state)
    elif call.get("device_id") not in (None, NONE):
        memory = None
    if group is None or not _uses_nccl(group):
        return [(state, result)]
    if _of_all(call):
        # Also a model that is not seen: its parameters are broadcast when it is wrapped.
        state.process = replace(state.process, group=replace(group, bound=True))
    if memory is None:
        return [(state, result)]
    used = _used(machine, call, state, group, memory.device.index, call.label)
    return [(s, result) for s, _ in used]


def rank(machine: Machine, call: Call) -> Results:
    """``get_rank()``, ``get_node_local_rank()``: the global or the local rank; in a group it is neither for sure."""
    kind = call.text("kind", "global")
    group = call.get("group") or (call.args[0] if call.args and kind == "global" else NONE)
    if kind == "global" and not any(a == NONE[0] or (isinstance(a, Lib) and a.path.endswith(".WORLD")) for a in group):
        return [(call.state, EACH)]
    if kind == "local":
        call.state.process = replace(call.state.process, local_rank_at_hand=True)
    joined = call.state.process.group
    if kind == "global" and joined is not None and joined.rank is not None:
        return [(call.state, (joined.rank,))]
    return [(call.state, (Rank(kind),))]


def size(machine: Machine, call: Call) -> Results:
    """``get_world_size()``: how many ranks the group has, which stays the same."""
    group = call.state.process.group
    if not _of_all(call) or call.args:
        return [(call.state, unknown("group size", call.site))]
    return [(call.state, const(1) if group is not None and group.alone else questions.RANKS)]


def backend(machine: Machine, call: Call) -> Results:
    """``get_backend()``: what the group was joined with."""
    group = call.state.process.group
    if group is None or not _of_all(call) or call.args or group.backend not in _BACKENDS:
        return [(call.state, unknown("backend", call.site))]
    return [(call.state, const(group.backend))]


_BACKENDS = frozenset({"gloo", "mpi", "nccl"})


def destroy(machine: Machine, call: Call) -> Results:
    """``destroy_process_group()``."""
    ends(machine, call.state)
    call.state.process = replace(call.state.process, group=None)
    return [(call.state, NONE)]


def is_initialized(machine: Machine, call: Call) -> Results:
    """``dist.is_initialized()``."""
    machine.asked_for_callers = True
    if call.state.process.unseen:
        return [(call.state, unknown("group", call.state.process.identity))]
    group = call.state.process.group
    return [(call.state, (Const(group is not None and not group.built),))]


def ends(machine: Machine, state: State) -> None:
    """A rank ends that joined an NCCL group and never selected a device."""
    process = state.process
    group = process.group
    if group is None or not _uses_nccl(group) or group.device_id is not None or process.device() is not None:
        return
    if group.built or process.contexts or machine.options.assumed or process.dead or _over_cpu(group):
        return
    if _sees_one(process):
        return
    launch = process.launch
    machine.emit(
        outcome_of(
            machine,
            state,
            Kind.INIT_BEFORE_DEVICE,
            group.made.step.site,
            "latent",
            effect=group.made,
            launch=launch,
            benign=True,
        )
    )
