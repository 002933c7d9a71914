"""Functions that become methods of classes that exist: ``@patch`` above ``def score(self: Trainer)``."""

from __future__ import annotations

from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import Class, Closure, Scope
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch.arguments import constant_bool
from cudalint.machine.state import State
from cudalint.machine.values import NONE, Lib, Partial, Ref, Value, only
from cudalint.structs import replace

# How the method is kept, by the argument that asks for it.
_KINDS = {"as_prop": "property", "cls_method": "classmethod", "static_method": "staticmethod"}


def patched(machine: Machine, call: Call) -> Results:
    """``@patch``, ``@patch_to(Trainer)``, ``@patch(as_prop=True)``: the class has the function from now on."""
    function, cls = call.get("f") or NONE, call.kwargs.get("cls", ())
    ref = only(function)
    found = call.state.get(ref) if isinstance(ref, Ref) else None
    if not isinstance(found, Closure):
        named = {**call.kwargs, "cls": function} if _is_class(function, call.state) else call.kwargs
        return [(call.state, (Partial((Lib(call.path),), (), tuple(sorted(named.items()))),))]
    first = found.function.params[0].type if found.function.params else ""
    module = call.state.get(Ref(("module", found.module)))
    owner = cls or (module.variables.get(first, ()) if isinstance(module, Scope) else ())
    if not _is_class(owner, call.state):
        return [(call.state, NONE)]
    kind = next((k for name, k in _KINDS.items() if constant_bool(call.kwargs.get(name), False)), found.kind)
    method = call.state.new(("method", call.site), replace(found, kind=kind))
    states = machine.set_attribute(owner, found.function.name, (method,), call.state, call.frame, call.site)
    return [(state, NONE) for state in states]


def _is_class(value: Value, state: State) -> bool:
    atom = only(value)
    return isinstance(atom, Ref) and isinstance(state.get(atom), Class)
