"""Which device the arguments of a library's function choose, by what its model says of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from cudalint.machine import assumptions, operators, questions
from cudalint.machine.assumptions import Asking
from cudalint.machine.frame import Call
from cudalint.machine.heap import Dict, Instance, LibraryObject, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.values import (
    NONE,
    TRUE,
    Atom,
    Const,
    Dev,
    Index,
    Rank,
    Ref,
    Unknown,
    Value,
    const,
    only,
    strings,
    union,
)
from cudalint.structs import replace

# Effects that a device decides on without their models having to say so, by the parameter that names it.
_BY_DEVICE = frozenset({"default-device", "device", "move", "set-device", "tensor"})
_SPREAD = frozenset({"auto", "balanced", "balanced_low_0", "sequential"})
_DEEPEST = 3
_VARIABLE = "os.environ."
# How models say that an argument is an object of a class.
_OBJECT = "<object>"
# Several GPUs by their numbers, as CatBoost takes them: 0:1, 0-3.
_LISTED = re.compile(r"([0-9]+)(?:[:,-][0-9]+)+")


def apart(machine: Machine, call: Call) -> list[Call]:
    """A call once for each answer to whether its device is a GPU, where it is one unless something unknown says else.

    The default of what is asked for by name is what a program does unless it is told otherwise. Of what a mapping was
    laid over it is not known whether it is ever used.
    """
    name = call.text("device") or ("device" if call.text("does") in _BY_DEVICE else "")
    if call.text("does") == "device" and call.get("index") and call.state.process.rank is not None:
        # Among ranks it matters which number it is.
        name = "index"
    value = call.get(name) if name else None
    if value is None or questions.identity(value) is None:
        return [call]
    named = questions.gpu_named(call.state.facts, value)
    if named is not None:
        return [_with(call, name, const(named), call.state)]
    if len(value) < 2:
        return [call]
    left = questions.left_of(call.state.facts, value)
    if left and left != value:
        return [_with(call, name, const("cuda") if _is_no_cpu(left, value) else left, call.state)]
    texts = [(atom, device) for atom in value if (device := _first(operators.device_of((atom,)))) is not None]
    on_gpu = [atom for atom, device in texts if device.is_gpu]
    if not on_gpu:
        return [call]
    question = operators.compare("==", value, _text_of(on_gpu[0]), None)
    truth, sym = machine.truth(question, call.state)
    rest = tuple(atom for atom in value if atom not in on_gpu)
    if truth is not None or sym is None:
        return [_with(call, name, tuple(on_gpu) if truth else rest, call.state)]
    machine.record.asked.setdefault(questions.plain(sym, True)[0], Asking(call.site, None, True, chooses=True))
    if assumptions.is_stand_in(value):
        machine.record.stand_ins.add(questions.plain(sym, True)[0])
    other = call.state.split(sym)
    return [_with(call, name, tuple(on_gpu), call.state), _with(call, name, rest, other)]


def _is_no_cpu(left: Value, value: Value) -> bool:
    """Whether what is left of a device is unknown, and known not to be the CPU that was its default."""
    return const("cpu")[0] in value and all(isinstance(atom, Unknown) for atom in left)


def _text_of(atom: Atom) -> Value:
    return const(operators.device_text(atom)) if isinstance(atom, Dev) else (atom,)


def _with(call: Call, name: str, value: Value, state: State) -> Call:
    """The same call with another argument."""
    if name in call.kwargs:
        return replace(call, state=state, kwargs={**call.kwargs, name: value})
    place = call.params.index(name)
    return replace(call, state=state, args=[*call.args[:place], value, *call.args[place + 1 :]])


def takes_gpu(call: Call) -> bool:
    """Whether a function takes the GPU although it is told of no device.

    What is built on torch does where it sees one, and works on the CPU where a scheduler may have hidden them all.
    """
    of_torch = call.text("framework", "torch") == "torch"
    return call.flag("default-gpu") and not (of_torch and call.state.process.withheld is not None)


def depends(call: Call) -> bool:
    """Whether a model says by which values of other arguments the function chooses the GPU."""
    return "when" in call.spec or "unless" in call.spec


def argument(call: Call, name: str) -> Value | None:
    """What a call is given by a name, or, by ``specs.function``, under a key of the dict or object that it is given.

    ``self.function`` is what its object was given when it was made, ``self.args.workers`` what that holds. A key may
    have dots of its own, as those of settings have. ``os.environ.NAME`` is a variable of the environment.
    """
    if name.startswith(_VARIABLE):
        return call.state.process.environ(name.removeprefix(_VARIABLE))
    holder, _, key = name.partition(".")
    of_self: Value = (call.receiver,) if call.receiver is not None else ()
    given = of_self if holder == "self" else call.get(holder)
    if not key or given is None:
        return given or None
    whole = union(list(_under(key, given, call.state)))
    if whole:
        return whole
    for part in key.split("."):
        given = given and union(list(_under(part, given, call.state)))
    return given or None


def told(call: Call) -> bool:
    """Whether the arguments choose the GPU by themselves, whatever the default is."""
    return chosen(replace(call, spec={**call.spec, "default-gpu": False})) is not None


def chosen(call: Call) -> Dev | None:
    """The device that the arguments name, else the library's default; None where the code does not show it."""
    found = _by_name(call)
    if found is None or not found.is_gpu or found.index is not None or not call.text("device-index"):
        return found
    return replace(found, index=_number(call))


def _number(call: Call) -> Index:
    """The number of the GPU where another parameter says it, or a key of the dicts that this parameter holds."""
    name, _, key = call.text("device-index").partition(".")
    given = call.get(name) or ()
    values = list(_under(key, given, call.state)) if key else [given]
    numbers = {device.index for value in values for device in operators.device_of(value) if device.is_gpu}
    listed = [_LISTED.fullmatch(text) for value in values for text in strings(value)]
    numbers |= {int(found[1]) for found in listed if found}
    if len(numbers) == 1:
        return numbers.pop()
    return Rank("each", derived=True) if any(values) else None


def _under(key: str, value: Value, state: State, depth: int = 0) -> Iterator[Value]:
    """What the dicts of a value, or of the lists and tuples that it may be, hold under a key."""
    for atom in value:
        found = state.get(atom) if isinstance(atom, Ref) and depth < _DEEPEST else None
        if isinstance(found, Dict) and key in found.items:
            yield found.items[key]
        elif isinstance(found, Dict):
            for inner in found.items.values():
                yield from _under(key, inner, state, depth + 1)
        elif isinstance(found, Sequence):
            for inner in (*(found.items or ()), found.element):
                yield from _under(key, inner, state, depth + 1)
        elif isinstance(found, LibraryObject) and key in found.fields:
            yield found.fields[key]


def _by_name(call: Call) -> Dev | None:
    decided = _by_conditions(call)
    if decided is not None:
        return Dev("cuda") if decided else None
    value = _kept_under(call, argument(call, _device(call)))
    if value is not None and value != NONE:
        return Dev("cuda") if value == TRUE else _first(operators.device_of(_of_several(value, call.state)))
    value = _parts_of(call.kwargs.get("device_map"), call.state)
    if value is not None and value != NONE:
        spread = bool(_SPREAD.intersection(strings(value)))
        return Dev("cuda") if spread else _first(operators.device_of(value))
    if call.open:
        return None
    return Dev("cuda") if takes_gpu(call) or _asked_for(call) else None


def _asked_for(call: Call) -> bool:
    """Whether an argument is one of those with which the function takes the GPU without being told of a device."""
    given = ((argument(call, name) or (), values) for name, values in _conditions(call, "default-when"))
    return any(_is_one(atom, values) for value, values in given for atom in _constants(value, call.state))


def _of_several(value: Value, state: State) -> Value:
    """The first of several devices that are named in a list; any other value as it is."""
    found = state.get(atom) if isinstance(atom := only(value), Ref) else None
    if not isinstance(found, Sequence):
        return value
    return found.items[0] if found.items else found.element


def _parts_of(value: Value | None, state: State) -> Value | None:
    """What ``{"": "cuda:0"}`` says of the parts of a model; any other value as it is."""
    found = state.get(atom) if isinstance(atom := only(value or ()), Ref) else None
    return union([*found.items.values(), found.element]) if isinstance(found, Dict) else value


def _kept_under(call: Call, value: Value | None) -> Value | None:
    """What a configuration says of the device under the key that the model names; None where it does not."""
    for part in call.text("device-key").split(".") if value is not None and call.text("device-key") else ():
        found = call.state.get(atom) if isinstance(atom := only(value or ()), Ref) else None
        if isinstance(found, LibraryObject):
            value = found.fields.get(part)
        elif isinstance(found, Dict):
            value = found.items.get(part, NONE if found.exact else (Unknown("config"),))
        elif value is not None:
            return (Unknown("config"),)
    return value


def _first(devices: list[Dev]) -> Dev | None:
    return next((d for d in devices if d.is_gpu), devices[0] if devices else None)


def _device(call: Call) -> str:
    """The parameter that names a device; where other values decide, the model says whether there is one."""
    return call.text("device", "" if depends(call) else "device")


def _by_conditions(call: Call) -> bool | None:
    """Whether what ``when`` and ``unless`` speak of chooses the GPU; None where none of these arguments is given.

    A parameter that also names a device decides here only where its value is one of those that are listed.
    """
    device = _device(call)
    answer: bool | None = None
    for name, wanted in _conditions(call, "when"):
        given = argument(call, name)
        if given is None or given == NONE:
            continue
        if any(_is_one(atom, wanted) for atom in _constants(given, call.state)):
            return True
        if name != device:
            answer = False
    for name, spared in _conditions(call, "unless"):
        given = argument(call, name)
        if given is None or given == NONE:
            continue
        found = list(_constants(given, call.state))
        if not found or all(_is_one(atom, spared) for atom in found):
            return False
        answer = True
    return answer


def is_asked(call: Call) -> bool:
    """Whether an argument is one of those with which alone the model says that the function does what it does."""
    wanted = list(_conditions(call, "when"))
    if not wanted:
        return True
    given = ((argument(call, name) or (), values) for name, values in wanted)
    return any(_is_one(atom, values) for value, values in given for atom in _constants(value, call.state))


def spared(call: Call) -> bool:
    """Whether an argument is one of those with which the model says that the function does not do what it does."""
    for name, values in _conditions(call, "unless"):
        given = call.get(name)
        if given is not None and any(_is_one(atom, values) for atom in _constants(given, call.state)):
            return True
    return False


def idle(machine: Machine, call: Call) -> bool:
    """Whether an argument is certainly one of those with which the model says that the function does nothing.

    False, which TOML has, stands also for None, which it has not, ``"*"`` for all but None, and ``"<object>"`` for what
    is an object of a class, as a model is where its name may stand. So it is where
    ``needed`` names arguments, and none of them is given.
    """
    if _lacks(call):
        return True
    for name, values in _conditions(call, "idle"):
        given = argument(call, name)
        if given is not None and all(_leaves_idle(machine, atom, values, call.state) for atom in given):
            return True
    return False


def _lacks(call: Call) -> bool:
    needed = call.spec.get("needed")
    if not isinstance(needed, list) or call.open:
        return False
    return all(call.get(str(name)) in (None, NONE) for name in needed)


def _leaves_idle(machine: Machine, atom: Atom, values: list[object], state: State) -> bool:
    if "*" in values:
        return not (isinstance(atom, Const) and atom.value is None)
    if isinstance(atom, Const):
        return _is_one(atom, values) or (atom.value is None and False in values)
    if _OBJECT in values and isinstance(atom, Ref) and isinstance(state.get(atom), Instance | LibraryObject):
        return True
    return [] in values and machine.exact_items((atom,), state) == []


def _conditions(call: Call, key: str) -> Iterator[tuple[str, list[object]]]:
    found = call.spec.get(key)
    for name, values in found.items() if isinstance(found, Mapping) else ():
        yield str(name), values if isinstance(values, list) else [values]


def _is_one(atom: Const, wanted: list[object]) -> bool:
    """Whether a constant is one of some values; ``cuda`` also stands for ``cuda:1``."""
    value = atom.value
    if isinstance(value, str):
        return value in wanted or value.partition(":")[0] in wanted
    return any(type(value) is type(w) and value == w for w in wanted)


def _constants(value: Value, state: State, depth: int = 0) -> Iterator[Const]:
    """The constants of a value, and of the lists, tuples and dicts that it may be."""
    for atom in value:
        if isinstance(atom, Const):
            yield atom
        found = state.get(atom) if isinstance(atom, Ref) and depth < _DEEPEST else None
        inner: tuple[Value, ...] = ()
        if isinstance(found, Sequence):
            inner = (*(found.items or ()), found.element)
        elif isinstance(found, Dict):
            inner = (*found.items.values(), found.element)
        for one in inner:
            yield from _constants(one, state, depth + 1)
