"""Touching the GPU: queries, initialisation, contexts, and tensors that are made, moved and read."""

from __future__ import annotations

from dataclasses import replace

from cudalint.machine import operators
from cudalint.machine.behaviours import choices
from cudalint.machine.behaviours.outcomes import outcome_of
from cudalint.machine.frame import Call, Frame, Raised, Results
from cudalint.machine.heap import Instance, Mapping_, Sequence, Thing
from cudalint.machine.interpreter import Machine
from cudalint.machine.outcome import Kind, Outcome
from cudalint.machine.state import Context, Launch, Process, State
from cudalint.machine.trace import Chain, Site
from cudalint.machine.values import (
    CPU,
    NONE,
    Atom,
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
    only,
    unknown,
)

FAILS = frozenset({"driver", "init", "use", "touch"})
POISONS = frozenset({"query", "driver", "init", "use"})
VISIBLE = "CUDA_VISIBLE_DEVICES"
# How many GPUs there are: the same number wherever it is asked for.
DEVICES = unknown("devices")
# The identity of a list of all devices, of which the code names none.
EVERY = "every device"
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
) -> State | None:
    """Apply one use of the GPU; None where it ends the path.

    ``effect`` is one of the model's: query poisons forks; driver poisons and fails in a poisoned child;
    init also initialises the framework; use is what other frameworks than torch call init; touch only fails.
    """
    process = state.process
    if process.doomed or effect == "none" or framework in process.hidden:
        return state
    if framework == "jax" and _keeps_to_cpu(process):
        return state
    if effect in FAILS and process.forked and _fails_here(process):
        return _fail_in_child(machine, state, frame, site, framework, what, by_default)
    if hides_all(process):
        return state
    if effect in POISONS:
        state.process = process = _poison(machine, state, site, framework, effect, what)
    if context:
        _open_context(machine, state, frame, site, what, device)
    return state


def _fails_here(process: Process) -> bool:
    return process.poison is not None or process.forked_unseen


def _poison(machine: Machine, state: State, site: Site, framework: str, effect: str, what: str) -> Process:
    process = state.process
    verb = "asks the driver" if effect == "query" else "initialises CUDA"
    made: Chain | None = None
    if process.driver is None:
        made = machine.chain(state, site, f"{what} {verb}")
        process = replace(process, driver=made)
    if framework not in process.asked_by:
        process = replace(process, asked_by=process.asked_by | {framework})
    if effect in ("init", "use") and not process.is_initialised(framework):
        made = made or machine.chain(state, site, f"{what} {verb}")
        process = replace(process, initialised=tuple(sorted((*process.initialised, (framework, made)), key=_first)))
        if framework == "tensorflow" and process.growth is None and _grows(process):
            process = replace(process, growth=made)
    return process


def _grows(process: Process) -> bool:
    """Whether the environment asks TensorFlow for memory growth, which it reads when it starts the GPU."""
    value = process.environ("TF_FORCE_GPU_ALLOW_GROWTH") or ()
    return any(isinstance(a, Const) and str(a.value).lower() in ("1", "true") for a in value)


def _first(pair: tuple[str, Chain]) -> str:
    return pair[0]


def _open_context(machine: Machine, state: State, frame: Frame, site: Site, what: str, device: Dev | None) -> None:
    process = state.process
    index = current_index(process, device)
    visible = process.environ(VISIBLE) or ()
    there = f" on GPU {index}" if isinstance(index, int) else ""
    where = machine.chain(state, site, f"{what} opens a context{there}")
    process = replace(process, contexts=process.contexts | {Context(visible, index, where)})
    unnamed = device is None or device.index in (None, THREAD_DEFAULT)
    bare = unnamed or index == 0
    if process.in_thread and process.device() is None and unnamed:
        _thread_outcome(machine, state, site, what)
    if process.allocated is None and bare and process.device() is None:
        process = replace(process, allocated=where)
    state.process = process


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
        state.process = replace(process, doomed=True)
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
    state.process = replace(process, doomed=True)
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
        kinds.get(launch.family, Kind.CUDA_IN_FORK),
        launch.anchor,
        launch.failure,
        certain=guilty is not None and launch.certain,
        cause=guilty,
        effect=machine.chain(state, site, f"{what} needs CUDA here"),
        subject=what,
        condition=launch.condition,
        detail="" if guilty is not None else "unseen",
        facts=state.facts,
        launch=launch,
    )


# -- data that was inherited ---------------------------------------------------------------------------


def read(machine: Machine, tensor: Atom, state: State, frame: Frame, site: Site, what: str) -> State | None:
    """Use the data of a GPU value; None where that ends the path."""
    owner, origin = _owner(tensor, state)
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
        kind,
        launch.anchor,
        launch.failure,
        certain=launch.certain,
        cause=origin,
        effect=machine.chain(state, site, f"{what} reads GPU memory of the parent"),
        subject=what,
        condition=launch.condition,
        facts=state.facts,
        launch=launch,
    )
    if frame.tries > 0 and not process.doomed:
        frame.raises.append((state, Raised(outcome, ("RuntimeError", "AcceleratorError"))))
        return None
    machine.emit(outcome)
    state.process = replace(process, doomed=True, misread=True)
    return state


def _owner(atom: Atom, state: State) -> tuple[tuple[str, ...] | None, Chain | None]:
    match atom:
        case Tensor(device=device, owner=owner, origin=origin):
            return (owner, origin) if device.is_gpu else (None, None)
        case Ref():
            found = placed_tensor(atom, state)
            return (None, None) if found is None else (found.owner, found.origin)
        case Unknown(sym=sym):
            placed = state.placed.get(sym)
            return (None, None) if placed is None else (placed.owner, placed.origin)
    return None, None


def placed_tensor(ref: Ref, state: State) -> Tensor | None:
    """The GPU memory that a module, or an instance of a module class, holds by having been moved."""
    found = state.get(ref)
    value: Value = ()
    if isinstance(found, Thing):
        value = found.fields.get("<memory>", ())
    elif isinstance(found, Instance):
        value = found.attributes.get("<memory>", ())
    for atom in value:
        if isinstance(atom, Tensor) and atom.device.is_gpu:
            return atom
    return None


def place(ref: Ref, memory: Tensor, state: State) -> None:
    """A module moves: it and the modules it holds are now on the device."""
    stack: list[Atom] = [ref]
    seen: set[Atom] = set()
    while stack:
        atom = stack.pop()
        if atom in seen or not isinstance(atom, Ref):
            continue
        seen.add(atom)
        found = state.get(atom)
        match found:
            case Thing(fields=fields):
                state.put(atom, replace(found, fields={**fields, "<memory>": (memory,)}))
                stack.extend(a for v in fields.values() for a in v)
            case Instance(attributes=attributes):
                state.put(atom, replace(found, attributes={**attributes, "<memory>": (memory,)}))
                stack.extend(a for v in attributes.values() for a in v if isinstance(a, Ref) and _is_module(a, state))
            case Sequence(items=items, element=element):
                stack.extend(a for v in (*(items or ()), element) for a in v)
            case Mapping_(items=entries, element=element):
                stack.extend(a for v in (*entries.values(), element) for a in v)


def _is_module(ref: Ref, state: State) -> bool:
    found = state.get(ref)
    if isinstance(found, Thing):
        return "<parameters>" in found.fields
    return isinstance(found, Instance | Sequence | Mapping_)


def gpu_atoms(value: Value, state: State) -> list[Atom]:
    """The alternatives of a value that live on a GPU."""
    result: list[Atom] = []
    for atom in value:
        owner, _ = _owner(atom, state)
        if owner is not None:
            result.append(atom)
    return result


# -- behaviours -----------------------------------------------------------------------------------------


def label(call: Call) -> str:
    """How a call is named in messages."""
    path = call.path.removeprefix("?")
    return path.removesuffix(".__get__").removesuffix(".__enter__") + ("" if path.endswith("__get__") else "()")


def effect(machine: Machine, call: Call) -> Results:
    """A function that touches the GPU and returns something simple."""
    spared = call.text("unless-env")
    wanted = call.text("gpu", "none")
    if spared and _is_set(call.state.process, spared):
        wanted = "none"
    if call.text("returns") == "true" and hides_all(call.state.process):
        return [(call.state, const(False))]
    device = choices.chosen(call) if choices.depends(call) else _device_argument(call)
    if not _stays_on_gpu(call, device):
        wanted = "none"
    framework = call.text("framework", "torch")
    state = touch(
        machine, call.state, call.frame, call.site, framework, wanted, label(call), device, call.flag("context")
    )
    if state is None:
        return []
    return [(state, returned(machine, call, state, device))]


def _stays_on_gpu(call: Call, device: Dev | None) -> bool:
    """Whether the arguments leave a function on the GPU."""
    name = call.text("device")
    if device is not None:
        return device.is_gpu or not (name or choices.depends(call))
    if choices.depends(call):
        return False
    return not name or (call.get(name) is None and call.flag("default-gpu"))


def asks_nvml(process: Process) -> bool:
    """Whether torch's question for a GPU goes past the driver, as PYTORCH_NVML_BASED_CUDA_CHECK wants it."""
    return _is_set(process, "PYTORCH_NVML_BASED_CUDA_CHECK")


def _keeps_to_cpu(process: Process) -> bool:
    """Whether the environment keeps JAX off the GPU, which it looks at before it starts one."""
    wanted = process.environ("JAX_PLATFORMS") or process.environ("JAX_PLATFORM_NAME")
    return wanted == const("cpu") and not process.is_initialised("jax")


def hides_all(process: Process) -> bool:
    """Whether the program hid all GPUs before the driver looked."""
    value = process.environ(VISIBLE)
    return process.driver is None and value in (const(""), const("-1"))


def _is_set(process: Process, variable: str) -> bool:
    value = process.environ(variable)
    return value is not None and any(isinstance(a, Const) and a.value == "1" for a in value)


def _device_argument(call: Call) -> Dev | None:
    name = call.text("device")
    value = call.get(name) if name else None
    if value is None:
        return None
    found = [d for d in operators.device_of(value) if d.is_gpu] or operators.device_of(value)
    return found[0] if found else None


def returned(machine: Machine, call: Call, state: State, device: Dev | None = None) -> Value:
    """The value that a model says a function returns."""
    wanted = call.text("returns", "unknown")
    kind, _, rest = wanted.partition(":")
    match kind:
        case "true":
            return const(True)
        case "false":
            return const(False)
        case "none":
            return NONE
        case "int":
            return const(int(rest))
        case "str":
            return const(rest)
        case "rank":
            return (Rank(rest),)
        case "devices":
            return DEVICES
        case "self":
            return (call.receiver,) if call.receiver is not None else unknown("self", call.site)
        case "current":
            if state.process.in_thread and state.process.device() is None:
                return (THREAD_DEFAULT,)
            index = current_index(state.process, None)
            return (index,) if isinstance(index, Rank) else const(index)
        case "device":
            return (Dev("cuda") if device is None else device,)
        case "tensor":
            return (new_tensor(machine, call, state, device or Dev("cuda"), rest),)
        case "first":
            return call.args[0] if call.args else unknown("first", call.site)
        case "thing":
            return (state.new(("thing", call.site), Thing(rest, {}, call.site, _origin(machine, call, state))),)
        case "every-device":
            return unknown(EVERY, call.site, state.process.identity)
        case "tuple-unknown":
            return unknown("tuple", call.site)
    return unknown("returned", call.site, state.process.identity)


def _origin(machine: Machine, call: Call, state: State) -> Chain:
    return machine.chain(state, call.site, f"{label(call)} makes it")


def new_tensor(machine: Machine, call: Call, state: State, device: Dev, kind: str = "") -> Tensor:
    """An array that this call makes in this process."""
    framework = call.text("framework", "torch")
    made = kind or call.text("type") or _ARRAYS.get(framework, "torch.Tensor")
    if device.is_gpu:
        device = Dev(device.kind, current_index(state.process, device))
    origin = machine.chain(state, call.site, f"{label(call)} puts data on the GPU") if device.is_gpu else None
    return Tensor(framework, device, state.process.identity, origin, made)


_ARRAYS = {
    "torch": "torch.Tensor",
    "cupy": "cupy.ndarray",
    "numba": "numba.cuda.devicearray",
    "jax": "jax.Array",
    "tensorflow": "tensorflow.Tensor",
}


def factory(machine: Machine, call: Call) -> Results:
    """``torch.zeros(..., device=)``: data on the named device, else on the default one."""
    state = call.state
    value = call.kwargs.get("device") if call.text("device", "device") == "device" else None
    if value is None:
        value = call.get(call.text("device", "device"))
    devices = [] if value is None else operators.device_of(value)
    pinned = call.kwargs.get("pin_memory") == (Const(True),)
    if value is None or value == NONE:
        default = state.process.default_device
        devices = [default] if default is not None else []
        if call.flag("default-gpu"):
            devices = [Dev("cuda")]
    gpu = next((d for d in devices if d.is_gpu), None)
    results: Results = []
    inherited = _inherited_arguments(machine, call)
    if inherited is None:
        return []
    state = inherited
    if gpu is None:
        if pinned:
            after = touch(machine, state, call.frame, call.site, "torch", "driver", label(call) + " with pin_memory")
            return [] if after is None else [(after, (Tensor("torch", CPU, state.process.identity),))]
        device = devices[0] if devices else CPU
        return [(state, (Tensor(call.text("framework", "torch"), device, state.process.identity),))]
    if len(devices) > 1 or (value is not None and len(value) > 1):
        other = state.clone()
        results.append((other, (Tensor(call.text("framework", "torch"), CPU, state.process.identity),)))
    preset = call.text("gpu", "init")
    framework = call.text("framework", "torch")
    by_default = value is None and not call.flag("default-gpu")
    after = touch(
        machine, state, call.frame, call.site, framework, preset, label(call), gpu, context=True, by_default=by_default
    )
    if after is not None:
        results.append((after, (new_tensor(machine, call, after, gpu),)))
    return results


def _inherited_arguments(machine: Machine, call: Call) -> State | None:
    """Reading tensors that were passed: ends the path where they were inherited."""
    state: State | None = call.state
    for value in (*call.args, *call.kwargs.values()):
        for atom in gpu_atoms(value, call.state):
            if state is not None:
                state = read(machine, atom, state, call.frame, call.site, label(call))
    return state


def like(machine: Machine, call: Call) -> Results:
    """An operation on arrays: reads them, and gives one where they are."""
    atoms = [] if call.receiver is None else gpu_atoms((call.receiver,), call.state)
    for value in (*call.args, *call.kwargs.values()):
        atoms.extend(gpu_atoms(value, call.state))
        for inner in machine.elements(value, call.state):
            atoms.extend(gpu_atoms(inner, call.state))
    state: State | None = call.state
    for atom in atoms:
        if state is not None:
            state = read(machine, atom, state, call.frame, call.site, label(call))
    if state is None:
        return []
    tensor = next((a for a in atoms if isinstance(a, Tensor)), None)
    if tensor is not None and call.text("returns") == "several":
        return [(state, (state.new(("several", call.site), Sequence("tuple", None, (tensor,))),))]
    if call.text("returns") not in ("", "tensor", "like", "several"):
        return [(state, returned(machine, call, state))]
    if tensor is not None:
        return [(state, (tensor,))]
    return [(state, unknown("like", call.site, state.process.identity))]


def device(machine: Machine, call: Call) -> Results:
    """``torch.device("cuda", 1)``."""
    value = call.get("device") or (call.args[0] if call.args else ())
    index = call.get("index")
    found: list[Atom] = []
    for one in operators.device_of(value):
        if index is not None and one.index is None:
            number = only(index)
            if isinstance(number, Const) and isinstance(number.value, int):
                one = Dev(one.kind, number.value)
            elif number is not None:
                one = Dev(one.kind, number if isinstance(number, Rank) else Rank("each"))
        found.append(one)
    if not found:
        symbol = only(value)
        return [(call.state, unknown("device", symbol if isinstance(symbol, Unknown) else call.site))]
    return [(call.state, tuple(dict.fromkeys(found)))]


def move(machine: Machine, call: Call) -> Results:
    """``x.to(device)``, ``x.cuda()``, ``x.cpu()``, ``x.pin_memory()`` of tensors, modules and what nobody knows."""
    target = _target(call)
    receiver = call.receiver
    if receiver is None:
        return [(call.state, unknown("move", call.site))]
    if target is None:
        return [(call.state, (receiver,))]
    if not target.is_gpu:
        return _move_to_cpu(machine, call, target, receiver)
    return _move_to_gpu(machine, call, target, receiver)


def _target(call: Call) -> Dev | None:
    wanted = call.text("value")
    if wanted == "cpu":
        return CPU
    value = call.get("device")
    if wanted == "cuda":
        devices = [] if value is None else operators.device_of(value)
        if not devices and value is not None and value != NONE:
            return Dev("cuda", Rank("each"))
        return devices[0] if devices else Dev("cuda")
    if value is None:
        return None
    for atom in value:
        if isinstance(atom, Tensor):
            return atom.device
    devices = operators.device_of(value)
    return next((d for d in devices if d.is_gpu), devices[0] if devices else None)


def _move_to_cpu(machine: Machine, call: Call, target: Dev, receiver: Atom) -> Results:
    state = read(machine, receiver, call.state, call.frame, call.site, label(call))
    if state is None:
        return []
    match receiver:
        case Tensor():
            return [(state, (Tensor(receiver.framework, target, state.process.identity, None, receiver.type),))]
        case Ref():
            place(receiver, Tensor("torch", target, state.process.identity), state)
        case Unknown(sym=sym):
            state.placed.pop(sym, None)
            if not call.statement:
                return [(state, unknown("cpu", sym))]
    return [(state, (receiver,))]


def _move_to_gpu(machine: Machine, call: Call, target: Dev, receiver: Atom) -> Results:
    state: State | None = read(machine, receiver, call.state, call.frame, call.site, label(call))
    if state is None:
        return []
    if isinstance(receiver, Ref) and not has_parameters(machine, receiver, state):
        return [(state, (receiver,))]
    what = _move_label(call)
    state = touch(machine, state, call.frame, call.site, "torch", "init", what, target, context=True)
    if state is None:
        return []
    memory = new_tensor(machine, call, state, target, "torch.Tensor")
    match receiver:
        case Ref():
            place(receiver, memory, state)
            return [(state, (receiver,))]
        case Unknown(sym=sym) if call.statement:
            state.placed[sym] = memory
            return [(state, (receiver,))]
    return [(state, (memory,))]


def _move_label(call: Call) -> str:
    name = call.path.rpartition(".")[2]
    return f".{name}()" if name != "to" else ".to(device)"


def has_parameters(machine: Machine, ref: Ref, state: State, depth: int = 0) -> bool:
    """Whether moving this moves any data: a module without parameters initialises nothing."""
    found = state.get(ref)
    match found:
        case Thing(fields=fields):
            own = fields.get("<parameters>")
            if own == (Const(False),):
                return depth < 6 and any(
                    has_parameters(machine, a, state, depth + 1)
                    for name, value in fields.items()
                    if name.startswith("<child")
                    for a in value
                    if isinstance(a, Ref)
                )
            return True
        case Instance(attributes=attributes):
            if not attributes:
                return False
            return any(_may_hold_parameters(machine, v, state, depth) for v in attributes.values())
    return True


def _may_hold_parameters(machine: Machine, value: Value, state: State, depth: int) -> bool:
    for atom in value:
        match atom:
            case Ref():
                found = state.get(atom)
                if isinstance(found, Thing | Instance) and depth < 6:
                    if has_parameters(machine, atom, state, depth + 1):
                        return True
                elif isinstance(found, Sequence):
                    inner = found.items if found.items is not None else (found.element,)
                    if any(_may_hold_parameters(machine, v, state, depth + 1) for v in inner if depth < 6):
                        return True
            case Tensor() | Unknown():
                return True
    return False


def is_initialized(machine: Machine, call: Call) -> Results:
    """``torch.cuda.is_initialized()``: of this very process."""
    process = call.state.process
    if process.unseen and not process.forked and not process.is_initialised("torch"):
        return [(call.state, unknown("initialised", process.identity))]
    return [(call.state, const(process.is_initialised("torch")))]


def bad_fork(machine: Machine, call: Call) -> Results:
    """``torch.cuda._is_in_bad_fork()``: only ever true in the child."""
    process = call.state.process
    return [(call.state, const(process.forked and process.poison is not None))]


def tensor_attribute(machine: Machine, tensor: Tensor, name: str, state: State, frame: Frame, site: Site) -> Results:
    """``tensor.name``: metadata is free, the rest are methods that read data."""
    if name == "device":
        return [(state, (tensor.device,))]
    if name in ("is_cuda", "is_gpu"):
        return [(state, const(tensor.device.is_gpu))]
    if name in machine.library.metadata.get(tensor.type, frozenset()):
        return [(state, (Lib(f"builtins.metadata.{name}"),))]
    if name in ("data", "grad", "T", "mT", "real", "imag"):
        return [(state, (tensor,))]
    from cudalint.machine.values import Bound

    return [(state, (Bound(Lib(f"{tensor.type}.{name}"), tensor),))]


def tensor_data(machine: Machine, tensor: Tensor, what: str, state: State, frame: Frame, site: Site) -> Results:
    """An operation that reads a tensor's data and gives one beside it."""
    after = read(machine, tensor, state, frame, site, what)
    return [] if after is None else [(after, (tensor,))]


def tensors_in(machine: Machine, values: list[Value], state: State) -> list[Atom]:
    """GPU values among arguments, one level of containers deep."""
    result: list[Atom] = []
    for value in values:
        result.extend(gpu_atoms(value, state))
        for inner in machine.elements(value, state):
            result.extend(gpu_atoms(inner, state))
    return result
