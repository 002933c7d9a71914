"""Lists, tuples, sets and dicts: made, changed and read."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

from cudalint.machine import mappings, operators, questions
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import Dict, Generator, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.keys import as_key, of_key
from cudalint.machine.picking import is_choice
from cudalint.machine.state import State
from cudalint.machine.values import (
    NONE,
    Const,
    Dev,
    Lib,
    Ref,
    Unknown,
    Value,
    const,
    constant,
    integer,
    only,
    union,
    unknown,
)

# Methods of sets that give another one.
_GIVE_SETS = frozenset({"union", "intersection", "difference", "symmetric_difference"})


def container(machine: Machine, call: Call) -> Results:
    """``list``, ``tuple``, ``set``, ``sorted``, ``reversed``: a new container of the same elements."""
    kind = call.path.rpartition(".")[2]
    kind = kind if kind in ("list", "tuple", "set") else "list"
    if not call.args:
        return [(call.state, (call.state.new(("container", call.site), Sequence(kind, ())),))]
    results: Results = []
    for state, rounds in machine.iterate(call.args[0], call.state, call.frame, call.site):
        # Of several arguments the first gives elements, and the others say which of them, or give more.
        exact = machine.exact_items(call.args[0], state) if len(call.args) == 1 else None
        items = tuple(exact) if exact is not None else tuple(rounds)
        for after, ordered in _sorting(machine, call, rounds, exact, state):
            made = Sequence(kind, items if ordered is None else ordered, (), exact is None)
            results.append((after, (after.new(("container", call.site), made),)))
    return results


# Longer lists keep the order in which they are known.
_MOST_SORTED = 12


def _sorting(
    machine: Machine, call: Call, items: list[Value], exact: list[Value] | None, state: State
) -> list[tuple[State, tuple[Value, ...] | None]]:
    """The paths on which items were put in order, by their key or as their class compares two of them.

    With each is their new order; None where it is not known.
    """
    key = call.kwargs.get("key", NONE)
    if not items or call.path.rpartition(".")[2] not in ("sorted", "sort"):
        return [(state, None)]
    if exact is not None and len(exact) <= _MOST_SORTED and not call.open:
        return _by_keys(machine, call, key, exact, state)
    if key != NONE:
        return [(after, None) for after, _ in machine.call_value(key, items[:1], {}, state, call.frame, call.site)]
    compared = machine.compare_by_class("<", items[-1], items[0], state, call.frame, call.site)
    return [(after, None) for after, _ in compared or [(state, ())]]


def _by_keys(
    machine: Machine, call: Call, key: Value, items: list[Value], state: State
) -> list[tuple[State, tuple[Value, ...] | None]]:
    """The items by the keys that a function gives for them, or by themselves, where all of these are known."""
    paths: list[tuple[State, list[Value]]] = [(state, [])]
    for item in items if key != NONE else ():
        paths = [
            (after, [*keys, value])
            for current, keys in paths
            for after, value in machine.call_value(key, [item], {}, current, call.frame, call.site)
        ]
    if key == NONE:
        compared = machine.compare_by_class("<", items[-1], items[0], state, call.frame, call.site)
        paths = [(after, items) for after, _ in compared or [(state, ())]]
    return [(after, _ordered(items, [_plain(k, after) for k in keys], call)) for after, keys in paths]


def _ordered(items: list[Value], keys: list[Any], call: Call) -> tuple[Value, ...] | None:
    is_reversed = constant(call.kwargs["reverse"]) if "reverse" in call.kwargs else False
    if ... in keys or not isinstance(is_reversed, bool):
        return None
    try:
        places = sorted(range(len(items)), key=keys.__getitem__, reverse=is_reversed)
    except TypeError:
        return None
    return tuple(items[place] for place in places)


def _plain(value: Value, state: State) -> Any:
    """A number, a text or a tuple of such; an ellipsis for anything else."""
    atom = only(value)
    held = state.get(atom) if isinstance(atom, Ref) else None
    if isinstance(held, Sequence):
        parts = [_plain(part, state) for part in held.items or ()]
        known = held.kind in ("list", "tuple") and held.items is not None and not held.open and ... not in parts
        return tuple(parts) if known else ...
    return atom.value if isinstance(atom, Const) and isinstance(atom.value, int | float | str) else ...


def dict_(machine: Machine, call: Call) -> Results:
    """``dict(a=1)``, ``dict(other)``, ``dict(pairs)``."""
    paths = [(call.state, Dict({}))]
    for value in call.args:
        paths = [
            (after, operators.merged(held, given))
            for state, held in paths
            for after, given in _as_dicts(machine, call, value, state)
        ]
    items: dict[Hashable, Value] = {}
    items.update(call.kwargs)
    named = Dict(items, (), not call.open)
    site = ("mapping", call.site)
    return [(state, (state.new(site, operators.merged(held, named)),)) for state, held in paths]


def _as_dicts(machine: Machine, call: Call, value: Value, state: State) -> list[tuple[State, Dict]]:
    """What another mapping or pairs give to a dict; a generator makes its pairs now."""
    atom = only(value)
    held = mappings.dict_of(atom, state)
    found = None if held is None else state.get(held)
    if isinstance(found, Dict):
        return [(state, replace(found, factory=(), view=None))]
    given = state.get(atom) if isinstance(atom, Ref) else None
    if not isinstance(given, Sequence | Generator):
        return [(state, Dict({}, (), False))]
    made = machine.iterate(value, state, call.frame, call.site)
    return [(after, _of_pairs(machine, machine.exact_items(value, after), rounds, after)) for after, rounds in made]


def _of_pairs(machine: Machine, exact: list[Value] | None, rounds: list[Value], state: State) -> Dict:
    """The dict of pairs; where not all of them are known, it has more keys."""
    held = Dict({}, (), exact is not None)
    for pair in rounds if exact is None else exact:
        parts = machine.exact_items(pair, state)
        if parts is None or len(parts) != 2:
            held = replace(held, exact=False)
        else:
            held = operators.with_key(held, as_key(parts[0], state), parts[1])
    return held


def dict_init(machine: Machine, call: Call) -> Results:
    """``super().__init__(...)`` of a class below dict: its instance holds these items."""
    results: Results = []
    for state, made in dict_(machine, call):
        if isinstance(call.receiver, Ref):
            mappings.hold(call.receiver, made, state)
        results.append((state, NONE))
    return results


def list_init(machine: Machine, call: Call) -> Results:
    """``super().__init__(items)`` of a class below list: its instance holds these items."""
    results: Results = []
    for state, made in container(machine, replace(call, path="builtins.list")):
        if isinstance(call.receiver, Ref):
            mappings.hold(call.receiver, made, state)
        results.append((state, NONE))
    return results


def defaultdict(machine: Machine, call: Call) -> Results:
    """``defaultdict(factory)``."""
    factory, *rest = call.args or [NONE]
    call.args = rest
    results = dict_(machine, call)
    for state, made in results:
        atom = only(made)
        found = state.get(atom) if isinstance(atom, Ref) else None
        if isinstance(atom, Ref) and isinstance(found, Dict) and factory != NONE:
            state.store(atom, replace(found, factory=factory))
    return results


def len_(machine: Machine, call: Call) -> Results:
    """``len`` of what is known exactly."""
    if not call.args:
        return [(call.state, unknown("len", call.site))]
    exact = machine.exact_items(call.args[0], call.state)
    if exact is not None:
        return [(call.state, const(len(exact)))]
    own = machine.special(call.args[0], ("__len__",), [], call.state, call.frame, call.site)
    if own is not None:
        # What an object holds was put there in loops, of which few rounds are run: that it is empty is known at most.
        return [(state, length if integer(length) in (None, 0) else unknown("len", call.site)) for state, length in own]
    atom = only(call.args[0])
    if isinstance(atom, Unknown) and atom.sym == questions.EVERY_GPU:
        return [(call.state, questions.DEVICES)]
    return [(call.state, unknown("len", atom if isinstance(atom, Unknown) else call.site))]


def set_item(machine: Machine, call: Call) -> Results:
    """``operator.setitem(x, key, value)`` and ``operator.delitem(x, key)``."""
    match call.args:
        case [owner, key, value]:
            states = machine.set_item(owner, key, value, call.state, call.frame, call.site)
        case [owner, key]:
            states = machine.delete_item(owner, key, call.state, call.frame, call.site)
        case _:
            states = [call.state]
    return [(state, NONE) for state in states]


def list_method(machine: Machine, call: Call) -> Results:
    """``append``, ``extend`` and the other methods of lists and sets."""
    name = call.path.rpartition(".")[2]
    ref = call.receiver
    found = call.state.get(ref) if isinstance(ref, Ref) else None
    if not isinstance(ref, Ref) or not isinstance(found, Sequence):
        return [(call.state, unknown("list", call.site))]
    match name:
        case "append" | "add" | "appendleft":
            longer = operators.append(found, call.args[0] if call.args else NONE)
            # A loop that stands for more rounds puts more there.
            is_open = longer.open or machine.grows_on(ref)
            call.state.store(ref, replace(longer, open=is_open))
            return [(call.state, NONE)]
        case "extend" | "update":
            if not call.args:
                return [(call.state, NONE)]
            results: Results = []
            for state, rounds in machine.iterate(call.args[0], call.state, call.frame, call.site):
                exact = machine.exact_items(call.args[0], state)
                grown = operators.extend(found, exact if exact is not None else rounds)
                state.store(ref, grown if exact is not None else replace(grown, open=True))
                results.append((state, NONE))
            return results
        case "pop" | "popleft" if (place := _taken(machine, call, found, ref)) is not None:
            kept = tuple(value for i, value in enumerate(found.items or ()) if i != place)
            call.state.store(ref, replace(found, items=kept))
            return [(call.state, (found.items or ())[place])]
        case "remove" | "discard" if (place := _place_of(machine, call, found, ref)) is not None:
            kept = tuple(value for i, value in enumerate(found.items or ()) if i != place)
            call.state.store(ref, replace(found, items=kept))
            return [(call.state, NONE)]
        case "pop" | "popleft":
            element = union([*(found.items or ()), found.element])
            return [(call.state, element or unknown("pop", call.site))]
        case "sort":
            items = machine.elements((ref,), call.state)
            exact = None if found.open or machine.grows_on(ref) else machine.exact_items((ref,), call.state)
            results = []
            for after, ordered in _sorting(machine, call, items, exact, call.state):
                if ordered is not None:
                    after.store(ref, replace(found, items=ordered))
                results.append((after, NONE))
            return results
        case "copy":
            return [(call.state, (call.state.new(("copy", call.site), found),))]
        case "clear":
            call.state.store(ref, Sequence(found.kind, ()))
        case _ if found.kind == "set" and name in _GIVE_SETS:
            held = [machine.elements(value, call.state) for value in ((ref,), *call.args)]
            made = Sequence("set", None, union([v for values in held for v in values]))
            return [(call.state, (call.state.new(("set", call.site), made),))]
    return [(call.state, unknown("list", name, call.site))]


def _taken(machine: Machine, call: Call, found: Sequence, ref: Ref) -> int | None:
    """The place from which ``pop`` takes an item of a list that is known whole; None where that is not known."""
    if not found.items or found.open or found.kind == "set" or machine.grows_on(ref):
        return None
    at = 0 if call.path.endswith("popleft") else integer(call.args[0]) if call.args else -1
    return at % len(found.items) if at is not None and -len(found.items) <= at < len(found.items) else None


def _place_of(machine: Machine, call: Call, found: Sequence, ref: Ref) -> int | None:
    """The place of the item that ``remove`` takes away; None where that is not known."""
    wanted = only(call.args[0]) if call.args else None
    if not found.items or found.open or machine.grows_on(ref) or wanted is None:
        return None
    for i, value in enumerate(found.items):
        if value == (wanted,):
            return i
        if not isinstance(only(value), Const | Lib | Ref | Dev):
            return None
    return None


def dict_method(machine: Machine, call: Call) -> Results:
    """``get``, ``items`` and the other methods of dicts."""
    name = call.path.rpartition(".")[2]
    if call.receiver is None and call.args:
        # dict.get(config, name), as classes below dict do it.
        call.receiver, call.args = only(call.args[0]), call.args[1:]
    ref = mappings.dict_of(call.receiver, call.state)
    found = None if ref is None else call.state.get(ref)
    if ref is None or not isinstance(found, Dict):
        return [(call.state, unknown("dict", call.site))]
    state = call.state
    match name:
        case "__getitem__":
            return machine.item((ref,), call.args[0] if call.args else NONE, state, call.frame, call.site)
        case "__setitem__" if len(call.args) == 2:
            machine.store_dict(ref, operators.with_key(found, as_key(call.args[0], state), call.args[1]), state)
            return [(state, NONE)]
        case "get" | "setdefault" | "pop":
            key = as_key(call.args[0], state) if call.args else NONE
            if name == "pop":
                machine.store_dict(ref, operators.without_key(found, key), state)
            default = call.args[1] if len(call.args) > 1 else NONE
            if name == "get" and is_choice(found, key):
                return machine.picked(found, key, state, call.site, default)
            value = operators.item(found, key)
            if not value or (not found.exact and constant(key) not in found.items):
                value = union([v for v in (value, default) if v])
            if name == "setdefault" and constant(key) not in found.items:
                machine.store_dict(ref, operators.with_key(found, key, default), state)
            return [(state, value)]
        case "values":
            values = tuple(found.items.values())
            made = Sequence("list", values if found.exact else None, union([*values, found.element]))
            return [(state, (state.new(("values", call.site), made),))]
        case "keys":
            keys = tuple(of_key(k) for k in found.items)
            return [(state, (state.new(("keys", call.site), Sequence("list", keys, (), not found.exact)),))]
        case "items":
            pairs: list[Value] = []
            for i, (key_, value_) in enumerate(found.items.items()):
                pairs.append((state.new(("item", call.site, i), Sequence("tuple", (of_key(key_), value_))),))
            if found.element:
                pair = Sequence("tuple", (unknown("key", call.site), found.element))
                pairs.append((state.new(("item", call.site, "rest"), pair),))
            made = Sequence("list", tuple(pairs), (), not found.exact)
            return [(state, (state.new(("items", call.site), made),))]
        case "update":
            return _update(machine, call, ref, found)
        case "copy":
            return [(state, (state.new(("copy", call.site), replace(found, view=None)),))]
        case "clear":
            machine.store_dict(ref, replace(found, items={}, element=(), exact=True), state)
            return [(state, NONE)]
    return [(state, unknown("dict", name, call.site))]


def _update(machine: Machine, call: Call, ref: Ref, found: Dict) -> Results:
    """``d.update(other, a=1)``: of what nobody knows, each key may have another value since."""
    paths = [(call.state, found)]
    for value in call.args:
        paths = [
            (after, _laid_over(held, given, value, call))
            for state, held in paths
            for after, given in _as_dicts(machine, call, value, state)
        ]
    for state, held in paths:
        items = {**held.items}
        items.update(call.kwargs)
        machine.store_dict(ref, replace(held, items=items, exact=held.exact and not call.open), state)
    return [(state, NONE) for state, _ in paths]


def _laid_over(found: Dict, given: Dict, value: Value, call: Call) -> Dict:
    if given.exact or given.items or given.element:
        return operators.merged(found, given)
    return operators.overlaid(found, value, ("update", call.site))
