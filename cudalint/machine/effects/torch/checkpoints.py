"""Files of tensors: they are loaded to the device from which they were saved."""

from __future__ import annotations

from dataclasses import replace

from cudalint.machine import operators
from cudalint.machine.effects.gpu import arrays, cuda
from cudalint.machine.frame import Call, Results
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch.crossing import Pickler, carried
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import NONE, Const, Dev, Tensor, Unknown, Value, constant, only, unknown


def save(machine: Machine, call: Call) -> Results:
    """``torch.save(obj, file)``: reads the data, and notes whether some of it lies on the GPU."""
    place = only(call.get("f") or ())
    value = call.get("obj") or NONE
    found = list(carried(value, call.state, Pickler.NAMES))
    if isinstance(place, Const | Unknown):
        machine.saved[place] = machine.saved.get(place, True) and any(one.certain for one in found)
    state: State | None = call.state
    for one in found:
        if state is not None and one.what not in ("lock", "unpicklable"):
            state = cuda.read(machine, one.atom, state, call.frame, call.site, call.label)
    return [] if state is None else [(state, NONE)]


def load(machine: Machine, call: Call) -> Results:
    """``torch.load(file, map_location)``: where ``map_location`` says; without it where the data was when saved."""
    value = call.get("map_location")
    device = _target(machine, call, value)
    if device is None:
        return [(call.state, unknown("load", call.site))]
    state = cuda.touch(machine, call.state, call.frame, call.site, "torch", "init", call.label, device, context=True)
    if state is None:
        return []
    return [(state, (arrays.new_tensor(machine, call, state, device, _LOADED),))]


_LOADED = "torch.Checkpoint"
_PART = f"{_LOADED}.Part"


def item(machine: Machine, call: Call) -> Results:
    """What was loaded, by a key: the names that the model calls plain hold no data, and below others nobody knows."""
    whole, key = call.receiver, constant(call.get("key") or ())
    if not isinstance(whole, Tensor):
        return [(call.state, unknown("loaded", call.site))]
    if not isinstance(key, str):
        return arrays.tensor_data(machine, whole, "[...]", call.state, call.frame, call.site)
    if whole.type == _PART or key in call.texts("plain"):
        return [(call.state, unknown("loaded", call.site, key))]
    return [(call.state, (replace(whole, type=_PART),))]


def _target(machine: Machine, call: Call, value: Value | None) -> Dev | None:
    if value is not None and value != NONE:
        return next((d for d in operators.device_of(value) if d.is_gpu), None)
    place = only(call.get("f") or ())
    known = isinstance(place, Const | Unknown) and machine.saved.get(place, False)
    return Dev("cuda") if known and _is_one_file(machine, place) else None


def _is_one_file(machine: Machine, part: object) -> bool:
    """Whether a name that the code does not show was made once, so that it is the same file wherever it is met."""
    match part:
        case Unknown(sym=sym):
            return sym != "joined" and _is_one_file(machine, sym)
        case Site():
            return machine.evaluated[part] <= 1
        case tuple():
            return all(_is_one_file(machine, inner) for inner in part)
    return True
