"""Lightning Fabric: the processes that it launches, and the device of what it sets up."""

from __future__ import annotations

from cudalint.machine.effects.frameworks.engines import spawn_unseen
from cudalint.machine.effects.frameworks.lightning import (
    ON_GPU,
    forks,
    refuses_to_fork,
    several_asked,
    starts_others,
    strategy_told,
)
from cudalint.machine.effects.gpu import cuda
from cudalint.machine.effects.receivers import library_object
from cudalint.machine.frame import Call, Raised, Results
from cudalint.machine.heap import LibraryObject
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch.forbidden import bootstrapping
from cudalint.machine.values import CPU, FALSE, NONE, TRUE, Dev, Value, const, strings, unknown


def fabric(machine: Machine, call: Call) -> Results:
    """``Fabric(accelerator=, strategy=, devices=)``: starts nothing yet."""
    accelerators = set(strings(call.get("accelerator") or const("auto")))
    on_gpu = bool(accelerators) and accelerators <= ON_GPU
    fields: dict[str, Value] = {
        "<strategy>": strategy_told(machine, call),
        "<several>": const(several_asked(machine, call)),
        "<cpu>": FALSE if on_gpu else TRUE,
    }
    made = LibraryObject("lightning.Fabric", fields, call.site)
    return [(call.state, (call.state.new(("fabric", call.site), made),))]


def launch(machine: Machine, call: Call) -> Results:
    """``fabric.launch(f)``: f in ranks that are forked or spawned and not followed, else in this process."""
    state, found = call.state, library_object(call)
    strategies = [] if found is None else strings(found.fields.get("<strategy>", ()))
    if refuses_to_fork(machine, call, strategies, "Fabric.launch"):
        return machine.fail(state, call.frame, Raised(None, ("RuntimeError",)))
    if forks(strategies):
        return [(state, unknown("launched", call.site))]
    if any(name.endswith("_spawn") for name in strategies):
        return _spawn(machine, call)
    after = state
    if found is not None and found.fields.get("<cpu>") == FALSE:
        starts_others(machine, call, found)
        touched = cuda.touch(
            machine, state, call.frame, call.site, "torch", "init", call.label, Dev("cuda"), context=True
        )
        if touched is None:
            return []
        after = touched
    function = call.args[0] if call.args else call.kwargs.get("function")
    if function is None or call.receiver is None:
        return [(after, NONE)]
    kwargs = {name: value for name, value in call.kwargs.items() if name != "function"}
    args: list[Value] = [(call.receiver,), *call.args[1:]]
    return machine.call_value(function, args, kwargs, after, call.frame, call.site)


def _spawn(machine: Machine, call: Call) -> Results:
    state = call.state
    if bootstrapping(machine, call, "Fabric.launch()"):
        return machine.fail(state, call.frame, Raised(None, ("RuntimeError",)))
    spawn_unseen(
        machine, call, "Fabric.launch", family="spawn", says=".launch() spawns the ranks", label="rank", many=True
    )
    return [(state, unknown("launched", call.site))]


def device(machine: Machine, call: Call) -> Results:
    """``fabric.device``."""
    found = library_object(call)
    on_gpu = found is not None and found.fields.get("<cpu>") == FALSE
    return [(call.state, (Dev("cuda") if on_gpu else CPU,))]
