"""Arrays: made, moved, computed with and read."""

from __future__ import annotations

from cudalint.machine import operators, questions
from cudalint.machine.effects.gpu import choices
from cudalint.machine.effects.gpu.cuda import (
    THREAD_DEFAULT,
    begin_on_cpu,
    computes_on_cpu,
    current_index,
    index_value,
    keeps_to_cpu,
    read,
    touch,
)
from cudalint.machine.frame import Call, Frame, Results
from cudalint.machine.gpu_memory import (
    gpu_atoms,
    has_parameters,
    host_arrays_in,
    memory_of,
    place,
    placed_tensor,
    tensors_in,
)
from cudalint.machine.heap import LibraryObject, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.trace import Chain, Site
from cudalint.machine.values import (
    ARRAY,
    CPU,
    DEVICE,
    JOINED,
    NONE,
    STATE,
    Atom,
    Bound,
    Const,
    Dev,
    Lib,
    Rank,
    Ref,
    Tensor,
    Unknown,
    Value,
    const,
    only,
    strings,
    unknown,
)
from cudalint.structs import replace

_TENSOR = "torch.Tensor"
# What gives tensors by names, as ``x.topk(3)`` does.
_PAIR = "torch.return_types.Pair"
_OF_PAIRS = ("values", "indices")
# The identity of a list of all devices, of which the code names none.
EVERY = questions.EVERY_GPU[0]


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
            return questions.DEVICES
        case "backend":
            return const("cpu" if keeps_to_cpu(state.process) or computes_on_cpu(state.process, "jax") else "gpu")
        case "listed":
            return _listed(call, state)
        case "self":
            return (call.receiver,) if call.receiver is not None else unknown("self", call.site)
        case "current":
            if state.process.in_thread and state.process.device() is None:
                return (THREAD_DEFAULT,)
            index = current_index(state.process, None)
            return index_value(index)
        case "device":
            return (Dev("cuda") if device is None else device,)
        case "cpu":
            return (Tensor("torch", CPU, state.process.identity),)
        case "tensor":
            return (new_tensor(machine, call, state, device or Dev("cuda"), rest),)
        case "first":
            return _argument(call, 0)
        case "second":
            return _argument(call, 1)
        case "arguments":
            given = [value for name in call.params if (value := call.get(name)) is not None]
            return given[0] if len(given) == 1 else (state.new(("given", call.site), Sequence("tuple", tuple(given))),)
        case "thing":
            return (state.new(("thing", call.site), LibraryObject(rest, {}, call.site, _origin(machine, call, state))),)
        case "placed":
            return (_placed(machine, call, state, rest, device or Dev("cuda")),)
        case "every-device":
            kinds = strings(call.args[0]) if call.args else []
            if kinds == ["GPU"] and machine.options.without_gpus:
                return (state.new(("listed", call.site), Sequence("list", ())),)
            return unknown(*questions.EVERY_GPU) if kinds == ["GPU"] else unknown(EVERY, call.site)
        case "tuple-unknown":
            return unknown("tuple", call.site)
    return unknown("returned", call.site, state.process.identity)


def _placed(machine: Machine, call: Call, state: State, kind: str, device: Dev) -> Ref:
    """An object of a library that holds arrays on the device where they were computed."""
    made = state.new(("placed", call.site), LibraryObject(kind, {}, call.site, _origin(machine, call, state)))
    if device.is_gpu:
        place(made, new_tensor(machine, call, state, device, "torch.Tensor"), state)
    return made


def _listed(call: Call, state: State) -> Value:
    """``jax.devices("cpu")``: a list of devices. Which GPUs there are, the code does not show."""
    named = operators.device_of(call.get("backend") or ())
    if not named or any(device.is_gpu for device in named):
        return unknown("returned", call.site, state.process.identity)
    return (state.new(("listed", call.site), Sequence("list", None, (named[0],))),)


def runs_on_cpu(call: Call) -> bool:
    """Whether a framework computes something on the CPU: by its default device, or as JAX does where the arrays lie."""
    framework = call.text("framework", "torch")
    given = (*call.args, *call.kwargs.values())
    if tensors_in(given, call.state):
        return False
    if computes_on_cpu(call.state.process, framework):
        return True
    return framework == "jax" and any(host_arrays_in(given, call.state, framework))


def _argument(call: Call, number: int) -> Value:
    """An argument by its place; where it may be given by name, the model says which parameters there are."""
    if number < len(call.args):
        return call.args[number]
    given = call.get(call.params[number]) if number < len(call.params) else None
    return unknown("argument", call.site) if given is None else given


def _origin(machine: Machine, call: Call, state: State) -> Chain:
    return machine.chain(state, call.site, f"{call.label} makes it")


def new_tensor(machine: Machine, call: Call, state: State, device: Dev, kind: str = "") -> Tensor:
    """An array that this call makes in this process."""
    framework = call.text("framework", "torch")
    made = kind or call.text("type") or _ARRAYS.get(framework, "torch.Tensor")
    if device.is_gpu:
        device = Dev(device.kind, current_index(state.process, device))
    origin = machine.chain(state, call.site, f"{call.label} puts data on the GPU") if device.is_gpu else None
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
            devices = [CPU if runs_on_cpu(call) else Dev("cuda")]
    gpu = next((d for d in devices if d.is_gpu), None)
    results: Results = []
    inherited = _inherited_arguments(machine, call)
    if inherited is None:
        return []
    state = inherited
    if gpu is None:
        if pinned:
            after = touch(machine, state, call.frame, call.site, "torch", "driver", call.label + " with pin_memory")
            return [] if after is None else [(after, (Tensor("torch", CPU, state.process.identity),))]
        device = devices[0] if devices else CPU
        begin_on_cpu(machine, state, call.frame, call.site, call.text("framework", "torch"), call.label)
        return [(state, (new_tensor(machine, call, state, device),))]
    if len(devices) > 1 or (value is not None and len(value) > 1):
        other = state.clone()
        results.append((other, (Tensor(call.text("framework", "torch"), CPU, state.process.identity),)))
    preset = call.text("gpu", "init")
    framework = call.text("framework", "torch")
    unnamed = value is None
    after = touch(
        machine,
        state,
        call.frame,
        call.site,
        framework,
        preset,
        call.label,
        gpu,
        context=True,
        by_default=unnamed and not call.flag("default-gpu"),
        unnamed=unnamed,
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
                state = read(machine, atom, state, call.frame, call.site, call.label)
    return state


def like(machine: Machine, call: Call) -> Results:
    """An operation on arrays: reads them, and gives one where they are.

    What its model says of other arguments by ``when`` has it give one although it gives something else without them;
    of an object that lies on a device ``returns`` says that it gives tensors.
    """
    atoms = [] if call.receiver is None else gpu_atoms((call.receiver,), call.state)
    atoms.extend(tensors_in((*call.args, *call.kwargs.values()), call.state))
    state: State | None = call.state
    for atom in atoms:
        if state is not None:
            state = read(machine, atom, state, call.frame, call.site, call.label)
    if state is None:
        return []
    if _says_where(machine, call):
        return factory(machine, replace(call, state=state))
    is_asked = choices.depends(call) and choices.chosen(call) is not None
    tensor = next((a for a in atoms if isinstance(a, Tensor)), None)
    if tensor is None and (is_asked or call.text("returns") == "tensor") and isinstance(call.receiver, Ref):
        tensor = placed_tensor(call.receiver, state)
    if tensor is None and call.text("returns") == "several" and call.receiver is not None:
        # The parts of something that nobody knows lie where it was moved to.
        tensor = memory_of(call.receiver, state)
    if tensor is not None:
        tensor = tensor.viewed if _gives_views(machine, call) else tensor.computed
    if tensor is not None and call.text("returns") == "several":
        return [(state, (state.new(("several", call.site), Sequence("tuple", None, (tensor,))),))]
    if tensor is not None and call.text("returns") == "pair" and not choices.idle(machine, call):
        return [(state, (replace(tensor, type=_PAIR),))]
    if not is_asked and call.text("returns") not in ("", "tensor", "like", "several", "pair"):
        return [(state, returned(machine, call, state))]
    if tensor is not None:
        return [(state, (tensor,))]
    kind = ARRAY if _computes_with_array(machine, call) else "like"
    return [(state, unknown(kind, call.site, state.process.identity))]


def _says_where(machine: Machine, call: Call) -> bool:
    """Whether it makes an array after another on a device that it names: ``torch.zeros_like(x, device="cpu")``."""
    if call.text("framework") != "torch" or not operators.device_of(call.kwargs.get("device", ())):
        return False
    receiver = call.receiver
    return receiver is None or (isinstance(receiver, Tensor) and machine.library.is_a(receiver.type, "torch.Tensor"))


def _gives_views(machine: Machine, call: Call) -> bool:
    """Whether what an operation gives lies in the memory of what it is done with."""
    of_tensor = isinstance(call.receiver, Tensor) and machine.library.views(call.path.rpartition(".")[2])
    return of_tensor or call.text("returns") == "several"


def _computes_with_array(machine: Machine, call: Call) -> bool:
    """Whether a function certainly computes with an array of torch: what it is called on, or is given first."""
    first = call.receiver or (only(call.args[0]) if call.args else None)
    is_class = call.path.rpartition(".")[2][:1].isupper()
    return isinstance(first, Tensor) and not is_class and machine.library.is_a(first.type, "torch.Tensor")


def device(machine: Machine, call: Call) -> Results:
    """``torch.device("cuda", 1)``, also ``torch.device(type="cuda", index=1)``."""
    value = call.get("device") or call.kwargs.get("type") or (call.args[0] if call.args else ())
    if not value and call.flag("default-gpu"):
        return [(call.state, (Dev("cuda"),))]
    index = call.get("index")
    found: list[Atom] = []
    for one in operators.device_of(value):
        if index not in (None, NONE) and one.index is None:
            one = Dev(one.kind, _number_of(index or ()))
        found.append(one)
    if not found:
        symbol = only(value)
        return [(call.state, unknown(DEVICE, symbol if isinstance(symbol, Unknown) else call.site))]
    if not any(isinstance(one, Dev) and one.is_gpu for one in found):
        # What it is instead of the default that is named may be asked later.
        found += [other for atom in value if isinstance(atom, Unknown) for other in unknown(DEVICE, atom)]
    return [(call.state, tuple(dict.fromkeys(found)))]


def _number_of(index: Value) -> int | Rank:
    """The number of a GPU: where the code does not show it, a process may have another one than the next."""
    match only(index):
        case Const(value=int(number)):
            return number
        case Rank() as rank:
            return rank
        case Unknown() as number if operators.device_of((number,)):
            return Rank("system")
    return Rank("each")


def move(machine: Machine, call: Call) -> Results:
    """``x.to(device)``, ``x.cuda()``, ``x.cpu()``, ``x.pin_memory()`` of tensors, modules and unknown objects."""
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
    if call.text("kind") == "type":
        value = tuple(atom for atom in value if not _is_number(atom))
    for atom in value:
        if isinstance(atom, Tensor):
            return atom.device
    devices = operators.device_of(value)
    return next((d for d in devices if d.is_gpu), devices[0] if devices else None)


def _is_number(atom: Atom) -> bool:
    return isinstance(atom, Rank) or (isinstance(atom, Const) and isinstance(atom.value, int))


def _move_to_cpu(machine: Machine, call: Call, target: Dev, receiver: Atom) -> Results:
    state = read(machine, receiver, call.state, call.frame, call.site, call.label)
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
    state: State | None = read(machine, receiver, call.state, call.frame, call.site, call.label)
    if state is None:
        return []
    if isinstance(receiver, Ref) and not has_parameters(receiver, state):
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
            if receiver != JOINED:
                state.placed[sym] = memory
            return [(state, (receiver,))]
    return [(state, (memory,))]


def _move_label(call: Call) -> str:
    name = call.path.rpartition(".")[2]
    return f".{name}()" if name != "to" else ".to(device)"


def tensor_attribute(machine: Machine, tensor: Tensor, name: str, state: State, frame: Frame, site: Site) -> Results:
    """``tensor.name``: metadata is free, the rest are methods that read data."""
    if name == "device":
        return [(state, (tensor.device,))]
    if name in ("is_cuda", "is_gpu"):
        return [(state, const(tensor.device.is_gpu))]
    kind = _type_asked(machine, tensor, name)
    if name in machine.library.metadata.get(kind, frozenset()):
        return [(state, (Lib(f"builtins.metadata.{name}"),))]
    if name == "grad":
        return [(state, (tensor.computed,))]
    if kind == _PAIR and name in _OF_PAIRS:
        return [(state, (replace(tensor, type=_TENSOR),))]
    if name in machine.library.parts:
        return [(state, (tensor,))]
    return [(state, (Bound(Lib(f"{kind}.{name}"), tensor),))]


def _type_asked(machine: Machine, tensor: Tensor, name: str) -> str:
    """The type that is asked for this name: what an object keeps, as a tensor, if tensors have it."""
    if tensor.type != STATE:
        return tensor.type
    library = machine.library
    of_tensors = name in library.metadata["torch.Tensor"] or library.function(f"torch.Tensor.{name}") is not None
    return "torch.Tensor" if of_tensors else STATE


def tensor_data(machine: Machine, tensor: Tensor, what: str, state: State, frame: Frame, site: Site) -> Results:
    """An operation that reads a tensor's data and gives one beside it."""
    after = read(machine, tensor, state, frame, site, what)
    return [] if after is None else [(after, (tensor.computed,))]
