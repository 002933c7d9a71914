"""Classes whose instances a server makes: what it calls before anything else, by the library that they derive from."""

from __future__ import annotations

from cudalint.machine import operators
from cudalint.machine.effects.gpu import choices
from cudalint.machine.effects.servers.handlers import registered
from cudalint.machine.effects.servers.lifecycles import made_ready
from cudalint.machine.frame import Call, Frame
from cudalint.machine.heap import Class, Closure, Instance
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import Method, State
from cudalint.machine.trace import Site
from cudalint.machine.values import NONE, Bound, Ref, Value, const, only

# Those that a server knows by what they are called.
_BY_NAME = {"TritonPythonModel": "triton_python_backend_utils.TritonPythonModel"}


def before_method(machine: Machine, instance: Value, method: str, state: State, frame: Frame) -> list[State]:
    """The states in which a server calls a method of an instance that it has made."""
    ref = only(instance)
    found = state.get(ref) if isinstance(ref, Ref) else None
    if not isinstance(ref, Ref) or not isinstance(found, Instance):
        return [state]
    ready = _begun(machine, ref, found, method, state, frame)
    return [after for one in ready for after in _prepared(machine, ref, found, method, one, frame)]


def _begun(machine: Machine, ref: Ref, instance: Instance, method: str, state: State, frame: Frame) -> list[State]:
    """The states after the methods that the program told a server to call first."""
    states = [state]
    for site, function in list(registered(state, "component-first")):
        atom = only(function)
        closure = state.get(atom) if isinstance(atom, Ref) else None
        if not isinstance(atom, Ref) or not isinstance(closure, Closure) or closure.function.name == method:
            continue
        if machine.user_method(instance, closure.function.name, state) != atom:
            continue
        called = [machine.call_value((Bound(atom, ref),), [], {}, one, frame, site) for one in states]
        states = [after for results in called for after, _ in results]
    return states


def _prepared(machine: Machine, ref: Ref, found: Instance, method: str, state: State, frame: Frame) -> list[State]:
    """The states after the method that a server calls first by the library which the class derives from."""
    cls = state.get(found.cls)
    kind = machine.library_base(found.cls, state) or ""
    if isinstance(cls, Class):
        kind = _BY_NAME.get(cls.name, kind)
    spec = machine.library.function(kind)
    if spec is None:
        return made_ready(machine, ref, found, method, state, frame)
    if spec["does"] != "server.component":
        return [state]
    if spec.get("kind") == "spawned":
        # What multiprocessing spawned has that as its own default.
        state.process = state.process.with_method("multiprocessing", Method(("spawn",), None, None))
    first = str(spec.get("method", ""))
    prepare = machine.user_method(found, first, state) if first and first != method else None
    closure = state.get(prepare) if isinstance(prepare, Ref) else None
    if prepare is None or not isinstance(closure, Closure):
        return [state]
    # Called by the server in any case, and not by who calls the method.
    site = Site(closure.module, closure.function.ordinal)
    handed = str(spec.get("hands", ""))
    takes = bool(handed) and len(closure.function.params) > 1
    args = [const(handed)] if takes else []
    return [s for s, _ in machine.call_value((Bound(prepare, ref),), args, {}, state, frame, site)]


def methods_called(call: Call) -> list[Value]:
    """What the first method is handed that a library calls on a component, and the names of them all."""
    handed: Value = const(call.text("hands")) if call.text("hands") else NONE
    named = choices.argument(call, call.text("device")) if call.text("device") else None
    if named is not None and any(device.kind == "cpu" for device in operators.device_of(named)):
        handed = named
    return [handed, *(const(name) for name in call.texts("methods"))]
