"""What launchers are called on: their library, their context, the object they are methods of."""

from __future__ import annotations

from cudalint.machine.behaviours.crossing import Pickler
from cudalint.machine.frame import Call
from cudalint.machine.heap import Thing
from cudalint.machine.interpret import Machine
from cudalint.machine.values import Ref, Value, strings

_LIBRARIES = frozenset({"multiprocess", "billiard"})


def library_of(call: Call) -> str:
    """The multiprocessing library that a call belongs to: each keeps a default start method of its own."""
    thing = thing_of(call)
    if thing is not None and "<library>" in thing.fields:
        return strings(thing.fields["<library>"])[0]
    given = call.text("library")
    root = call.path.split(".")[0]
    return given or (root if root in _LIBRARIES else "multiprocessing")


def pickler_of(machine: Machine, library: str) -> Pickler:
    """How a multiprocessing library pickles functions."""
    return Pickler(machine.library.picklers.get(library, "names"))


def thing_of(call: Call) -> Thing | None:
    """The library object that a method is called on."""
    found = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    return found if isinstance(found, Thing) else None


def context_of(call: Call) -> Value | None:
    """The context object a launcher was taken from or given."""
    thing = thing_of(call)
    if thing is not None and "<method>" in thing.fields and isinstance(call.receiver, Ref):
        return (call.receiver,)
    return call.get("mp_context") or call.get("context") or call.get("multiprocessing_context")
