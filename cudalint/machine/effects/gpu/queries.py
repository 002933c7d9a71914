"""Functions that ask the driver or initialise CUDA, and return something simple."""

from __future__ import annotations

from cudalint.machine import gpu_memory, operators
from cudalint.machine.effects.gpu import choices, current, defaults
from cudalint.machine.effects.gpu.arrays import returned, runs_on_cpu, tensor_data
from cudalint.machine.effects.gpu.cuda import begin_on_cpu, is_known_set, sees_none, touch
from cudalint.machine.frame import Call, Results
from cudalint.machine.hooked import BACKWARD, pending
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import Process
from cudalint.machine.values import CPU, NONE, Atom, Dev, Lib, Ref, Tensor, const, unknown
from cudalint.structs import replace

# What is answered instead where the process sees no GPU.
_OF_HIDDEN: dict[str, bool | int | str] = {"true": False, "devices": 0, "backend": "cpu"}


def gpu_call(machine: Machine, call: Call) -> Results:
    """A function that touches the GPU and returns something simple."""
    spared = call.text("unless-env")
    wanted = call.text("gpu", "none")
    if spared and is_known_set(call.state, spared):
        wanted = "none"
    if call.text("returns") in _OF_HIDDEN and sees_none(machine, call.state.process):
        return [(call.state, const(_OF_HIDDEN[call.text("returns")]))]
    device = choices.chosen(call) if choices.depends(call) else _device_argument(call)
    untold = device is None and call.flag("default-gpu")
    if not _stays_on_gpu(call, device) or choices.idle(machine, call) or (untold and not choices.takes_gpu(call)):
        wanted = "none"
    elif call.receiver is not None and call.get(call.text("device", "device")) is None:
        device = _own_device(call.receiver, call) or device
    framework = call.text("framework", "torch")
    if wanted == "use" and device is None and call.flag("default-gpu") and runs_on_cpu(call):
        begin_on_cpu(machine, call.state, call.frame, call.site, framework, call.label)
        wanted = "none"
    if call.text("kind") == "started" and not was_started(call.state.process, framework):
        wanted = "none"
    if call.text("kind") == "asks-first" and takes_cpu(call.state.process, framework):
        wanted = "none"
    state = touch(
        machine, call.state, call.frame, call.site, framework, wanted, call.label, device, call.flag("context")
    )
    if state is None:
        return []
    current.follow(machine, call, state)
    if wanted == "none" and call.text("returns").startswith("placed:"):
        device = CPU
    return [(state, returned(machine, call, state, device))]


def backward(machine: Machine, call: Call) -> Results:
    """``loss.backward()``: the engine counts the GPUs before it begins, wherever the loss lies."""
    states, loss = [call.state], call.receiver
    if isinstance(loss, Tensor):
        states = [s for s, _ in tensor_data(machine, loss, call.label, call.state, call.frame, call.site)]
    results = [result for state in states for result in gpu_call(machine, replace(call, state=state))]
    for state, _ in results:
        hooked = [atom for hook in pending(state) for atom in (*hook.of, *NONE)]
        machine.may_run_hooks(hooked, state, call.frame, call.site, BACKWARD)
    return results


def device_module(machine: Machine, call: Call) -> Results:
    """``torch.get_device_module("cuda")``: the module of a device; without one it asks whether there is a GPU."""
    given = call.get("device")
    if given is None or given == NONE:
        return [(state, (Lib("torch.cuda"),)) for state, _ in gpu_call(machine, call)]
    kinds = dict.fromkeys(device.kind for device in operators.device_of(given))
    known = len(operators.device_of(given)) == len(given)
    return [(call.state, tuple(Lib(f"torch.{kind}") for kind in kinds) if known else unknown("module", call.site))]


def _own_device(receiver: Atom, call: Call) -> Dev | None:
    """The GPU that an object was moved to, which its methods use unless they are told otherwise."""
    memory = gpu_memory.placed_tensor(receiver, call.state) if isinstance(receiver, Ref) else None
    return memory.device if memory is not None and memory.device.is_gpu else None


def choose_default(machine: Machine, call: Call) -> Results:
    """``paddle.set_device("cpu")``: what names no device runs there from now on; on a GPU it starts at once."""
    defaults.choose(call.state, call.text("framework"), call.get(call.text("device")) or (), unless_gpu=True)
    return gpu_call(machine, call)


def takes_cpu(process: Process, framework: str) -> bool:
    """Whether a framework that counts GPUs before its first use cannot do so any more, and takes the CPU."""
    return process.forked and process.poison is not None and not was_started(process, framework)


def was_started(process: Process, framework: str) -> bool:
    """Whether a framework that runs where it is told was told to run on the GPU, here or before this process forked."""
    return framework in process.poisoned_by or framework in process.told or process.is_initialised(framework)


def _stays_on_gpu(call: Call, device: Dev | None) -> bool:
    """Whether the arguments leave a function on the GPU."""
    name = call.text("device")
    if device is not None:
        return device.is_gpu or not (name or choices.depends(call))
    if choices.depends(call):
        return False
    return not name or (call.get(name) is None and call.flag("default-gpu"))


def _device_argument(call: Call) -> Dev | None:
    name = call.text("device")
    value = call.get(name) if name else None
    if value is None:
        return None
    found = [d for d in operators.device_of(value) if d.is_gpu] or operators.device_of(value)
    return found[0] if found else None


def is_initialized(machine: Machine, call: Call) -> Results:
    """``torch.cuda.is_initialized()``: of this very process."""
    process = call.state.process
    machine.asked_for_callers = True
    if process.unseen and not process.forked and not process.is_initialised("torch"):
        return [(call.state, unknown("initialised", process.identity))]
    return [(call.state, const(process.is_initialised("torch")))]


def bad_fork(machine: Machine, call: Call) -> Results:
    """``torch.cuda._is_in_bad_fork()``: true only in a forked child."""
    process = call.state.process
    return [(call.state, const(process.forked and process.poison is not None))]
