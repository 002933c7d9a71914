"""``graphlib``: tasks in an order in which each comes after what it needs."""

from __future__ import annotations

from collections.abc import Hashable
from graphlib import CycleError, TopologicalSorter

from cudalint.machine.effects.receivers import library_object
from cudalint.machine.frame import Call, Raised, Results
from cudalint.machine.heap import Dict, LibraryObject, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.keys import as_key, of_key
from cudalint.machine.state import State
from cudalint.machine.values import NONE, Ref, Value, constant, only, unknown
from cudalint.structs import replace

_NEEDS = "<needs>"
_Graph = dict[Hashable, tuple[Hashable, ...]]


def sorter(machine: Machine, call: Call) -> Results:
    """``TopologicalSorter(graph)``: what each node needs."""
    state = call.state
    given = call.get("graph") or NONE
    kept = state.new(("needs", call.site), Dict({})) if given == NONE else only(given)
    fields: dict[str, Value] = {} if kept is None else {_NEEDS: (kept,)}
    return [(state, (state.new(("sorter", call.site), LibraryObject(call.path, fields, call.site)),))]


def add(machine: Machine, call: Call) -> Results:
    """``sorter.add(node, *needs)``: one more node, or more that it needs."""
    state, ref = call.state, call.receiver
    obj = library_object(call)
    found = None if obj is None else _held(obj, state)
    if obj is None or not isinstance(ref, Ref) or found is None or not call.args:
        return [(state, NONE)]
    node = constant(as_key(call.args[0], state))
    if node is ... or not found.exact:
        state.store(ref, replace(obj, fields={}))
        return [(state, NONE)]
    before = machine.exact_items(found.items.get(node, ()), state) or []
    needs = state.new(("needs of", call.site, node), Sequence("list", (*before, *call.args[1:])))
    made = Dict({**found.items, node: (needs,)})
    state.store(ref, replace(obj, fields={_NEEDS: (state.new(("needs", call.site), made),)}))
    return [(state, NONE)]


def order(machine: Machine, call: Call) -> Results:
    """``sorter.static_order()``: all nodes, where the graph is known."""
    state, obj = call.state, library_object(call)
    graph = None if obj is None else _graph(machine, obj, state)
    if graph is None:
        return [(state, unknown("order", call.site))]
    try:
        nodes = tuple(TopologicalSorter(graph).static_order())
    except CycleError:
        return machine.fail(state, call.frame, Raised(None, ("CycleError", "ValueError")))
    rows = Sequence("iterator", tuple(map(of_key, nodes)))
    return [(state, (state.new(("order", call.site), rows),))]


def _held(obj: LibraryObject, state: State) -> Dict | None:
    atom = only(obj.fields.get(_NEEDS, ()))
    found = state.get(atom) if isinstance(atom, Ref) else None
    return found if isinstance(found, Dict) else None


def _graph(machine: Machine, obj: LibraryObject, state: State) -> _Graph | None:
    """What each node needs; None where some of that is not known."""
    found = _held(obj, state)
    if found is None or not found.exact:
        return None
    graph: _Graph = {}
    for node, value in found.items.items():
        needs = machine.exact_items(value, state)
        keys = None if needs is None else tuple(constant(as_key(one, state)) for one in needs)
        if keys is None or ... in keys:
            return None
        graph[node] = keys
    return graph
