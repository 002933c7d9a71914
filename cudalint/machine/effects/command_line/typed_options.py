"""Command lines that become objects of given classes: transformers' ``HfArgumentParser``."""

from __future__ import annotations

from collections.abc import Sequence as Row

from cudalint.machine.effects.command_line.options import words_of
from cudalint.machine.effects.receivers import library_object
from cudalint.machine.effects.stdlib.flags import as_option, own_line, words_of_fields
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import Class, LibraryObject, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.values import NONE, TRUE, Atom, Ref, Task, Value, const, constant, only, unknown

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
