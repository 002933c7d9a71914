"""What a program asked to be run whenever its process forks."""

from __future__ import annotations

from cudalint.machine.frame import Frame
from cudalint.machine.heap import Scope
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Ref, Value, union

_HOOKS = Ref(("fork hooks",))
BEFORE, AFTER, IN_CHILD = "before", "after_in_parent", "after_in_child"


def keep(state: State, given: dict[str, Value]) -> None:
    """Remember what runs in this process, and in those that are forked from it."""
    found = state.get(_HOOKS)
    before = found.variables if isinstance(found, Scope) else {}
    kept = {name: union([before.get(name, ()), value]) for name, value in given.items()}
    state.store(_HOOKS, Scope({**before, **kept}, None, "", "fork hooks"))


def run(machine: Machine, state: State, when: str, site: Site) -> None:
    """Run what was asked for; what that does to the process stays, and what it raises Python ignores."""
    found = state.get(_HOOKS)
    for atom in found.variables.get(when, ()) if isinstance(found, Scope) else ():
        inner = Frame(Ref(("module", machine.main)), machine.main)
        results = machine.call_value((atom,), [], {}, state.clone(), inner, site)
        processes = [after.process for after, _ in results]
        if processes and all(process == processes[0] for process in processes):
            state.process = processes[0]


def run_in(machine: Machine, child: State, site: Site) -> State:
    """The child when what was asked for has run there, as far as that went one way: what it raises Python ignores."""
    found = child.get(_HOOKS)
    for atom in found.variables.get(IN_CHILD, ()) if isinstance(found, Scope) else ():
        inner, before = Frame(Ref(("module", machine.main)), machine.main), len(machine.record.outcomes)
        results = machine.call_value((atom,), [], {}, child.clone(), inner, site)
        del machine.record.outcomes[before:]
        if len(results) == 1 and not inner.raises:
            child = results[0][0]
    return child
