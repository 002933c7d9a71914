"""Pipelines of transformers that a program defines: workers preprocess what they are given, this process computes."""

from __future__ import annotations

from cudalint.machine.effects.gpu import arrays, cuda
from cudalint.machine.effects.gpu.choices import chosen
from cudalint.machine.effects.plain import unmodelled
from cudalint.machine.effects.receivers import initialised
from cudalint.machine.effects.torch.datasets import in_turn
from cudalint.machine.effects.torch.loaders import loader_iter
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import Instance, LibraryObject
from cudalint.machine.interpreter import Machine
from cudalint.machine.joining import merge
from cudalint.machine.state import State
from cudalint.machine.values import NONE, Bound, Dev, Ref, Value, const, only, unknown
from cudalint.structs import replace

_IN_WORKERS, _HERE = "preprocess", ("_forward", "postprocess")


def make(machine: Machine, call: Call) -> Results:
    """``Pipeline(model=, device=0)``: the model is moved to the device, which is a GPU unless it is told another."""
    device = chosen(call) or Dev("cuda")
    state: State | None = call.state
    if device.is_gpu:
        state = cuda.touch(machine, call.state, call.frame, call.site, "torch", "init", call.label, device, True)
    if state is None:
        return []
    fields: dict[str, Value] = {"device": (device,), "model": call.get("model") or NONE}
    if initialised(replace(call, state=state), fields):
        return [(state, NONE)]
    return unmodelled(machine, replace(call, state=state))


def run(machine: Machine, call: Call) -> Results:
    """``pipe(inputs, num_workers=2)``: a loader's workers preprocess, and this process goes on with what they give."""
    pipe = call.receiver
    found = call.state.get(pipe) if isinstance(pipe, Ref) else None
    own = isinstance(pipe, Ref) and isinstance(found, Instance)
    steps = _items_of(machine, call)
    if isinstance(pipe, Ref) and own:
        steps += _method(machine, pipe, found, _IN_WORKERS, call.state)
    states = _loaded(machine, call, steps) if steps else [call.state]
    if not isinstance(pipe, Ref) or not own:
        return [result for s in states for result in arrays.like(machine, replace(call, state=s))]
    for name in _HERE:
        for method in _method(machine, pipe, found, name, call.state):
            given = unknown("batch", call.site)
            results = [r for s in states for r in machine.call_value(method, [given], {}, s, call.frame, call.site)]
            states = merge([after for after, _ in results])
    return [(after, unknown("outputs", call.site)) for after in states]


def _loaded(machine: Machine, call: Call, steps: list[Value]) -> list[State]:
    """The paths after a loader went through what a pipeline is given."""
    state = call.state
    dataset = LibraryObject(call.path, {"<transform>": in_turn(steps, state, call.site)}, call.site)
    fields: dict[str, Value] = {
        "dataset": (state.new(("dataset", call.site), dataset),),
        "<num_workers>": call.get("num_workers") or const(0),
    }
    loader = state.new(("loader", call.site), LibraryObject("torch.utils.data.DataLoader", fields, call.site))
    return [after for after, _ in loader_iter(machine, replace(call, receiver=loader, args=[], kwargs={}))]


def _items_of(machine: Machine, call: Call) -> list[Value]:
    """What gives an item of the dataset that a pipeline goes through, where the program defines that."""
    atom = only(call.get("inputs") or ())
    found = call.state.get(atom) if isinstance(atom, Ref) else None
    return _method(machine, atom, found, "__getitem__", call.state) if isinstance(atom, Ref) else []


def _method(machine: Machine, owner: Ref, found: object, name: str, state: State) -> list[Value]:
    function = machine.user_method(found, name, state) if isinstance(found, Instance) else None
    return [] if function is None else [(Bound(function, owner),)]
