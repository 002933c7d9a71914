"""accelerate: the ``Accelerator`` of a process, and what it prepares."""

from __future__ import annotations

from cudalint.machine import gpu_memory
from cudalint.machine.effects.gpu import arrays, cuda
from cudalint.machine.effects.gpu.queries import gpu_call
from cudalint.machine.effects.receivers import library_object
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import Instance, LibraryObject, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import Selected, State
from cudalint.machine.values import CPU, FALSE, TRUE, TRUTHS, Dev, Rank, Ref, strings, union, unknown
from cudalint.structs import replace

_MODULE = "torch.nn.Module"


def accelerator(machine: Machine, call: Call) -> Results:
    """``Accelerator()``: asks the driver; in a launched rank it joins the group and selects the device."""
    on_cpu = call.kwargs.get("cpu") == TRUE or _is_told_cpu(call)
    state: State | None = call.state
    if state is not None and not on_cpu:
        wanted = "init" if _is_rank(state) else call.text("gpu", "query")
        state = cuda.touch(machine, state, call.frame, call.site, "torch", wanted, call.label)
    if state is None:
        return []
    if not on_cpu and state.process.device() is None:
        where = machine.chain(state, call.site, f"{call.label} selects the device")
        if _is_rank(state):
            state.process = state.process.with_device(Selected(Rank("local"), False, where))
    state.process = replace(state.process, local_rank_at_hand=True)
    made = LibraryObject("accelerate.Accelerator", {"<cpu>": TRUE if on_cpu else FALSE}, call.site)
    return [(state, (state.new(("accelerator", call.site), made),))]


def accelerator_device(machine: Machine, call: Call) -> Results:
    """``accelerator.device``: the CPU, where it was told to use that."""
    obj = library_object(call)
    on_cpu = obj is not None and obj.fields.get("<cpu>") == TRUE
    return [(call.state, (CPU,))] if on_cpu else gpu_call(machine, call)


def _is_told_cpu(call: Call) -> bool:
    """Whether a variable of the environment says that no GPU is to be used."""
    said = strings(call.state.process.environ(call.text("unless-env")) or ())
    return len(said) == 1 and TRUTHS.get(said[0].lower()) is True


def _is_rank(state: State) -> bool:
    """Whether a process is one of several ranks, as far as a launcher or the environment makes it one."""
    process = state.process
    if process.rank is not None or process.environ("LOCAL_RANK") is not None:
        return True
    return process.launch is not None and process.launch.family in ("spawn", "fork-launcher")


def prepare(machine: Machine, call: Call) -> Results:
    """``prepare(model, optimizer, loader)``: the models are on the device afterwards, all else is what it was."""
    after = _moved(machine, call)
    if after is None:
        return []
    if call.open or not call.args:
        return [(after, unknown("prepared", call.site))]
    if len(call.args) == 1:
        return [(after, call.args[0])]
    made = Sequence("tuple", tuple(call.args), union(call.args))
    return [(after, (after.new(("prepared", call.site), made),))]


def _moved(machine: Machine, call: Call) -> State | None:
    """The state in which the models among the arguments are on the GPU; None where CUDA fails."""
    obj = library_object(call)
    if obj is not None and obj.fields.get("<cpu>") == TRUE:
        return call.state
    here, target = (call.frame, call.site), Dev("cuda")
    state = cuda.touch(machine, call.state, *here, "torch", "init", call.label, target, context=True)
    if state is None:
        return None
    memory = arrays.new_tensor(machine, call, state, target, "torch.Tensor")
    for atom in (a for value in call.args for a in value):
        if isinstance(atom, Ref) and _is_module(machine, atom, state):
            gpu_memory.place(atom, memory, state)
    return state


def _is_module(machine: Machine, ref: Ref, state: State) -> bool:
    found = state.get(ref)
    if isinstance(found, LibraryObject):
        return machine.library.is_a(found.type, _MODULE)
    if isinstance(found, Instance):
        bases = machine.mro(found.cls, state)
        return any(isinstance(base, str) and machine.library.is_a(base, _MODULE) for base in bases)
    return False
