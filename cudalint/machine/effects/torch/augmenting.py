"""Augmentations that are called with data by names, as those of albumentations."""

from __future__ import annotations

from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import Dict, Instance, LibraryObject
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.values import FALSE, NONE, Atom, Bound, Const, Ref, Value, only, unknown
from cudalint.structs import replace

# What a class of the program changes data of a name by.
_METHODS = {
    "image": "apply",
    "images": "apply_to_images",
    "mask": "apply_to_mask",
    "masks": "apply_to_masks",
    "volume": "apply_to_volume",
}
# The method that is called for a name where its own is not defined.
_FIRST = "apply"
_BY_FIRST = frozenset({"image", "images", "volume"})
# What a transform is asked for before, if its class has it.
_ASKED = "get_params"


def augment(machine: Machine, call: Call) -> Results:
    """``transform(image=x)``: a dict of the same names, in which it has changed what it has a function for."""
    state, chance = call.state, _chance(call)
    if chance == 0:
        return [(state, _as_dict(call, call.kwargs, state))]
    results: Results = []
    for ready in _asked(machine, call):
        paths: list[tuple[State, dict[str, Value]]] = [(ready, {})]
        for name, value in call.kwargs.items():
            paths = [
                (after, {**made, name: changed})
                for current, made in paths
                for after, changed in _changed(machine, replace(call, state=current), name, value)
            ]
        results.extend((after, _as_dict(call, made, after)) for after, made in paths)
    return results


def _chance(call: Call) -> object:
    """How likely it is that it does anything, where that is said."""
    found = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    held: Value = ()
    if isinstance(found, LibraryObject):
        held = found.fields.get("p", ())
    elif isinstance(found, Instance):
        held = found.attributes.get("p", ())
    atom = only(held)
    return atom.value if isinstance(atom, Const) and not isinstance(atom.value, bool) else None


def _asked(machine: Machine, call: Call) -> list[State]:
    """The states after its parameters were drawn."""
    method = _own(machine, call, _ASKED)
    if method is None:
        return [call.state]
    return [after for after, _ in machine.call_value((method,), [], {}, call.state, call.frame, call.site)]


def _changed(machine: Machine, call: Call, name: str, value: Value) -> Results:
    """What becomes of data of this name."""
    function = _function(machine, call, name)
    if not function or value in (NONE, FALSE):
        return [(call.state, value)]
    missing = machine.lacks(function, 1, (), call.state)
    given = {one: unknown("parameter", call.site, one) for one in missing}
    return machine.call_value(function, [value], given, call.state, call.frame, call.site)


def _function(machine: Machine, call: Call, name: str) -> Value:
    """What changes data of a name: a method of the program's class, or what a library's object was given."""
    found = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    if isinstance(found, LibraryObject):
        given = found.fields.get(name, NONE)
        return () if given == NONE else given
    method = _own(machine, call, _METHODS.get(name, ""))
    if method is None and name in _BY_FIRST:
        method = _own(machine, call, _FIRST)
    return () if method is None else (method,)


def _own(machine: Machine, call: Call, method: str) -> Atom | None:
    """A method that the program's class defines."""
    found = call.state.get(call.receiver) if isinstance(call.receiver, Ref) else None
    if not method or not isinstance(found, Instance) or not isinstance(call.receiver, Ref):
        return None
    function = machine.user_method(found, method, call.state)
    return None if function is None else Bound(function, call.receiver)


def in_turn(machine: Machine, call: Call, steps: list[Value]) -> Results:
    """Data through several augmentations, one after the other; one of which nothing is known may give anything."""
    paths: list[tuple[State, dict[str, Value]]] = [(call.state, dict(call.kwargs))]
    for step in steps:
        paths = [
            (after, _laid(made, value, after))
            for current, made in paths
            for after, value in machine.call_value(step, [], made, current, call.frame, call.site)
        ]
    return [(after, _as_dict(call, made, after)) for after, made in paths]


def _laid(data: dict[str, Value], value: Value, state: State) -> dict[str, Value]:
    """The data after an augmentation gave a dict; else as it was."""
    found = state.get(atom) if isinstance(atom := only(value), Ref) else None
    items = found.items if isinstance(found, Dict) else {}
    return {**data, **{name: held for name, held in items.items() if isinstance(name, str)}}


def _as_dict(call: Call, data: dict[str, Value], state: State) -> Value:
    """A dict that may hold more."""
    made = Dict(dict(data.items()), (), exact=False)
    return (state.new(("augmented", call.site), made),)
