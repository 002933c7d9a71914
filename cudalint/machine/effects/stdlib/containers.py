"""Lists, tuples, sets and dicts: made, changed and read."""

from __future__ import annotations

from collections import Counter as Count
from collections.abc import Hashable
from types import EllipsisType
from typing import Any

from cudalint.machine import mappings, operators, questions, sets
from cudalint.machine.effects.stdlib import mixins
from cudalint.machine.effects.stdlib.ranks import ranks
from cudalint.machine.frame import Call, Raised, Results
from cudalint.machine.heap import ANY_NAME, NOTHING_LEFT, TAKEN_OF, ZERO, Dict, Generator, Instance, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.keys import FROZEN, as_key, of_key
from cudalint.machine.picking import is_choice
from cudalint.machine.slices import as_slice
from cudalint.machine.state import State
from cudalint.machine.values import (
    FALSE,
    JOINED,
    NONE,
    TRUE,
    Const,
    Dev,
    Lib,
    Ref,
    Tensor,
    Unknown,
    Value,
    const,
    constant,
    integer,
    only,
    union,
    unknown,
)
from cudalint.structs import replace

_FROZENSET = "builtins.frozenset"
_REVERSED = "builtins.reversed"
_KINDS = {"tuple": "tuple", "set": "set", "frozenset": "set"}


def container(machine: Machine, call: Call) -> Results:
    """``list``, ``tuple``, ``set``, ``sorted``, ``reversed``: a new container of the same elements."""
    kind = call.path.rpartition(".")[2]
    kind = _KINDS.get(kind, "list")
    most = _most(call)
    name = FROZEN if call.path == _FROZENSET else "container"
    if not call.args:
        made = Sequence(kind, () if most is not ... else None, (), False, None if most is ... else most)
        return [(call.state, (call.state.new((name, call.site), made),))]
    if call.path == _REVERSED:
        own = machine.special(call.args[0], ("__reversed__",), [], call.state, call.frame, call.site)
        if own is not None:
            return own
    results: Results = []
    for state, rounds in machine.iterate(call.args[0], call.state, call.frame, call.site):
        # Of several arguments the first gives elements, and the others say which of them, or give more.
        is_whole = len(call.args) == 1 or isinstance(most, int)
        exact = _all_of(machine, call.args[0], state) if is_whole else None
        if exact is not None:
            _drain(machine, call.args[0], state)
        items = tuple(exact) if exact is not None else tuple(rounds)
        items = sets.distinct(items, state) if kind == "set" else items
        for after, ordered in _sorting(machine, call, rounds, exact, state):
            is_of_constants = all(constant(item) is not ... for item in items)
            if ordered is None and _orders(call.path) and (exact is not None or is_of_constants):
                ordered = _of_any_order(items)
            made = _of_most(Sequence(kind, items if ordered is None else ordered, (), exact is None), most)
            is_drained = made.items == () and _has_nothing_left(call.args[0])
            results.append((after, (after.new((NOTHING_LEFT if is_drained else name, call.site), made),)))
    return results


def _has_nothing_left(value: Value) -> bool:
    match value:
        case (Ref(address=((str(made), *_), _, _)),):
            return made == NOTHING_LEFT
    return False


def _drain(machine: Machine, value: Value, state: State) -> None:
    """An iterator of which all is taken has nothing left."""
    atom = only(value)
    found = state.get(atom) if isinstance(atom, Ref) else None
    is_taken_of = isinstance(found, Sequence) and found.kind in TAKEN_OF
    if isinstance(atom, Ref) and isinstance(found, Sequence) and is_taken_of and not machine.grows_on(atom):
        state.store(atom, replace(found, items=()))


def _most(call: Call) -> int | EllipsisType | None:
    """How many items a ``deque`` keeps at most; an ellipsis where that is not known."""
    given = call.kwargs.get("maxlen")
    if given is None or given == NONE:
        return None
    most = integer(given)
    return ... if most is None else most


def _of_most(made: Sequence, most: int | EllipsisType | None) -> Sequence:
    if most is None:
        return made
    if most is ... or made.items is None or made.open:
        return replace(made, items=None, element=union([*(made.items or ()), made.element]), open=False)
    return replace(made, items=made.items[-most:] if most else (), most=most)


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
        return by_keys(machine, call, key, exact, state)
    if key != NONE:
        return [(after, None) for after, _ in machine.call_value(key, items[:1], {}, state, call.frame, call.site)]
    compared = machine.compare_by_class("<", items[-1], items[0], state, call.frame, call.site)
    return [(after, None) for after, _ in compared or [(state, ())]]


def _orders(path: str) -> bool:
    """Whether a function puts what it is given in another order."""
    return path in ("builtins.reversed", "builtins.sorted")


def _of_any_order(items: tuple[Value, ...]) -> tuple[Value, ...]:
    """Items of which nobody knows which comes first: each may be any, where these are few enough to be told."""
    each = union(items)
    return items if JOINED in each or len(items) < 2 else tuple(each for _ in items)


def by_keys(
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
        return _by_class(machine, call, items, state)
    return [(after, _ordered(items, ranks(machine, call, keys, after), call)) for after, keys in paths]


def _by_class(
    machine: Machine, call: Call, items: list[Value], state: State
) -> list[tuple[State, tuple[Value, ...] | None]]:
    """The items as they compare themselves with each other: each is put before the first that is not less."""
    row: list[Value] = []
    for item in items:
        at = len(row)
        while at:
            compared = machine.compare_by_class("<", item, row[at - 1], state, call.frame, call.site)
            if compared is None:
                return [(state, _ordered(items, ranks(machine, call, items, state), call))]
            verdict = machine.truth(compared[0][1], compared[0][0])[0] if len(compared) == 1 else None
            if verdict is None:
                return [(after, None) for after, _ in compared]
            state = compared[0][0]
            if not verdict:
                break
            at -= 1
        row.insert(at, item)
    is_turned = constant(call.kwargs["reverse"]) if "reverse" in call.kwargs else False
    return [(state, None if is_turned is not False else tuple(row))]


def _ordered(items: list[Value], keys: list[Any] | None, call: Call) -> tuple[Value, ...] | None:
    is_reversed = constant(call.kwargs["reverse"]) if "reverse" in call.kwargs else False
    if keys is None or not isinstance(is_reversed, bool):
        return None
    try:
        places = sorted(range(len(items)), key=keys.__getitem__, reverse=is_reversed)
    except TypeError:
        return None
    return tuple(items[place] for place in places)


def dict_(machine: Machine, call: Call) -> Results:
    """``dict(a=1)``, ``dict(other)``, ``dict(pairs)``."""
    paths = [(call.state, Dict({}))]
    for value in call.args:
        paths = [
            (after, operators.merged(held, given))
            for state, held in paths
            for after, given in _as_dicts(machine, call, value, state)
        ]
    site = ("mapping", call.site)
    return [(state, (state.new(site, _with_named(held, call)),)) for state, held in paths]


def _with_named(held: Dict, call: Call) -> Dict:
    """A dict with what a call names, ``a=1, **rest``: of the rest nothing is known."""
    items: dict[Hashable, Value] = {}
    items.update(call.kwargs)
    below = operators.overlaid(held, (), ("named", call.site)) if call.open else held
    return operators.merged(below, Dict(items))


def chained(machine: Machine, call: Call) -> Results:
    """``ChainMap(options, defaults)``: what the first mapping says that has a name; what is put there goes into it."""
    results = dict_(machine, replace(call, args=call.args[::-1]))
    for state, made in results:
        atom, first = only(made), mappings.dict_of(only(call.args[0]), state) if call.args else None
        found = state.get(atom) if isinstance(atom, Ref) else None
        if isinstance(atom, Ref) and isinstance(found, Dict):
            state.store(atom, replace(found, view=first))
    return results


def _as_dicts(machine: Machine, call: Call, value: Value, state: State) -> list[tuple[State, Dict]]:
    """What another mapping or pairs give to a dict; a generator makes its pairs now."""
    atom = only(value)
    held = mappings.dict_of(atom, state)
    found = None if held is None else state.get(held)
    if isinstance(found, Dict):
        return [(state, replace(found, factory=(), view=None))]
    given = state.get(atom) if isinstance(atom, Ref) else None
    if isinstance(given, Instance) and _has_keys(machine, given, state):
        return [
            (after, _of_known(pairs, is_whole, after))
            for after, pairs, is_whole in mixins.pairs_of(machine, call, value, state)
        ]
    if not isinstance(given, Sequence | Generator):
        return [(state, operators.overlaid(Dict({}), value, ("dict", call.site)))]
    made = machine.iterate(value, state, call.frame, call.site)
    return [(after, _of_pairs(machine, machine.exact_items(value, after), rounds, after)) for after, rounds in made]


def _has_keys(machine: Machine, instance: Instance, state: State) -> bool:
    """Whether an object is taken for a mapping, as its class, or an abstract one of Python above it, has ``keys()``."""
    if machine.user_method(instance, "keys", state) is not None:
        return True
    base = machine.library_base(instance.cls, state)
    return base is not None and base.rpartition(".")[2] in ("Mapping", "MutableMapping")


def _of_known(pairs: list[tuple[Value, Value]], is_whole: bool, state: State) -> Dict:
    held = Dict({}, (), is_whole)
    for key, value in pairs:
        held = operators.with_key(held, as_key(key, state), value)
    return held


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


def wrapper_init(machine: Machine, call: Call) -> Results:
    """``super().__init__(...)`` of a class below UserDict: each item is put there as its class says."""
    found = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    if isinstance(found, Instance) and machine.user_method(found, "__setitem__", call.state) is not None:
        return mixins.update(machine, call)
    return dict_init(machine, call)


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


def counter(machine: Machine, call: Call) -> Results:
    """``Counter(items)``: how often each is there."""
    state = call.state
    given = only(call.args[0]) if call.args else None
    held = state.get(given) if isinstance(given, Ref) else None
    if isinstance(given, Const) and isinstance(given.value, str):
        items: list[Value] | None = [const(letter) for letter in given.value]
    else:
        items = machine.exact_items(call.args[0], state) if call.args else []
    counts: dict[Hashable, Value] = dict(call.kwargs.items())
    is_exact = not call.open
    if isinstance(held, Dict):
        counts.update(held.items)
        is_exact = is_exact and held.exact and not held.element
    elif items is not None and all(constant(item) is not ... for item in items):
        times = Count(constant(item) for item in items)
        counts.update((key, const(number)) for key, number in times.items())
    else:
        is_exact = False
    element = () if is_exact else unknown("count", call.site)
    return [(state, (state.new(("counter", call.site), Dict(counts, element, is_exact, ZERO)),))]


def _of_counter(call: Call, name: str, ref: Ref, found: Dict, machine: Machine) -> Results | None:
    """What a ``Counter`` does that other dicts do in another way, or do not."""
    state = call.state
    if name in ("update", "subtract", "elements"):
        machine.store_dict(ref, Dict({}, unknown("count", call.site), False, ZERO), state)
        return [(state, NONE)]
    if name not in ("most_common", "total"):
        return None
    counts = {key: integer(value) for key, value in found.items.items()}
    numbers = [number for number in counts.values() if number is not None]
    if not found.exact or len(numbers) < len(counts):
        return [(state, unknown("counter", name, call.site))]
    if name == "total":
        return [(state, const(sum(numbers)))]
    most = integer(call.args[0]) if call.args else len(counts)
    rows = sorted(counts, key=lambda key: -(counts[key] or 0))[:most]
    pairs: list[Value] = [
        (state.new(("most", call.site, i), Sequence("tuple", (of_key(key), found.items[key]))),)
        for i, key in enumerate(rows)
    ]
    return [(state, (state.new(("most", call.site), Sequence("list", tuple(pairs))),))]


def len_(machine: Machine, call: Call) -> Results:
    """``len`` of what is known exactly."""
    if not call.args:
        return [(call.state, unknown("len", call.site))]
    exact = machine.exact_items(call.args[0], call.state)
    if exact is not None and _are_distinct(call.args[0], exact, call.state):
        return [(call.state, const(len(exact)))]
    own = machine.special(call.args[0], ("__len__",), [], call.state, call.frame, call.site)
    if own is not None:
        # What an object holds was put there in loops, of which few rounds are run: that it is empty is known at most.
        return [(state, length if integer(length) in (None, 0) else unknown("len", call.site)) for state, length in own]
    atom = only(call.args[0])
    if isinstance(atom, Unknown) and atom.sym == questions.EVERY_GPU:
        return [(call.state, questions.DEVICES)]
    return [(call.state, unknown("len", atom if isinstance(atom, Unknown) else call.site))]


def _are_distinct(container: Value, items: list[Value], state: State) -> bool:
    """Whether a container has as many items as are known: some of a set may be equal."""
    atom = only(container)
    found = state.get(atom) if isinstance(atom, Ref) else None
    is_set = isinstance(found, Sequence) and found.kind == "set"
    return not is_set or len(items) < 2 or sets.keys(items, state) is not None


def slice_(machine: Machine, call: Call) -> Results:
    """``slice(start, stop, step)``: what stands between brackets."""
    follows = unknown("follows", call.path, *call.args)
    if not call.args or call.kwargs or call.open:
        return [(call.state, follows)]
    given = [() if value == NONE else value for value in call.args]
    bounds = [(), *given] if len(given) == 1 else given
    key = as_slice((*bounds, (), ())[:3], follows)
    return [(call.state, key)]


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
        case "__getitem__" if call.args:
            return machine.item((ref,), call.args[0], call.state, call.frame, call.site)
        case "appendleft" | "insert":
            at, value = (0, call.args[:1]) if name == "appendleft" else (integer(call.args[0]), call.args[1:2])
            call.state.store(ref, _inserted(found, None if machine.grows_on(ref) else at, value[0] if value else NONE))
            return [(call.state, NONE)]
        case "append" | "add":
            return _added(machine, call, name, ref, found)
        case "extend" | "update":
            return _extended(machine, call, ref, found)
        case "pop" | "popleft" if (place := _taken(machine, call, found, ref)) is not None:
            kept = tuple(value for i, value in enumerate(found.items or ()) if i != place)
            call.state.store(ref, replace(found, items=kept))
            return [(call.state, (found.items or ())[place])]
        case "pop" | "popleft" if call.frame.tries and _is_empty(machine, ref, found):
            return _refused(machine, call, "KeyError" if found.kind == "set" else "IndexError")
        case "remove" | "discard":
            return _without(machine, call, name, ref, found)
        case "pop" | "popleft":
            element = union([*(found.items or ()), found.element])
            return [(call.state, element or unknown("pop", call.site))]
        case "index" | "count":
            return _counted(machine, call, name, found, ref)
        case "reverse" if found.items is not None and not found.open and not machine.grows_on(ref):
            call.state.store(ref, replace(found, items=found.items[::-1]))
            return [(call.state, NONE)]
        case "reverse" | "rotate" | "extendleft":
            more = machine.elements(call.args[0], call.state) if name == "extendleft" and call.args else []
            call.state.store(ref, _in_any_order(found, more))
            return [(call.state, NONE)]
        case "sort":
            return _sorted_in_place(machine, call, ref, found)
        case "copy":
            return [(call.state, (call.state.new(("copy", call.site), found),))]
        case "clear":
            call.state.store(ref, replace(found, items=(), element=(), open=False))
            return [(call.state, NONE)]
        case _ if found.kind == "set" and name in _OF_SETS:
            return _set_method(machine, call, name, ref, found)
    return [(call.state, unknown("list", name, call.site))]


def _added(machine: Machine, call: Call, name: str, ref: Ref, found: Sequence) -> Results:
    """``append``, and ``add`` of a set, which holds nothing twice."""
    given = call.args[0] if call.args else NONE
    if name == "add" and call.frame.tries and machine.refuses_hash(given, call.state):
        return _refused(machine, call, "TypeError")
    if name == "add" and _has(found, given, call.state):
        return [(call.state, NONE)]
    longer = operators.append(found, given)
    # A loop that stands for more rounds puts more there.
    is_open = longer.open or machine.grows_on(ref)
    call.state.store(ref, replace(longer, open=is_open))
    return [(call.state, NONE)]


def _extended(machine: Machine, call: Call, ref: Ref, found: Sequence) -> Results:
    """``extend``, and ``update`` of a set."""
    if not call.args:
        return [(call.state, NONE)]
    results: Results = []
    for state, rounds in machine.iterate(call.args[0], call.state, call.frame, call.site):
        exact = machine.exact_items(call.args[0], state)
        grown = found if exact == [] else operators.extend(found, exact if exact is not None else rounds)
        if found.kind == "set" and grown.items is not None:
            grown = replace(grown, items=sets.distinct(grown.items, state))
        state.store(ref, grown if exact is not None else replace(grown, open=True))
        results.append((state, NONE))
    return results


def _sorted_in_place(machine: Machine, call: Call, ref: Ref, found: Sequence) -> Results:
    """``sort``: where the order is not known, a list that is known whole has its items in any."""
    items = machine.elements((ref,), call.state)
    exact = None if found.open or machine.grows_on(ref) else machine.exact_items((ref,), call.state)
    results: Results = []
    for after, ordered in _sorting(machine, call, items, exact, call.state):
        if ordered is None and exact is not None and found.items is not None:
            ordered = _of_any_order(found.items)
        if ordered is not None:
            after.store(ref, replace(found, items=ordered))
        results.append((after, NONE))
    return results


def _is_empty(machine: Machine, ref: Ref, found: Sequence) -> bool:
    return found.items == () and not found.open and not machine.grows_on(ref)


def _has(found: Sequence, value: Value, state: State) -> bool:
    """Whether a set is known to hold this."""
    return found.items is not None and len(sets.distinct((*found.items, value), state)) <= len(found.items)


_OF_SETS = frozenset({*sets.METHODS, *sets.IN_PLACE, *sets.ASKED})


def _set_method(machine: Machine, call: Call, name: str, ref: Ref, found: Sequence) -> Results:
    """What a set gives that it shares with others, becomes by them, or says of them."""
    state = call.state
    others = [_all_of(machine, value, state) for value in call.args]
    if name in sets.ASKED:
        verdict = sets.compared(sets.ASKED[name], sets.values_of(found), others[0], state) if others else None
        if verdict is None or machine.grows_on(ref):
            return [(state, unknown("set", name, call.site))]
        return [(state, const(verdict is not (name == "isdisjoint")))]
    made = sets.combined(sets.METHODS.get(name) or sets.IN_PLACE[name], found, others, state)
    if name in sets.METHODS:
        return [(state, (state.new(("set", call.site), made),))]
    state.store(ref, replace(made, open=made.open or machine.grows_on(ref)))
    return [(state, NONE)]


def _all_of(machine: Machine, value: Value, state: State) -> list[Value] | None:
    atom = only(value)
    held = mappings.dict_of(atom, state)
    return sets.values_of(state.get(held)) if held is not None else machine.exact_items(value, state)


def _taken(machine: Machine, call: Call, found: Sequence, ref: Ref) -> int | None:
    """The place from which ``pop`` takes an item of a list that is known whole; None where that is not known."""
    if not found.items or found.open or machine.grows_on(ref) or (found.kind == "set" and len(found.items) > 1):
        return None
    at = 0 if call.path.endswith("popleft") else integer(call.args[0]) if call.args else -1
    return at % len(found.items) if at is not None and -len(found.items) <= at < len(found.items) else None


def _place_of(found: Sequence, value: Value) -> int | None:
    """The first place of an item in a list that is known whole; -1 where it is not there, None where nobody knows."""
    for i, held in enumerate(found.items or ()):
        one, two = only(held), only(value)
        is_same = one == two and one not in (None, JOINED)
        if is_same or (isinstance(one, Const) and isinstance(two, Const) and one.value == two.value):
            return i
        if not isinstance(one, Const | Lib | Ref | Dev) or two is None:
            return None
    return -1


def _without(machine: Machine, call: Call, name: str, ref: Ref, found: Sequence) -> Results:
    """``remove`` and ``discard``; where it is not known which item that is, it may be any."""
    is_whole = found.items is not None and not found.open and not machine.grows_on(ref)
    place = _place_of(found, call.args[0]) if is_whole and call.args else None
    if place == -1 and name == "remove" and call.frame.tries:
        return _refused(machine, call, "KeyError" if found.kind == "set" else "ValueError")
    if place is None:
        call.state.store(ref, _in_any_order(found, []))
    elif place >= 0:
        items = found.items or ()
        call.state.store(ref, replace(found, items=(*items[:place], *items[place + 1 :])))
    return [(call.state, NONE)]


def _in_any_order(found: Sequence, more: list[Value]) -> Sequence:
    """What a list holds of which the order, or the number, is not known any more."""
    return replace(found, items=None, element=union([*(found.items or ()), found.element, *more]), open=False)


def _inserted(found: Sequence, at: int | None, value: Value) -> Sequence:
    if found.items is None or at is None or (found.open and at != 0):
        return _in_any_order(found, [value])
    if found.open or len(found.items) >= operators.MOST_KEPT:
        return replace(found, items=(value, union(found.items)) if found.items else (value,), open=True)
    if found.most is not None and len(found.items) >= found.most:
        return replace(found, items=(value, *found.items)[: found.most])
    at = max(0, at + len(found.items)) if at < 0 else at
    return replace(found, items=(*found.items[:at], value, *found.items[at:]))


def _counted(machine: Machine, call: Call, name: str, found: Sequence, ref: Ref) -> Results:
    """``row.index(x)`` and ``row.count(x)``."""
    is_whole = found.items is not None and not found.open and not machine.grows_on(ref) and len(call.args) == 1
    place = _place_of(found, call.args[0]) if is_whole else None
    if name == "index" and place == -1 and call.frame.tries:
        return _refused(machine, call, "ValueError")
    if name == "index" and place is not None and place >= 0:
        return [(call.state, const(place))]
    if name == "count" and place is not None and constant(call.args[0]) is not ...:
        held = [constant(item) for item in found.items or ()]
        if ... not in held:
            return [(call.state, const(held.count(constant(call.args[0]))))]
    return [(call.state, unknown("list", name, call.site))]


def _refused(machine: Machine, call: Call, name: str) -> Results:
    """What is asked of a container that does not have it fails, where something waits for that."""
    names = (name, "LookupError") if name in ("IndexError", "KeyError") else (name,)
    return machine.fail(call.state, call.frame, Raised(None, names))


def dict_method(machine: Machine, call: Call) -> Results:
    """``get``, ``items`` and the other methods of dicts."""
    name = call.path.rpartition(".")[2]
    if call.receiver is None and call.args and name != "fromkeys":
        # dict.get(config, name), as classes below dict do it.
        call.receiver, call.args = only(call.args[0]), call.args[1:]
    if name == "fromkeys" and call.args:
        return _from_keys(machine, call)
    ref = mappings.dict_of(call.receiver, call.state)
    found = None if ref is None else call.state.get(ref)
    if ref is None or not isinstance(found, Dict):
        return [(call.state, unknown("dict", call.site))]
    state = call.state
    if found.factory == ZERO and (own := _of_counter(call, name, ref, found, machine)) is not None:
        return own
    match name:
        case "__getitem__":
            return machine.item((ref,), call.args[0] if call.args else NONE, state, call.frame, call.site)
        case "__setitem__" if len(call.args) == 2:
            machine.store_dict(ref, operators.with_key(found, as_key(call.args[0], state), call.args[1]), state)
            return [(state, NONE)]
        case "get" | "setdefault" | "pop":
            return _or_default(machine, call, name, ref, found)
        case "values":
            values = tuple(found.items.values())
            made = Sequence("list", values if found.exact else None, union([*values, found.element]))
            return [(state, (state.new(("values", call.site), made),))]
        case "keys":
            keys = tuple(of_key(k) for k in found.items)
            if not (keys or found.exact):
                keys = (unknown("key", call.site),)
            return [(state, (state.new(("keys", call.site), Sequence("list", keys, (), not found.exact)),))]
        case "items":
            made = Sequence("list", tuple(_pairs_of(found, call)), (), not found.exact)
            return [(state, (state.new(("items", call.site), made),))]
        case "update":
            return _update(machine, call, ref, found)
        case "move_to_end" if (moved := _moved(found, call)) is not None:
            machine.store_dict(ref, moved, state)
            return [(state, NONE)]
        case "popitem" if found.items and found.exact:
            last = next(iter(found.items)) if call.get("last") == FALSE else next(reversed(found.items))
            machine.store_dict(ref, replace(found, items={k: v for k, v in found.items.items() if k != last}), state)
            row = Sequence("tuple", (of_key(last), found.items[last]))
            return [(state, (state.new(("item", call.site), row),))]
        case "copy":
            return [(state, (state.new(("copy", call.site), replace(found, view=None)),))]
        case "clear":
            machine.store_dict(ref, replace(found, items={}, element=(), exact=True, among=None), state)
            return [(state, NONE)]
    return [(state, unknown("dict", name, call.site))]


def _or_default(machine: Machine, call: Call, name: str, ref: Ref, found: Dict) -> Results:
    """``get``, ``setdefault`` and ``pop``: an item, or what is given in its place."""
    state = call.state
    key = as_key(call.args[0], state) if call.args else NONE
    if name == "pop" and len(call.args) == 1 and call.frame.tries and operators.lacks(found, key):
        return _refused(machine, call, "KeyError")
    if name == "pop":
        machine.store_dict(ref, operators.without_key(found, key), state)
    default = call.args[1] if len(call.args) > 1 else NONE
    if name == "get" and is_choice(found, key):
        return machine.picked(found, key, state, call.site, default)
    if machine.record.offers.made:
        machine.record.offers.look_up(key, found)
    value = operators.item(found, key)
    is_certain = found.exact or constant(key) in found.items or operators.is_laid_over(value)
    if not value or not is_certain:
        value = union([v for v in (value, default) if v])
    if name == "setdefault" and constant(key) not in found.items:
        machine.store_dict(ref, operators.with_key(found, key, default), state)
    return [(state, value)]


def _pairs_of(found: Dict, call: Call) -> list[Value]:
    """The keys of a dict with their values, and one pair for all that is not known of it."""
    pairs: list[Value] = []
    for i, (key, value) in enumerate(found.items.items()):
        pairs.append((call.state.new(("item", call.site, i), Sequence("tuple", (of_key(key), value))),))
    if found.element or not (pairs or found.exact):
        value = found.element or unknown("value", call.site)
        pair = Sequence("tuple", (unknown("key", call.site), value))
        pairs.append((call.state.new(("item", call.site, "rest"), pair),))
    return pairs


def _from_keys(machine: Machine, call: Call) -> Results:
    """``dict.fromkeys(names, value)``."""
    given, value = call.args[0], call.args[1] if len(call.args) > 1 else NONE
    results: Results = []
    for state, rounds in machine.iterate(given, call.state, call.frame, call.site):
        exact = machine.exact_items(given, state)
        made = Dict({}, (), exact is not None)
        for key in rounds if exact is None else exact:
            made = operators.with_key(made, as_key(key, state), value)
        results.append((state, (state.new(("mapping", call.site), made),)))
    return results


def _moved(found: Dict, call: Call) -> Dict | None:
    """An ordered dict in which one key stands last now, or first."""
    key = constant(as_key(call.args[0], call.state)) if call.args else ...
    if key is ... or key not in found.items:
        return None
    is_last = call.kwargs.get("last", call.args[1] if len(call.args) > 1 else TRUE)
    rest = {k: v for k, v in found.items.items() if k != key}
    own = {key: found.items[key]}
    if is_last not in (TRUE, FALSE):
        return None
    return replace(found, items={**rest, **own} if is_last == TRUE else {**own, **rest})


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
        machine.store_dict(ref, _with_named(held, call), state)
        _fill(found, call, state)
    return [(state, NONE) for state, _ in paths]


def _fill(names: Dict, call: Call, state: State) -> None:
    """``self.__dict__.update(torch.load(path))``: the object has what lies on a GPU under names that are not seen."""
    owner = state.get(names.view) if names.view is not None else None
    loaded = tuple(atom for value in call.args for atom in value if isinstance(atom, Tensor) and atom.device.is_gpu)
    if names.view is not None and isinstance(owner, Instance) and loaded:
        state.store(names.view, replace(owner, attributes={**owner.attributes, ANY_NAME: loaded}))


def _laid_over(found: Dict, given: Dict, value: Value, call: Call) -> Dict:
    if given.exact or given.items or given.element:
        return operators.merged(found, given)
    return operators.overlaid(found, value, ("update", call.site))
