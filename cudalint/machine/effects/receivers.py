"""What launchers are called on: their library, their context, the object they are methods of."""

from __future__ import annotations

from cudalint.machine.effects.gpu import choices
from cudalint.machine.frame import Call
from cudalint.machine.heap import Instance, LibraryObject
from cudalint.machine.interpreter import Machine
from cudalint.machine.launch.crossing import Pickler
from cudalint.machine.mappings import SELF
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import NONE, Atom, Bound, Ref, Value, const, only, strings
from cudalint.structs import Frozen, replace

_LIBRARIES = frozenset({"multiprocess", "billiard"})


def library_of(call: Call) -> str:
    """The multiprocessing library that a call belongs to: each keeps a default start method of its own."""
    obj = library_object(call)
    if obj is not None and "<library>" in obj.fields:
        return strings(obj.fields["<library>"])[0]
    given = call.text("library")
    root = call.path.split(".")[0]
    return given or (root if root in _LIBRARIES else "multiprocessing")


def pickler_of(machine: Machine, library: str) -> Pickler:
    """How a multiprocessing library pickles functions."""
    return Pickler(machine.library.picklers.get(library, "names"))


def library_object(call: Call) -> LibraryObject | None:
    """The library object that a method is called on."""
    found = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    return found if isinstance(found, LibraryObject) else None


def keep_self(call: Call, made: Value) -> None:
    """Remember the library object that a user's subclass made in its ``__init__``."""
    found = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    if isinstance(call.receiver, Ref) and isinstance(found, Instance):
        call.state.store(call.receiver, replace(found, attributes={**found.attributes, SELF: made}))


def library_self(call: Call) -> Atom | None:
    """What a method of a library is called on, also of a user's subclass."""
    found = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    kept = found.attributes.get(SELF) if isinstance(found, Instance) else None
    return call.receiver if kept is None else only(kept)


CONTEXTS = (
    "mp_context", "context", "multiprocessing_context", "start_method", "mp_start_method",
    "multiprocessing_start_method",
)  # fmt: skip


def context_of(call: Call) -> Value | None:
    """The context object a launcher was taken from or given."""
    obj = library_object(call)
    if obj is not None and "<method>" in obj.fields and isinstance(call.receiver, Ref):
        return (call.receiver,)
    return next((given for name in CONTEXTS if (given := call.get(name))), None)


def method_of(call: Call) -> Value | None:
    """The start method that a library's workers have: what its parameter ``key`` says, else what its model does."""
    told = choices.argument(call, call.text("key")) if call.text("key") else None
    if told is not None and told != NONE:
        return told
    return const(call.text("method")) if call.text("method") else None


class Starter(Frozen):
    """An object that starts something, of a library's class or of a user's subclass, and what it keeps."""

    ref: Ref
    site: Site
    fields: dict[str, Value]
    cls: Ref | None


def starter(atom: Atom | None, state: State) -> Starter | None:
    """A value as an object that starts something."""
    found = state.get(atom) if isinstance(atom, Ref) else None
    match atom, found:
        case Ref(), LibraryObject(fields=fields, site=site):
            return Starter(atom, site, fields, None)
        case Ref(), Instance(attributes=attributes, site=site, cls=cls):
            return Starter(atom, site, attributes, cls)
    return None


# The field of a process that was started and has ended, which was waited for.
JOINED = "<process joined>"


def ended_processes(state: State) -> set[Site]:
    """Where the processes were made that this one has waited for."""
    return {
        found.site
        for found in state.objects()
        if (isinstance(found, LibraryObject) and JOINED in found.fields)
        or (isinstance(found, Instance) and JOINED in found.attributes)
    }


def own_run(machine: Machine, found: Starter, state: State) -> Value | None:
    """The ``run`` that a user's subclass defines, or that an object was given: ``process.run = work``."""
    if (given := found.fields.get("run")) is not None:
        return given
    instance = state.get(found.ref)
    run = machine.user_method(instance, "run", state) if isinstance(instance, Instance) else None
    return None if run is None else (Bound(run, found.ref),)


def initialised(call: Call, fields: dict[str, Value]) -> bool:
    """Whether a call is the ``__init__`` of a user's subclass, whose instance then keeps the fields."""
    found = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    if not isinstance(call.receiver, Ref) or not isinstance(found, Instance):
        return False
    call.state.store(call.receiver, replace(found, attributes={**fields, **found.attributes}))
    return True
