"""What programs register with a server: tasks, hooks, handlers."""

from __future__ import annotations

from collections.abc import Iterator

from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import Closure, Instance, LibraryObject
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Bound, Lib, Partial, Ref, Value, only, unknown
from cudalint.structs import replace

_REGISTRY = Ref(("server registry",))


def keep_handler(state: State, kind: str, site: Site, function: Value) -> None:
    """Keep a handler with the place that names it."""
    found = state.get(_REGISTRY)
    fields = found.fields if isinstance(found, LibraryObject) else {}
    key = f"{kind} {site.module} {site.ordinal}"
    state.store(_REGISTRY, LibraryObject("cudalint.registry", {**fields, key: function}, site))


def forget_handler(state: State, kind: str, function: Value) -> None:
    """Keep a handler no longer, also with what else it was given."""
    found = state.get(_REGISTRY)
    if isinstance(found, LibraryObject):
        fields = {k: v for k, v in found.fields.items() if not (k.startswith(f"{kind} ") and _calls(v, function))}
        state.store(_REGISTRY, replace(found, fields=fields))


def _calls(value: Value, function: Value) -> bool:
    atom = only(value)
    return function in (value, atom.function if isinstance(atom, Partial) else value)


def registered(state: State, kind: str) -> Iterator[tuple[Site, Value]]:
    """The handlers of a kind, each with the place that names it."""
    found = state.get(_REGISTRY)
    for key, value in found.fields.items() if isinstance(found, LibraryObject) else ():
        name, module, ordinal = key.rsplit(" ", 2)
        if name == kind:
            yield Site(module, int(ordinal)), value


def register(machine: Machine, call: Call) -> Results:
    """A decorator, with or without arguments, whose function a server calls later: a task, a hook, a handler."""
    given = call.get(call.text("function")) if call.text("function") else None
    function = called(machine, given or (call.args[0] if call.args else ()), call.state)
    if not is_function(function, call.state):
        return [(call.state, (Bound(Lib(call.path), call.receiver or Lib("cudalint.identity")),))]
    keep_handler(call.state, call.text("kind"), call.site, function)
    if _is_local(function, call.state):
        # Of a function that makes an application nobody sees who calls it, and nobody else can name what lies in it.
        machine.hands_over((function,), call.state, call.frame, call.site)
    return [(call.state, unknown("registered", call.site) if call.text("returns") == "unknown" else function)]


def _is_local(function: Value, state: State) -> bool:
    closure = state.get(atom) if isinstance(atom := only(function), Ref) else None
    return isinstance(closure, Closure) and "<locals>" in closure.address[1]


def called(machine: Machine, value: Value, state: State) -> Value:
    """What a server calls of what it is told: of an object of the program its ``__call__``."""
    atom = only(value)
    found = state.get(atom) if isinstance(atom, Ref) else None
    method = machine.user_method(found, "__call__", state) if isinstance(found, Instance) else None
    return value if method is None or atom is None else (Bound(method, atom),)


def is_function(value: Value, state: State) -> bool:
    """Whether a value is one function, of which the code shows what it runs."""
    atom = only(value)
    return isinstance(atom, Partial | Bound) or (isinstance(atom, Ref) and isinstance(state.get(atom), Closure))
