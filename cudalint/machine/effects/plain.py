"""What most functions do: nothing, give an argument back, call one, end the program."""

from __future__ import annotations

from dataclasses import replace

from cudalint.machine.effects.gpu import arrays
from cudalint.machine.frame import Call, Frame, Raised, Results
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import NONE, Atom, Lib, Ref, Tensor, Value, unknown


def nothing(machine: Machine, call: Call) -> Results:
    """A function without effect; its model may say what it returns."""
    if call.spec.get("returns") is None:
        return [(call.state, unknown("call", call.site, call.state.process.identity))]
    return [(call.state, arrays.returned(machine, call, call.state))]


def stop(machine: Machine, call: Call) -> Results:
    """``sys.exit()`` and its like: this path ends."""
    return machine.fail(call.state, call.frame, Raised(None, ("SystemExit",)))


def through(machine: Machine, call: Call) -> Results:
    """A function that gives its first argument back (decorators, identity wrappers)."""
    return [(call.state, call.args[0] if call.args else unknown("through", call.site))]


def decorator_factory(machine: Machine, call: Call) -> Results:
    """``@decorator(option)``: what it returns gives its argument back."""
    if call.args and any(isinstance(a, Ref) for a in call.args[0]):
        return through(machine, call)
    return [(call.state, (Lib("cudalint.identity"),))]


def call_argument(machine: Machine, call: Call) -> Results:
    """A function that calls the function it is given, in this process."""
    function = call.get(call.text("function", "function")) or (call.args[0] if call.args else None)
    if function is None:
        return [(call.state, unknown("call", call.site))]
    args = machine.exact_items(call.get("args") or (), call.state) or list(call.args[1:])
    return machine.call_value(function, args, {}, call.state, call.frame, call.site)


def unmodelled(
    machine: Machine, path: str, args: list[Value], kwargs: dict[str, Value], state: State, frame: Frame, site: Site
) -> Results:
    """A library function that no model names: on arrays it works where they lie, else its result is unknown."""
    framework = machine.library.framework_of(path)
    if framework is not None:
        call = Call(state, frame, site, path, {"framework": framework, "does": "like"}, args, kwargs)
        results = arrays.like(machine, call)
        return [(s, tuple(_object_of(path, a) for a in value)) for s, value in results]
    machine.evaluated[site] += 1
    return [(state, unknown("call", site, state.process.identity, len(state.facts), path))]


def _object_of(path: str, atom: Atom) -> Atom:
    """What a class makes of GPU data is an object of its own that keeps it there, such as an optimizer."""
    name = path.rpartition(".")[2]
    if not isinstance(atom, Tensor) or not name[:1].isupper() or name.endswith(("Tensor", "Variable", "Parameter")):
        return atom
    return replace(atom, type=path)


def identity(machine: Machine, call: Call) -> Results:
    """``f(x)`` that is ``x``."""
    return [(call.state, call.args[0] if call.args else NONE)]
