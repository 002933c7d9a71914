"""Command lines that become objects of given classes: transformers' ``HfArgumentParser``, ``Tap``, simple_parsing."""

from __future__ import annotations

from collections.abc import Sequence as Row

from cudalint.machine.effects.command_line.options import words_of
from cudalint.machine.effects.receivers import library_object
from cudalint.machine.effects.stdlib.flags import as_option, own_line, words_of_fields
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import Class, Instance, LibraryObject, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.values import NONE, TRUE, Atom, Bound, Ref, Task, Unknown, Value, const, constant, only, unknown
from cudalint.structs import replace

_CLASSES = "<classes>"


def parser(machine: Machine, call: Call) -> Results:
    """``HfArgumentParser((DataArguments, TrainingArguments))``: of which classes it makes objects."""
    kind = call.text("type")
    fields = {_CLASSES: call.get("dataclass_types") or NONE}
    return [(call.state, (call.state.new(("parser", call.site), LibraryObject(kind, fields, call.site)),))]


def parsed(machine: Machine, call: Call) -> Results:
    """``parse_args_into_dataclasses()``: an object of each class, from options."""
    found = library_object(call)
    classes = () if found is None else found.fields.get(_CLASSES, ())
    listed = machine.exact_items(classes, call.state) or [classes]
    line = own_line(machine, call.state) if call.get("args") is None else None
    words = words_of(machine, call) or (line.words if line is not None else ())
    paths: list[tuple[State, list[Value]]] = [(call.state, [])]
    for cls in listed:
        paths = [
            (after, [*made, value]) for state, made in paths for after, value in _made(machine, call, cls, words, state)
        ]
    if constant(call.kwargs.get("return_remaining_strings", NONE)) is True:
        paths = [(state, [*made, unknown("rest", call.site)]) for state, made in paths]
    return [(state, (state.new(("parsed", call.site), Sequence("tuple", tuple(made))),)) for state, made in paths]


def own(machine: Machine, call: Call) -> Results:
    """``Arguments().parse_args()`` of a class below ``Tap``: its object, whose fields are options, once it went over
    them."""
    machine.record.reads_words = True
    ref = call.receiver
    found = call.state.get(ref) if isinstance(ref, Ref) else None
    if ref is None or not isinstance(found, Instance):
        return [(call.state, unknown("parsed", call.site))]
    line = own_line(machine, call.state) if call.get("args") is None else None
    states = [call.state]
    for name, value in _fields_of(machine, call, found, words_of(machine, call) or (line.words if line else ())):
        states = [
            after
            for state in states
            for after in machine.set_attribute((ref,), name, value, state, call.frame, call.site)
        ]
    processed = machine.user_method(found, "process_args", call.state)
    if processed is not None:
        bound = (Bound(processed, ref),)
        states = [
            after for state in states for after, _ in machine.call_value(bound, [], {}, state, call.frame, call.site)
        ]
    return [(state, (ref,)) for state in states]


def _fields_of(machine: Machine, call: Call, found: Instance, words: Row[str]) -> list[tuple[str, Value]]:
    """What the annotated names of an object's class become; those that its ``__init__`` set stay so."""
    values: list[tuple[str, Value]] = []
    listed = words_of_fields(machine, found.cls, call.state)
    for name in machine.field_types(found.cls, call.state):
        if name in found.attributes:
            continue
        default = _default_of(machine, call, name)
        given = _among(words, name)
        option = unknown("option", call.site, f"--{name}", "choice")
        known = constant(default or ())
        if given is None and isinstance(known, str):
            machine.record.offers.add(f"--{name}", known, listed.get(name, ()))
        settled = option if default is None else as_option(default, option)
        values.append((name, settled if given is None else _as_default(default, given, option)))
    return values


def _default_of(machine: Machine, call: Call, name: str) -> Value | None:
    """What the class of an object says of a name; None where it only says of what type it is."""
    found = (
        machine.attribute((call.receiver,), name, call.state.clone(), call.frame, call.site) if call.receiver else []
    )
    values = [value for _, value in found]
    return values[0] if len(values) == 1 and not isinstance(only(values[0]), Unknown) else None


def record(machine: Machine, call: Call) -> Results:
    """``parser.add_arguments(Options, dest="options")``: an object of a class, in the namespace."""
    cls, dest = call.get("dataclass") or (), constant(call.get("dest") or ())
    made: Results = [(call.state, cls)]
    if isinstance(call.state.get(atom), Class) if isinstance(atom := only(cls), Ref) else False:
        line = own_line(machine, call.state)
        options = _options(machine, call, only(cls), () if line is None else line.words, call.state)
        made = machine.call_value(cls, [], options, call.state, call.frame, call.site)
    results: Results = []
    for state, value in made:
        parser_ = state.get(call.receiver) if isinstance(call.receiver, Ref) else None
        if isinstance(call.receiver, Ref) and isinstance(parser_, LibraryObject) and isinstance(dest, str):
            state.store(call.receiver, replace(parser_, fields={**parser_.fields, f"--{dest}": value}))
        results.append((state, unknown("group", call.site)))
    return results


def _made(machine: Machine, call: Call, cls: Value, words: Row[str], state: State) -> Results:
    options = _options(machine, call, only(cls), words, state)
    return machine.call_value(cls, [], options, state, call.frame, call.site, is_open=not options)


def _options(machine: Machine, call: Call, cls: Atom | None, words: Row[str], state: State) -> dict[str, Value]:
    """What the fields of a class of the program become; what nobody gives, and an object makes itself, stays so."""
    if not isinstance(cls, Ref) or not isinstance(state.get(cls), Class):
        return {}
    options: dict[str, Value] = {}
    listed = words_of_fields(machine, cls, state)
    for name, default in machine.record_fields(cls, state):
        given = _among(words, name)
        known = constant(default or ())
        if given is None and isinstance(known, str):
            machine.record.offers.add(f"--{name}", known, listed.get(name, ()))
        option = unknown("option", call.site, f"--{name}", "choice")
        if given is not None:
            options[name] = _as_default(default, given, option)
        elif not isinstance(only(default or ()), Task):
            options[name] = option if default is None else as_option(default, option)
    return options


def _among(words: Row[str], name: str) -> str | None:
    """What an option is given among some words: as ``--name value`` or ``--name=value``."""
    for place, word in enumerate(words):
        spelled, is_set, rest = word.partition("=")
        if spelled.replace("-", "_") == f"__{name}":
            return rest if is_set else words[place + 1] if place + 1 < len(words) else ""
    return None


def _as_default(default: Value | None, text: str, option: Value) -> Value:
    """What a word becomes, whose type the default shows."""
    match constant(default or ()):
        case str():
            return const(text)
        case bool():
            return TRUE if text.startswith("--") or text.lower() in ("", "true", "1", "yes") else option
        case int() if text.isdecimal():
            return const(int(text))
    return option
