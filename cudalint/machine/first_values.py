"""What the variables of a module held when it had been imported: ``from module import x`` takes that, and no later x.

Modules are run when something of them is used, which may be long after a program imported from them.
"""

from __future__ import annotations

from cudalint.machine.heap import Scope
from cudalint.machine.state import State
from cudalint.machine.values import Ref, Value


def keep(module: Ref, name: str, state: State) -> None:
    """Remember what a variable holds that is about to be changed by a function, or from outside."""
    found = state.get(module)
    if not isinstance(found, Scope) or found.kind != "module" or name not in found.variables:
        return
    ref = _place(found.module)
    held = state.get(ref)
    if not isinstance(held, Scope):
        state.store(ref, Scope({name: found.variables[name]}, None, found.module, "first values"))
    elif name not in held.variables:
        state.set_variable(ref, name, found.variables[name])


def forget(module: str, state: State) -> None:
    """A module has been imported: what its variables held before counts no more."""
    if state.get(_place(module)) is not None:
        state.store(_place(module), Scope({}, None, module, "first values"))


def of(module: Scope, name: str, state: State) -> Value | None:
    """What a variable of a module held first; None where it has none of this name."""
    held = state.get(_place(module.module))
    first = held.variables.get(name) if isinstance(held, Scope) else None
    return module.variables.get(name) if first is None else first


def _place(module: str) -> Ref:
    return Ref(("first values", module))
