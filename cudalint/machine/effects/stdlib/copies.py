"""``copy.copy`` and ``copy.deepcopy``: new objects, which can be moved independently of the original."""

from __future__ import annotations

from collections.abc import Hashable

from cudalint.machine import gpu_memory
from cudalint.machine.effects.gpu import cuda
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import Dict, Instance, LibraryObject, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import JOINED, Atom, Bound, Ref, Value, only, unknown
from cudalint.structs import replace

_DEEPEST = 12


def copy(machine: Machine, call: Call) -> Results:
    """One more object, whose parts are those of the first."""
    return _by_hook(machine, call, "__copy__") or _copied(call, 1)


def _by_hook(machine: Machine, call: Call, name: str) -> Results:
    """What the class of an object gives for a copy of it; nothing where it says nothing of that."""
    args = [unknown("memo", call.site)] if name == "__deepcopy__" else []
    given = call.args[0] if call.args else ()
    return machine.special(given, (name,), list(args), call.state, call.frame, call.site) or []


def deepcopy(machine: Machine, call: Call) -> Results:
    """One more object, and one more of all that it holds, for which GPU memory is read."""
    return _by_hook(machine, call, "__deepcopy__") or [
        result
        for one in told(machine, call)
        for result in taken(machine, one, copied_deep(machine, one, "copy.deepcopy()"))
    ]


def copied_deep(machine: Machine, call: Call, what: str) -> Results:
    """A copy of the first argument and of all that it holds, for which ``what`` reads its GPU memory."""
    state: State | None = call.state
    for atom in gpu_memory.tensors_in(call.args[:1], call.state):
        state = None if state is None else cuda.read(machine, atom, state, call.frame, call.site, what)
    return [] if state is None else _copied(replace(call, state=state), _DEEPEST)


def told(machine: Machine, call: Call) -> list[Call]:
    """The same call of what an object is copied by: one with what ``__getstate__`` of its class says it has."""
    atom, instance, hook = _hook(machine, call.args[0] if call.args else (), "__getstate__", call.state)
    if atom is None or instance is None or hook is None:
        return [call]
    calls: list[Call] = []
    for state, value in machine.call_value((Bound(hook, atom),), [], {}, call.state, call.frame, call.site):
        given = state.get(ref) if isinstance(ref := only(value), Ref) else None
        kept = {str(name): part for name, part in given.items.items()} if isinstance(given, Dict) else {}
        made = state.new(("stated", call.site), replace(instance, attributes=kept))
        calls.append(replace(call, state=state, args=[(made,), *call.args[1:]]))
    return calls


def taken(machine: Machine, call: Call, copies: Results) -> Results:
    """Copies that are filled by ``__setstate__`` of their class, where it has that."""
    results: Results = []
    for state, value in copies:
        atom, instance, hook = _hook(machine, value, "__setstate__", state)
        if atom is None or instance is None or hook is None:
            results.append((state, value))
            continue
        items: dict[Hashable, Value] = dict(instance.attributes.items())
        held = state.new(("state", call.site), Dict(items))
        state.store(atom, replace(instance, attributes={}))
        after = machine.call_value((Bound(hook, atom),), [(held,)], {}, state, call.frame, call.site)
        results.extend((filled, value) for filled, _ in after)
    return results


def _hook(machine: Machine, value: Value, name: str, state: State) -> tuple[Ref | None, Instance | None, Ref | None]:
    """An object of the program, and a method by which its class says how it is copied."""
    atom = only(value)
    found = state.get(atom) if isinstance(atom, Ref) else None
    hook = machine.user_method(found, name, state) if isinstance(found, Instance) else None
    if not isinstance(atom, Ref) or not isinstance(found, Instance) or not isinstance(hook, Ref):
        return None, None, None
    return atom, found, hook


def _copied(call: Call, depth: int) -> Results:
    if not call.args:
        return [(call.state, unknown("copy", call.site))]
    return [(call.state, _copies(call.args[0], call.state, call.site, {}, depth))]


def _copies(value: Value, state: State, site: Site, made: dict[Ref, Ref], depth: int) -> Value:
    return tuple(_copy_of(atom, state, site, made, depth) for atom in value)


def _copy_of(atom: Atom, state: State, site: Site, made: dict[Ref, Ref], depth: int) -> Atom:
    if atom == JOINED and depth > 0:
        # Which of many things was copied is not known, but the copy is one thing: what is put into it is found there.
        return unknown("call", site, state.process.identity, "copy")[0]
    if not isinstance(atom, Ref) or depth == 0:
        return atom
    if atom in made:
        return made[atom]
    found = state.get(atom)
    if not isinstance(found, Instance | LibraryObject | Sequence | Dict):
        return atom
    own = made[atom] = state.new(("copy", site, type(found).__name__), found)

    def of(value: Value) -> Value:
        return _copies(value, state, site, made, depth - 1)

    match found:
        case Instance(attributes=attributes):
            state.store(own, replace(found, attributes={name: of(value) for name, value in attributes.items()}))
        case LibraryObject(fields=fields):
            state.store(own, replace(found, fields={name: of(value) for name, value in fields.items()}))
        case Sequence(items=items, element=element):
            parts = None if items is None else tuple(of(value) for value in items)
            state.store(own, replace(found, items=parts, element=of(element)))
        case Dict(items=entries, element=element):
            items_ = {k: of(value) for k, value in entries.items()}
            state.store(own, replace(found, items=items_, element=of(element), view=None))
    return own
