"""``logging.config.dictConfig``: filters, formatters and handlers of the program, by the names of their classes."""

from __future__ import annotations

from collections.abc import Mapping

from cudalint.machine import questions
from cudalint.machine.effects.stdlib import logs, lookups
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import Class, Closure, Dict
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.values import NONE, Ref, Value, constant, only, unknown
from cudalint.structs import replace

# What names the class of an object, or the function that makes it.
_CLASS, _FACTORY = "class", "()"
_ABOUT_HANDLERS = frozenset({_CLASS, _FACTORY, "level", "formatter", "filters"})
_ROOT = "root"


def configure(machine: Machine, call: Call) -> Results:
    """``dictConfig({...})``, of which what is known is made as it says."""
    state = call.state
    settings = _held(call.get("config") or (), state)
    parts: dict[str, dict[str, Value]] = {}
    for kind in ("filters", "formatters"):
        made: dict[str, Value] = {}
        for name, given in _sections(settings, kind, state):
            state, made[name] = _made(machine, replace(call, state=state), given, {_CLASS, _FACTORY})
        parts[kind] = made
    handlers: dict[str, Value] = {}
    for name, given in _sections(settings, "handlers", state):
        state, handler = _made(machine, replace(call, state=state), given, _ABOUT_HANDLERS)
        handler = handler or unknown(questions.OF_CLASS, "logging.Handler", call.site, name)
        handlers[name] = handler
        _attached(machine, replace(call, state=state), handler, given, parts)
    named = [*_sections(settings, "loggers", state), (_ROOT, _held(settings.get(_ROOT, ()), state))]
    for name, given in named:
        _logger(machine, replace(call, state=state), "" if name == _ROOT else name, given, handlers, parts)
    return [(state, NONE)]


def _logger(
    machine: Machine,
    call: Call,
    name: str,
    given: Mapping[str, Value],
    handlers: Mapping[str, Value],
    parts: Mapping[str, Mapping[str, Value]],
) -> None:
    for kind in ("level", "propagate"):
        if kind in given:
            logs.keep(call, name, kind, given[kind])
    for place, handler in enumerate(_listed(machine, given.get("handlers", ()), handlers, call.state)):
        logs.keep(call, name, f"handler {call.site.module} {call.site.ordinal} {place}", handler)
    for place, one in enumerate(_listed(machine, given.get("filters", ()), parts["filters"], call.state)):
        logs.keep(call, name, f"filter {call.site.module} {call.site.ordinal} {place}", one)


def _attached(
    machine: Machine,
    call: Call,
    handler: Value,
    given: Mapping[str, Value],
    parts: Mapping[str, Mapping[str, Value]],
) -> None:
    """What a handler is told to have: a level, a formatter, filters."""
    owner = only(handler)
    if owner is None:
        return
    if "level" in given:
        logs.keep(call, owner, "level", given["level"])
    formatter = parts["formatters"].get(str(constant(given.get("formatter", ()))), ())
    if formatter:
        logs.keep(call, owner, "formatter", formatter)
    for place, one in enumerate(_listed(machine, given.get("filters", ()), parts["filters"], call.state)):
        logs.keep(call, owner, f"filter {call.site.module} {call.site.ordinal} {place}", one)


def _made(
    machine: Machine, call: Call, given: Mapping[str, Value], settings: set[str] | frozenset[str]
) -> tuple[State, Value]:
    """An object of a class of the program, or what its function makes; nothing where it is a library's."""
    named = given.get(_FACTORY, given.get(_CLASS, ()))
    name = constant(named)
    found = lookups.named(machine, call, name, call.state) if isinstance(name, str) else [(call.state, named)]
    state, function = found[0] if found else (call.state, ())
    atom = only(function)
    if not isinstance(state.get(atom) if isinstance(atom, Ref) else None, Class | Closure):
        return state, ()
    options = {key: value for key, value in given.items() if key not in settings}
    results = machine.call_value(function, [], options, state, call.frame, call.site)
    return results[0] if results else (state, ())


def _listed(machine: Machine, given: Value, known: Mapping[str, Value], state: State) -> list[Value]:
    names = (constant(item) for item in machine.exact_items(given, state) or ())
    return [known[name] for name in names if isinstance(name, str) and known.get(name)]


def _sections(settings: Mapping[str, Value], kind: str, state: State) -> list[tuple[str, dict[str, Value]]]:
    return [(name, _held(value, state)) for name, value in _held(settings.get(kind, ()), state).items()]


def _held(value: Value, state: State) -> dict[str, Value]:
    found = state.get(atom) if isinstance(atom := only(value), Ref) else None
    return {k: v for k, v in found.items.items() if isinstance(k, str)} if isinstance(found, Dict) else {}
