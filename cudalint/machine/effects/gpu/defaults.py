"""Where a framework computes what names no device: JAX's default device, and the platforms that it is kept to."""

from __future__ import annotations

from cudalint.machine import operators
from cudalint.machine.effects.receivers import library_object
from cudalint.machine.frame import Call, Results
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.values import NONE, TRUE, Ref, Value, const, strings
from cudalint.structs import replace

_SETTINGS = frozenset({"jax_default_device", "jax_platform_name"})
_BEFORE = "<default before>"


def framework_setting(machine: Machine, call: Call) -> Results:
    """``jax.config.update("jax_default_device", device)``, or ``"jax_platforms"`` before JAX starts."""
    state = call.state
    framework = call.text("framework")
    names, value = strings(call.get("name") or ()), call.get("value") or ()
    if any(name in _SETTINGS for name in names):
        choose(state, framework, value)
    elif "jax_platforms" in names and value == const("cpu"):
        process = state.process
        # What has started, here or in the parent of a forked process, goes on with the platforms that it has.
        if framework not in process.asked_by | process.poisoned_by:
            state.process = replace(process, hidden=process.hidden | {framework})
    return [(state, NONE)]


def choose(state: State, framework: str, value: Value, *, unless_gpu: bool = False) -> None:
    """A framework is told a default device; ``unless_gpu``: one that is not known is taken for the CPU."""
    devices = operators.device_of(value)
    is_known = len(devices) == len(value) > 0
    on_cpu = (is_known or unless_gpu) and not any(device.is_gpu for device in devices)
    kept = state.process.on_cpu - {framework}
    state.process = replace(state.process, on_cpu=kept | {framework} if on_cpu else kept)


def framework_enter(machine: Machine, call: Call) -> Results:
    """``with jax.default_device(device)``: what names no device runs there."""
    scope = library_object(call)
    framework = call.text("framework")
    if scope is not None and isinstance(call.receiver, Ref):
        before = const(framework in call.state.process.on_cpu)
        call.state.store(call.receiver, replace(scope, fields={**scope.fields, _BEFORE: before}))
        choose(call.state, framework, scope.fields.get("<device>", ()))
    return [(call.state, NONE)]


def framework_exit(machine: Machine, call: Call) -> Results:
    """Leaving it: the default is what it was."""
    scope = library_object(call)
    was_cpu = scope is not None and scope.fields.get(_BEFORE) == TRUE
    choose(call.state, call.text("framework"), const("cpu" if was_cpu else "gpu"))
    return [(call.state, NONE)]
