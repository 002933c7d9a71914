"""Library functions that start processes of their own while they run, and wait for them."""

from __future__ import annotations

from cudalint.machine.effects.gpu import choices
from cudalint.machine.frame import Call, Raised, Results
from cudalint.machine.heap import LibraryObject
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch.forbidden import daemon_child
from cudalint.machine.values import Ref, constant
from cudalint.structs import replace

ALWAYS = "always"


def started(machine: Machine, call: Call, results: Results) -> Results:
    """What is left of the results of such a function: a daemon may have no children.

    Its model names what keeps it from starting any: an argument that is false, or 0.
    """
    done: Results = []
    for state, value in results:
        if _is_refused(machine, replace(call, state=state)):
            machine.fail(state, call.frame, Raised(None, ("AssertionError",)))
        else:
            done.append((state, value))
    return done


def _is_refused(machine: Machine, call: Call) -> bool:
    name = call.text("children")
    if choices.idle(machine, call):
        return False
    given = None if name == ALWAYS else choices.argument(call, name)
    if given is None:
        starts = name == ALWAYS or _is_known(call, name.rpartition(".")[0])
    else:
        number = constant(given)
        starts = isinstance(number, int) and number > 0
    return starts and daemon_child(machine, call, call.label)


def _is_known(call: Call, holder: str) -> bool:
    """Whether what would say so is seen, and does not, so that it is the default."""
    given = choices.argument(call, holder) if holder else None
    if given is None:
        return not call.open
    return all(isinstance(atom, Ref) and isinstance(call.state.get(atom), LibraryObject) for atom in given)
