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
    words = _words(machine, call)
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
    states = [call.state]
    for name, value in _fields_of(machine, call, found, _words(machine, call)):
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
    listed = words_of_fields(machine, found.cls, call.state)
    names = (name for name in machine.field_types(found.cls, call.state) if name not in found.attributes)
    return [
        (name, _option(machine, call, name, _default_of(machine, call, name), words, listed.get(name, ())))
        for name in names
    ]


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
    atom = only(cls)
    if isinstance(atom, Ref) and isinstance(call.state.get(atom), Class):
        line = own_line(machine, call.state)
        options = _options(machine, call, atom, () if line is None else line.words, call.state)
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
        if not isinstance(only(default or ()), Task) or _among(words, name) is not None:
            options[name] = _option(machine, call, name, default, words, listed.get(name, ()))
    return options


def _option(machine: Machine, call: Call, name: str, default: Value | None, words: Row[str], listed: Row[str]) -> Value:
    """What an option becomes by some words, or by its default, which may be another of those ``listed``."""
    option = unknown("option", call.site, f"--{name}", "choice")
    given = _among(words, name)
    if given is not None:
        return _as_default(default, given, option)
    known = constant(default or ())
    if isinstance(known, str):
        machine.record.offers.add(f"--{name}", known, listed)
    return option if default is None else as_option(default, option)


def _words(machine: Machine, call: Call) -> Row[str]:
    """The words that are parsed: those that the call is given, or else the program's own, as far as they are known."""
    line = own_line(machine, call.state) if call.get("args") is None else None
    return words_of(machine, call) or (() if line is None else line.words)


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
