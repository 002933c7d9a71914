"""Modules of neural networks: made, called, and what they hold."""

from __future__ import annotations

from collections.abc import Hashable

from cudalint.machine import gpu_memory, operators
from cudalint.machine.effects.gpu.arrays import new_tensor
from cudalint.machine.effects.gpu.cuda import read, touch
from cudalint.machine.effects.torch import hooks
from cudalint.machine.frame import Call, Results
from cudalint.machine.gpu_memory import gpu_atoms, place, placed_tensor
from cudalint.machine.heap import HOOKS, Dict, Instance, LibraryObject, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.values import (
    CPU,
    NONE,
    TRUE,
    Atom,
    Dev,
    Ref,
    Tensor,
    Unknown,
    Value,
    const,
    constant,
    is_array,
    only,
    union,
    unknown,
)
from cudalint.structs import replace


def module(machine: Machine, call: Call) -> Results:
    """``nn.Linear(...)``: a module; ``device=`` puts it on the GPU at once."""
    state = call.state
    fields: dict[str, Value] = {"<parameters>": const(call.flag("parameters", True))}
    if call.text("kind"):
        fields[_CONTAINER] = const(call.text("kind"))
    for i, value in enumerate(call.args):
        if any(isinstance(a, Ref) for a in value):
            fields[f"<child {i}>"] = value
    kind = call.text("type") or call.path
    origin = machine.chain(state, call.site, f"{call.label} makes it")
    ref = state.new(("module", call.site), LibraryObject(kind, fields, call.site, origin))
    wanted = call.kwargs.get("device")
    devices = [] if wanted is None else operators.device_of(wanted)
    default = state.process.default_device
    gpu = next((d for d in devices if d.is_gpu), None)
    if wanted is None and default is not None and default.is_gpu:
        gpu = default
    if gpu is None or not call.flag("parameters", True):
        return [(state, (ref,))]
    after = touch(machine, state, call.frame, call.site, "torch", "init", call.label, gpu, context=True)
    if after is None:
        return []
    place(ref, new_tensor(machine, call, after, gpu, "torch.Tensor"), after)
    return [(after, (ref,))]


def module_data(machine: Machine, call: Call) -> Results:
    """``parameters()``, ``state_dict()`` and their like: the module's tensors, where they are, not read yet."""
    state, receiver = call.state, call.receiver
    if isinstance(receiver, Tensor):
        return [(state, (_optimizer_state(receiver, call),))]
    memory = placed_tensor(receiver, state) if isinstance(receiver, Ref) else None
    if memory is None:
        return [(state, unknown("module data", call.site))]
    name = call.path.rpartition(".")[2]
    if name == "state_dict":
        return [(state, (state.new(("state", call.site), Dict({}, (memory,), False)),))]
    element: Value = (memory,)
    if name.startswith("named"):
        pair = Sequence("tuple", (unknown("name", call.site), (memory,)))
        element = (state.new(("named", call.site), pair),)
    return [(state, (state.new(("parameters", call.site), Sequence("iterator", None, element)),))]


def _optimizer_state(optimizer: Tensor, call: Call) -> Ref:
    """``optimizer.state_dict()``: what it keeps for each parameter, beside settings."""
    state = call.state
    kept: Value = (replace(optimizer, type="torch.Tensor"),)
    of_parameter = state.new(("state of parameter", call.site), Dict({}, kept, False))
    of_all = state.new(("state of all", call.site), Dict({}, (of_parameter,), False))
    parts: dict[Hashable, Value] = {"state": (of_all,), "param_groups": unknown("parameter groups", call.site)}
    return state.new(("state", call.site), Dict(parts, (), True))


def module_tensor(machine: Machine, call: Call) -> Results:
    """``layer.weight``: a tensor where the module is."""
    memory = placed_tensor(call.receiver, call.state) if isinstance(call.receiver, Ref) else None
    return [(call.state, (memory or Tensor("torch", CPU, call.state.process.identity),))]


def module_device(machine: Machine, call: Call) -> Results:
    """``model.device``: where a module of a library lies that has such a property."""
    memory = placed_tensor(call.receiver, call.state) if isinstance(call.receiver, Ref) else None
    return [(call.state, unknown("device", call.receiver) if memory is None else (memory.device,))]


def module_child(machine: Machine, call: Call) -> Results:
    """``model[0]``, ``model.children()``: a part of a module is where the module is, if it is not of the program."""
    state, receiver = call.state, call.receiver
    if receiver is None:
        return [(state, unknown("child", call.site))]
    own, method = _own_parts(machine, receiver, state), call.path.rpartition(".")[2]
    if method in _NAMED:
        pairs = [
            Sequence("tuple", (unknown("name", call.site, i), part)) for i, part in enumerate(own or [(receiver,)])
        ]
        named: list[Value] = [(state.new(("named", call.site, i), pair),) for i, pair in enumerate(pairs)]
        rows = Sequence("list", tuple(named)) if own else Sequence("iterator", None, named[0])
        return [(state, (state.new(("children", call.site), rows),))]
    if own and method in _SEVERAL:
        return [(state, (state.new(("children", call.site), Sequence("list", tuple(own))),))]
    if own:
        return [(state, own[0] if len(own) == 1 else union(own))]
    if method in _SEVERAL:
        return [(state, (state.new(("children", call.site), Sequence("iterator", None, (receiver,))),))]
    return [(state, (receiver,))]


# What holds modules in a row, of which those of the program run when it is called (``call``) or gone through.
_CONTAINER = "<container>"
_DEEPEST = 4


def _own_parts(machine: Machine, atom: Atom, state: State, depth: int = 0) -> list[Value]:
    """What a container holds, one of each class, if some of that is a module of the program's own; else nothing.

    Layers of one class do the same, one after the other, so that one of them stands for all.
    """
    found = state.get(atom) if isinstance(atom, Ref) and depth < _DEEPEST else None
    layer = found.attributes.get(_LAYER, ()) if isinstance(found, Instance) else ()
    if layer and (inner := only(layer)) is not None:
        return _own_parts(machine, inner, state, depth + 1)
    if not isinstance(found, LibraryObject) or _CONTAINER not in found.fields:
        return []
    parts: dict[Hashable, Value] = {}
    is_own = False
    for name, value in found.fields.items():
        listed = _listed(machine, value, state) if name.startswith("<child") else []
        for held in (atom for part in listed for atom in part):
            child = state.get(held) if isinstance(held, Ref) else None
            if child is None:
                return []
            is_own = is_own or isinstance(child, Instance) or bool(_own_parts(machine, held, state, depth + 1))
            parts.setdefault(child.cls if isinstance(child, Instance) else held, (held,))
    return list(parts.values()) if is_own else []


def _listed(machine: Machine, value: Value, state: State) -> list[Value]:
    """The modules that a container is made with: each by itself, or in a list or dict."""
    found = state.get(atom) if isinstance(atom := only(value), Ref) else None
    match found:
        case Dict(items=items):
            return list(items.values())
        case Sequence():
            return machine.elements(value, state)
    return [value]


_MODULE = "torch.nn.Module"
# What an instance of a class below a layer holds of the library's class.
_LAYER = "<layer>"
# What gives the parts one after the other.
_SEVERAL = frozenset({"__iter__", "children", "modules", "values"})
# Those that tell the name of each part beside it.
_NAMED = frozenset({"named_children", "named_modules"})


def module_hold(machine: Machine, call: Call) -> Results:
    """``layers.append(part)``, ``add_module(name, part)``, ``register_buffer(name, tensor)``: a module holds more."""
    state, receiver = call.state, call.receiver
    found = state.get(receiver) if isinstance(receiver, Ref) else None
    value = next(reversed([*call.args, *call.kwargs.values()]), NONE)
    if not isinstance(receiver, Ref) or not isinstance(found, Instance | LibraryObject):
        return [(state, NONE)]
    name = constant(call.args[0]) if len(call.args) > 1 else ...
    value = _as_part(value)
    if isinstance(found, LibraryObject):
        held = f"<child {call.site}>"
        parts = union([*([found.fields[held]] if held in found.fields else []), value])
        state.store(receiver, replace(found, fields={**found.fields, held: parts}))
        return [(state, (receiver,))]
    held = name if isinstance(name, str) else f"<child {call.site}>"
    if isinstance(name, str):
        found = replace(found, attributes={**found.attributes, gpu_memory.part_mark(name): TRUE})
        state.store(receiver, found)
    return [(s, (receiver,)) for s in machine.set_attribute((receiver,), held, value, state, call.frame, call.site)]


def module_part(machine: Machine, call: Call) -> Results:
    """``nn.Parameter(x)``: x, which moves with the module that holds it."""
    value = call.args[0] if call.args else call.kwargs.get("data") or unknown("parameter", call.site)
    return [(call.state, tuple(_parameter(atom, call.state) for atom in _as_part(value)))]


def _as_part(value: Value) -> Value:
    return tuple(replace(atom, part=True) if isinstance(atom, Tensor) else atom for atom in value)


def _parameter(atom: Atom, state: State) -> Atom:
    """What is known to be a parameter is no longer just something that was computed."""
    is_plain = isinstance(atom, Unknown) and atom.sym not in state.placed and is_array(atom.sym)
    return Unknown(("parameter", atom)) if is_plain else atom


def module_base(machine: Machine, call: Call) -> Results:
    """``super().__init__(...)`` of a module: what the library's class brings; ``nn.Module`` itself brings nothing."""
    owner = call.path.removesuffix(".__init__")
    spec = machine.library.function(owner)
    if spec is None or spec["does"] != "module" or not isinstance(call.receiver, Ref) or owner == _MODULE:
        return [(call.state, NONE)]
    results: Results = []
    for state, made in module(machine, replace(call, path=owner, spec=spec)):
        found = state.get(call.receiver)
        if isinstance(found, Instance):
            # A part of it: what is called on the instance gives the instance back, and not its part.
            state.store(call.receiver, replace(found, attributes={**found.attributes, _LAYER: made}))
        memory = placed_tensor(part, state) if isinstance(part := only(made), Ref) else None
        if memory is not None:
            place(call.receiver, memory, state)
        results.append((state, NONE))
    return results


_OFFLOADED = "<offloaded>"


def offload(machine: Machine, call: Call) -> Results:
    """``pipe.enable_model_cpu_offload()``: asks for a GPU, on which its parts lie while they are called."""
    state = touch(machine, call.state, call.frame, call.site, "torch", call.text("gpu", "query"), call.label)
    found = None if state is None or not isinstance(call.receiver, Ref) else state.get(call.receiver)
    if state is not None and isinstance(call.receiver, Ref) and isinstance(found, LibraryObject):
        state.store(call.receiver, replace(found, fields={**found.fields, _OFFLOADED: TRUE}))
    return [] if state is None else [(state, NONE)]


def module_call(machine: Machine, call: Call) -> Results:
    """``model(x)``: its forward, between the hooks that run before and behind it."""
    if call.path.endswith(".forward") or call.state.get(HOOKS) is None:
        return _forward(machine, call)
    return [
        result for one in hooks.before(machine, call) for result in hooks.after(machine, one, _forward(machine, one))
    ]


def _forward(machine: Machine, call: Call) -> Results:
    """It reads the parameters; the result is where they are. Some models ask for a GPU on the way."""
    receiver = call.receiver
    if receiver is None:
        return [(call.state, unknown("forward", call.site))]
    asks = call.text("gpu", "none")
    state = touch(machine, call.state, call.frame, call.site, "torch", asks, "calling the model", unnamed=True)
    for value in ((receiver,), *call.args):
        for atom in gpu_atoms(value, call.state):
            if state is not None:
                state = read(machine, atom, state, call.frame, call.site, "calling the model")
    found = None if state is None or not isinstance(receiver, Ref) else state.get(receiver)
    if state is not None and isinstance(found, LibraryObject) and _OFFLOADED in found.fields:
        # Its parts are moved to the GPU as they are called.
        device = Dev("cuda")
        state = touch(machine, state, call.frame, call.site, "torch", "init", "calling the model", device, context=True)
    if state is None:
        return []
    memory = placed_tensor(receiver, state) if isinstance(receiver, Ref) else None
    if isinstance(found, Instance):
        forward = machine.user_method(found, "forward", state)
        if forward is not None:
            args: list[Value] = [(receiver,), *call.args]
            return machine.call_value((forward,), args, call.kwargs, state, call.frame, call.site)
    own = _own_parts(machine, receiver, state)
    if own and call.args:
        return _in_turn(machine, replace(call, state=state), own)
    if memory is not None:
        return [(state, (memory.computed,))]
    for value in call.args:
        for atom in value:
            if isinstance(atom, Tensor):
                return [(state, (atom.computed,))]
    return [(state, unknown("forward", call.site, state.process.identity))]


def _in_turn(machine: Machine, call: Call, parts: list[Value]) -> Results:
    """``Sequential(a, b)(x)``: each is given what the one before it made."""
    results: Results = [(call.state, call.args[0])]
    for part in parts:
        results = [
            one
            for state, value in results
            for one in machine.call_value(part, [value], {}, state, call.frame, call.site)
        ]
    return results
