"""Functions that go through trees of lists, tuples and dicts, and give a tree of the same form."""

from __future__ import annotations

from collections.abc import Hashable

from cudalint.machine.effects.stdlib.types import is_instance_of_any
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import Dict, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.values import NONE, Ref, Value, only, unknown

# Batches are nested two or three deep.
_DEEPEST = 4


def tree_map(machine: Machine, call: Call) -> Results:
    """``tree_map(function, tree)``: what the function makes of each leaf; of several trees nothing is known.

    Where a type is given, leaves of other types stay.
    """
    function, tree = call.get("function"), call.get("tree")
    if function is None or tree is None or call.open or call.get("others") is not None:
        return [(call.state, unknown("tree", call.site))]
    return _mapped(machine, call, function, tree, call.state, 0)


def _mapped(machine: Machine, call: Call, function: Value, tree: Value, state: State, depth: int) -> Results:
    if tree == NONE or depth > _DEEPEST:
        return [(state, tree if tree == NONE else unknown("tree", call.site))]
    found = state.get(atom) if isinstance(atom := only(tree), Ref) else None
    match found:
        case Sequence(kind="list" | "tuple" as kind, items=tuple(items)):
            rows = _each(machine, call, function, dict(enumerate(items)), state, depth)
            return [(s, _kept(s, call, Sequence(kind, tuple(made.values()), open=found.open))) for s, made in rows]
        case Sequence(kind="list" | "tuple", element=element) if element:
            made = _mapped(machine, call, function, element, state, depth + 1)
            return [(s, _kept(s, call, Sequence(found.kind, None, value))) for s, value in made]
        case Dict(items=entries, element=()):
            tables = _each(machine, call, function, entries, state, depth)
            return [(s, _kept(s, call, Dict(made, exact=found.exact))) for s, made in tables]
    if found is not None:
        return [(state, unknown("tree", call.site))]
    wanted = call.get("kind")
    verdicts = set() if wanted is None else {is_instance_of_any(machine, leaf, wanted, state) for leaf in tree}
    if verdicts == {False}:
        return [(state, tree)]
    if None in verdicts or len(verdicts) > 1:
        return [(state, unknown("tree", call.site))]
    return machine.call_value(function, [tree], {}, state, call.frame, call.site)


def _each(
    machine: Machine, call: Call, function: Value, parts: dict[Hashable, Value], state: State, depth: int
) -> list[tuple[State, dict[Hashable, Value]]]:
    rows: list[tuple[State, dict[Hashable, Value]]] = [(state, {})]
    for key, part in parts.items():
        rows = [
            (after, {**made, key: value})
            for current, made in rows
            for after, value in _mapped(machine, call, function, part, current, depth + 1)
        ]
    return rows


def _kept(state: State, call: Call, made: Sequence | Dict) -> Value:
    return (state.new(("tree", call.site), made),)
