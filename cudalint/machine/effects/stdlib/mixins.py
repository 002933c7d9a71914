"""What the abstract classes of ``collections.abc`` do for their heirs: by the few methods that these define."""

from __future__ import annotations

from cudalint.machine.frame import NO_KEY, Call, Results
from cudalint.machine.heap import Dict, Instance, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.keys import of_key
from cudalint.machine.state import State
from cudalint.machine.values import FALSE, NONE, TRUE, Ref, Value, const, only, unknown

# Of more keys only some are gone through.
_MOST_KEYS = 12


def get(machine: Machine, call: Call) -> Results:
    """``mapping.get(key, default)``: what ``mapping[key]`` is, unless that raises ``KeyError``."""
    key, default = call.get("key"), call.get("default") or NONE
    if key is None:
        return [(call.state, unknown("get", call.site))]
    given, missing = _asked(machine, call, key)
    return [*given, *((state, default) for state in missing)]


def contains(machine: Machine, call: Call) -> Results:
    """``key in mapping``: whether ``mapping[key]`` does not raise ``KeyError``."""
    key = call.args[0] if call.args else NONE
    given, missing = _asked(machine, call, key)
    return [*((state, TRUE) for state, _ in given), *((state, FALSE) for state in missing)]


def set_default(machine: Machine, call: Call) -> Results:
    """``mapping.setdefault(key, default)``."""
    key, default = call.get("key"), call.get("default") or NONE
    if key is None:
        return [(call.state, unknown("setdefault", call.site))]
    given, missing = _asked(machine, call, key)
    put = [after for state in missing for after in _put(machine, call, key, default, state)]
    return [*given, *((state, default) for state in put)]


def pop(machine: Machine, call: Call) -> Results:
    """``mapping.pop(key, default)``: without a default it raises ``KeyError`` where there is no such key."""
    key, default = call.get("key"), call.get("default")
    if key is None:
        return [(call.state, unknown("pop", call.site))]
    given, missing = _asked(machine, call, key)
    results = [(after, value) for state, value in given for after in _drop(machine, call, key, state)]
    if default is not None:
        return [*results, *((state, default) for state in missing)]
    for state in missing:
        machine.fail(state, call.frame, NO_KEY)
    return results


def keys(machine: Machine, call: Call) -> Results:
    """``mapping.keys()``: what the mapping gives when it is gone through."""
    return [(state, _row(call, found, is_whole, state)) for state, found, is_whole in _keys(machine, call)]


def values(machine: Machine, call: Call) -> Results:
    """``mapping.values()`` and ``mapping.items()``: with what ``mapping[key]`` is for each."""
    pairs = call.path.endswith(".items")
    results: Results = []
    for state, found, is_whole in _keys(machine, call):
        for after, row in _taken(machine, call, _own(call), found, state):
            made = [_pair(call, i, key, value, after) for i, (key, value) in enumerate(zip(found, row, strict=True))]
            results.append((after, _row(call, made if pairs else row, is_whole, after)))
    return results


def update(machine: Machine, call: Call) -> Results:
    """``mapping.update(other, **more)``: each key is put there as ``mapping[key] = value`` puts it."""
    states = [call.state]
    for given in call.args[:1]:
        states = [after for state in states for after in _update_from(machine, call, given, state)]
    for name, value in call.kwargs.items():
        states = [after for state in states for after in _put(machine, call, const(name), value, state)]
    return [(state, NONE) for state in states]


def _update_from(machine: Machine, call: Call, given: Value, state: State) -> list[State]:
    atom = only(given)
    found = state.get(atom) if isinstance(atom, Ref) else None
    if isinstance(found, Dict):
        held = [(of_key(key), value) for key, value in found.items.items()]
        ways = [(state, held, found.exact)]
    else:
        ways = pairs_of(machine, call, given, state)
    result: list[State] = []
    for current, pairs, is_whole in ways:
        if not is_whole:
            pairs = [*pairs, (unknown("key", call.site), unknown("value", call.site))]
        states = [current]
        for key, value in pairs:
            states = [after for before in states for after in _put(machine, call, key, value, before)]
        result.extend(states)
    return result


def pairs_of(
    machine: Machine, call: Call, given: Value, state: State
) -> list[tuple[State, list[tuple[Value, Value]], bool]]:
    """The keys that an object gives by ``keys()``, with what it has for each; and whether these are all."""
    held = state.get(atom) if isinstance(atom := only(given), Ref) else None
    if not isinstance(held, Instance):
        return [(state, [], False)]
    result: list[tuple[State, list[tuple[Value, Value]], bool]] = []
    for ready, method in machine.attribute(given, "keys", state, call.frame, call.site):
        for after, row in machine.call_value(method, [], {}, ready, call.frame, call.site):
            exact = _all_keys(machine, row, after)
            known = exact if exact is not None and len(exact) <= _MOST_KEYS else []
            for last, values in _taken(machine, call, given, known, after):
                is_whole = exact is not None and len(known) == len(exact)
                result.append((last, list(zip(known, values, strict=True)), is_whole))
    return result


def _asked(machine: Machine, call: Call, key: Value) -> tuple[Results, list[State]]:
    """What ``mapping[key]`` is, and where it raises ``KeyError``."""
    return machine.attempt(
        "KeyError", lambda: machine.item(_own(call), key, call.state, call.frame, call.site), call.frame
    )


def _put(machine: Machine, call: Call, key: Value, value: Value, state: State) -> list[State]:
    done = machine.special(_own(call), ("__setitem__",), [key, value], state, call.frame, call.site)
    return [state] if done is None else [after for after, _ in done]


def _drop(machine: Machine, call: Call, key: Value, state: State) -> list[State]:
    done = machine.special(_own(call), ("__delitem__",), [key], state, call.frame, call.site)
    return [state] if done is None else [after for after, _ in done]


def _own(call: Call) -> Value:
    return () if call.receiver is None else (call.receiver,)


def _keys(machine: Machine, call: Call) -> list[tuple[State, list[Value], bool]]:
    """The keys of a mapping, and whether these are all."""
    results: list[tuple[State, list[Value], bool]] = []
    for state, given in machine.special(_own(call), ("__iter__",), [], call.state, call.frame, call.site) or ():
        exact = _all_keys(machine, given, state)
        if exact is not None and len(exact) <= _MOST_KEYS:
            results.append((state, exact, True))
            continue
        results += [(after, rounds, False) for after, rounds in machine.iterate(given, state, call.frame, call.site)]
    return results or [(call.state, [unknown("key", call.site)], False)]


def _all_keys(machine: Machine, given: Value, state: State) -> list[Value] | None:
    found = state.get(atom) if isinstance(atom := only(given), Ref) else None
    if isinstance(found, Dict):
        return [of_key(key) for key in found.items] if found.exact else None
    return machine.exact_items(given, state)


def _taken(machine: Machine, call: Call, of: Value, keys: list[Value], state: State) -> list[tuple[State, list[Value]]]:
    """What a mapping has for keys."""
    rows: list[tuple[State, list[Value]]] = [(state, [])]
    for key in keys:
        rows = [
            (after, [*row, value])
            for current, row in rows
            for after, value in machine.item(of, key, current, call.frame, call.site)
        ]
    return rows


def _pair(call: Call, number: int, key: Value, value: Value, state: State) -> Value:
    return (state.new(("item of a mapping", call.site, number), Sequence("tuple", (key, value))),)


def _row(call: Call, row: list[Value], is_whole: bool, state: State) -> Value:
    made = Sequence("list", tuple(row), (), not is_whole)
    return (state.new(("of a mapping", call.site), made),)
