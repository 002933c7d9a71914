"""How a batch is made of samples: by torch itself, or by what a program says of its own classes."""

from __future__ import annotations

from collections.abc import Hashable

from cudalint.machine import gpu_memory
from cudalint.machine.effects.gpu import arrays, cuda
from cudalint.machine.effects.stdlib.types import is_instance
from cudalint.machine.effects.torch.pinning import parts
from cudalint.machine.frame import Call, Frame, Results
from cudalint.machine.heap import Dict, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.keys import as_key
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import NONE, Atom, Const, Dev, Lib, Ref, Tensor, Unknown, Value, constant, only
from cudalint.structs import replace

# Where the functions lie that a program adds to torch's own, by the classes of samples.
_ADDED = Ref(("functions that collate",))
_DEFAULT: Value = (Lib("torch.utils.data._utils.collate.default_collate_fn_map"),)
_DEEPEST = 4


def add(machine: Machine, call: Call) -> Results:
    """``default_collate_fn_map[Box] = collate_box``, ``default_collate_fn_map.update({...})``."""
    known = _functions(_DEFAULT, call.state)
    if call.path.endswith("__setitem__") and len(call.args) == 2:
        key = constant(as_key(call.args[0], call.state))
        known = known if key is ... else {**known, key: call.args[1]}
    elif call.path.endswith("update") and call.args:
        known = {**known, **_functions(call.args[0], call.state)}
    call.state.store(_ADDED, Dict(known, exact=False))
    return [(call.state, NONE)]


def collate(machine: Machine, call: Call) -> Results:
    """``collate(batch, collate_fn_map=)``, ``default_collate(batch)``: by the function for the class of its samples."""
    batch = call.args[0] if call.args else ()
    functions = call.get("collate_fn_map") or (NONE if call.path.endswith(".collate") else _DEFAULT)
    samples = machine.elements(batch, call.state)
    if not samples or not _functions(functions, call.state):
        return arrays.like(machine, call)
    return collated(machine, call.state, call.frame, call.site, samples[0], functions, batch)


def collated(
    machine: Machine,
    state: State,
    frame: Frame,
    site: Site,
    sample: Value,
    functions: Value = _DEFAULT,
    batch: Value = (),
    depth: int = 0,
) -> Results:
    """A batch of samples like this one."""
    known = _functions(functions, state)
    if not known or depth == _DEEPEST:
        return _by_torch(machine, state, frame, site, sample)
    batch = batch or (state.new(("samples", site, depth), Sequence("list", (sample, sample), (), True)),)
    for kind, function in known.items():
        if (atom := only(sample)) is not None and _is_of(machine, atom, kind, state):
            return machine.call_value(function, [batch], {"collate_fn_map": functions}, state, frame, site)
    held = state.get(atom) if isinstance(atom := only(sample), Ref) else None
    inside = held.items if isinstance(held, Sequence | Dict) else None
    if not inside:
        return _by_torch(machine, state, frame, site, sample)
    values = list(inside.values()) if isinstance(inside, dict) else list(inside)
    paths: list[tuple[State, tuple[Value, ...]]] = [(state, ())]
    for value in values:
        paths = [
            (after, (*made, given))
            for before, made in paths
            for after, given in collated(machine, before, frame, site, value, functions, (), depth + 1)
        ]
    return [(after, _whole(held, made, after, site, depth)) for after, made in paths]


def _whole(held: object, made: tuple[Value, ...], state: State, site: Site, depth: int) -> Value:
    """A batch of samples that have parts: what was made of each of these."""
    if isinstance(held, Dict):
        named = replace(held, items=dict(zip(held.items, made, strict=True)))
        return (state.new(("batch", site, depth), named),)
    return (state.new(("batch", site, depth), Sequence("list", made)),)


def _is_of(machine: Machine, atom: Atom, kind: Hashable, state: State) -> bool:
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return any(isinstance(one, Ref | Lib) and is_instance(machine, atom, one, state) is True for one in kinds)


def _functions(given: Value, state: State) -> dict[Hashable, Value]:
    """The functions that the program itself gives for classes of samples.

    What torch has for its own classes may have been laid over those in a map that is not known as a whole.
    """
    atom = only(given)
    found = state.get(_ADDED) if given == _DEFAULT else state.get(atom) if isinstance(atom, Ref) else None
    if not isinstance(found, Dict):
        return {}
    is_sure = found.exact or given == _DEFAULT
    return {kind: function for kind, function in found.items.items() if is_sure or isinstance(kind, Ref)}


def _by_torch(machine: Machine, state: State, frame: Frame, site: Site, sample: Value) -> Results:
    after: State | None = state
    for atom in dict.fromkeys(gpu_memory.tensors_in(parts(machine, sample, state), state)):
        if after is not None:
            after = cuda.read(machine, atom, after, frame, site, "default_collate")
    if after is None:
        return []
    default = after.process.default_device
    if default is not None and default.is_gpu and _has_number(machine, sample, after):
        after = cuda.touch(
            machine, after, frame, site, "torch", "init", "default_collate on the default device", default, True, True
        )
        if after is None:
            return []
        device = Dev("cuda", cuda.current_index(after.process, default))
        origin = machine.chain(after, site, "default_collate makes a batch on the default device")
        return [(after, (Tensor("torch", device, after.process.identity, origin),))]
    return [(after, sample)]


def _has_number(machine: Machine, sample: Value, state: State) -> bool:
    values = [sample, *machine.elements(sample, state)]
    return any(_is_number(atom) for v in values for atom in v)


def _is_number(atom: Atom) -> bool:
    match atom:
        case Const(value=value):
            return isinstance(value, int | float)
        case Unknown(sym=("int" | "float" | "len", *_)):
            return True
    return False
