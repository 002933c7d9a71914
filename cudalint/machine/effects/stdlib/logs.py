"""Loggers: what a program attaches to them runs at each record that passes, in the process that logs.

A logger is known by its name, a handler by where it is made; what is attached to either lies in the process, so that a
fork inherits it. Nothing of this costs anything in a program that attaches nothing of its own.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from cudalint.machine import questions
from cudalint.machine.effects.receivers import initialised, starter
from cudalint.machine.effects.stdlib.builtins import show
from cudalint.machine.frame import Call, Frame, Results
from cudalint.machine.heap import Closure, Dict, Instance, LibraryObject, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.joining import merge
from cudalint.machine.state import State
from cudalint.machine.values import (
    FALSE,
    NONE,
    TRUE,
    Atom,
    Bound,
    Const,
    Partial,
    Ref,
    Unknown,
    Value,
    const,
    constant,
    integer,
    only,
    unknown,
)
from cudalint.structs import replace

_LOGGER, _MADE, _RECORD = "logging.Logger", "logging.getLogger", "logging.LogRecord"
_ROOT = ""
_QUEUE_HANDLER = "logging.handlers.QueueHandler"
_PREPARES, _ENQUEUES = "prepare", "enqueue"
# There is something of the program that listens; and for which records it has run.
_LISTENING = Ref(("log listeners",))
_LEVELS = {
    "NOTSET": 0, "DEBUG": 10, "INFO": 20, "WARNING": 30, "WARN": 30, "ERROR": 40, "EXCEPTION": 40, "CRITICAL": 50,
    "FATAL": 50,
}  # fmt: skip
_DEFAULT = _LEVELS["WARNING"]
# Where a level is not known, records of this level are taken to pass, and those below it not.
_USUAL = _LEVELS["INFO"]
_FILTER, _HANDLES, _LEVEL, _FORMATTER, _PROPAGATE = "filter", "handler", "level", "formatter", "propagate"


def child(machine: Machine, call: Call) -> Results:
    """``logger.getChild(suffix)``."""
    above, suffix = _name(call.receiver), constant(call.get("suffix") or ())
    if above is None or not isinstance(suffix, str):
        return [(call.state, unknown("logger", call.site))]
    return [(call.state, unknown(questions.OF_CLASS, _LOGGER, f"{above}.{suffix}" if above else suffix))]


def _name(atom: Atom | None) -> str | None:
    """The name of a logger: that of its call, empty for the root logger."""
    match atom:
        case Unknown(sym=(questions.OF_CLASS, str(kind), str(name))) if kind == _LOGGER:
            return name
        case Unknown(sym=("call", _, _, _, str(path), *given) | ("follows", str(path), *given)) if path == _MADE:
            return _written(given)
    return None


def _written(given: list[object]) -> str | None:
    if not given:
        return _ROOT
    first = given[0]
    name = first.value if isinstance(first, Const) else None
    return _ROOT if name in ("root", None) and isinstance(first, Const) else name if isinstance(name, str) else None


def _place(atom: Atom | str) -> Ref:
    """Where is kept what is attached to a logger, by its name, or to a handler."""
    name = atom if isinstance(atom, str) else _name(atom)
    return Ref(("log", atom if name is None else name))


def attach(machine: Machine, call: Call) -> Results:
    """``addFilter(f)``, ``addHandler(h)``, ``setFormatter(f)``, ``setLevel(level)``: ``kind`` says what is given.

    ``logger.propagate = False`` likewise.
    """
    kind, given = call.text("kind"), call.args[0] if call.args else ()
    owner = call.receiver
    if owner is None or not given:
        return [(call.state, NONE)]
    several = kind in (_FILTER, _HANDLES)
    name = f"{kind} {call.site.module} {call.site.ordinal}" if several else kind
    keep(call, owner, name, given)
    return [(call.state, NONE)]


def configure(machine: Machine, call: Call) -> Results:
    """``basicConfig(level=..., handlers=[...])``: of the root logger."""
    level = call.kwargs.get(_LEVEL)
    if level is not None:
        keep(call, _ROOT, _LEVEL, level)
    listed = call.kwargs.get("handlers")
    handlers = machine.exact_items(listed, call.state) if listed is not None else None
    for place, given in enumerate(handlers or [unknown("handler", call.site)]):
        keep(call, _ROOT, f"{_HANDLES} {call.site.module} {call.site.ordinal} {place}", given)
    return [(call.state, NONE)]


def _is_of_program(atom: Atom, state: State) -> bool:
    found = state.get(atom) if isinstance(atom, Ref) else None
    return isinstance(atom, Bound | Partial) or isinstance(found, Closure | Instance)


def keep(call: Call, owner: Atom | str, name: str, given: Value) -> None:
    """A logger, by its name, or a handler has something from now on: a level, or what listens to its records."""
    state, place = call.state, _place(owner)
    found = state.get(place)
    fields = found.fields if isinstance(found, LibraryObject) else {}
    state.store(place, LibraryObject("cudalint.log", {**fields, name: given}, call.site))
    if any(_is_of_program(atom, state) for atom in given) and state.get(_LISTENING) is None:
        state.store(_LISTENING, LibraryObject("cudalint.log", {}, call.site))


def _kept(state: State, owner: Atom | str) -> dict[str, Value]:
    found = state.get(_place(owner))
    return found.fields if isinstance(found, LibraryObject) else {}


def record(machine: Machine, call: Call) -> Results:
    """``logger.info(message)``: filters, handlers and formatters of the program see the record where it passes."""
    name, level = _name(call.receiver) if call.receiver is not None else "", _level_of(call)
    holds = any(isinstance(atom, Ref) for value in call.args for atom in value)
    listening = call.state.get(_LISTENING)
    if name is None or level is None or not (holds or listening) or not _passes(call.state, name, level):
        return [(call.state, NONE)]
    states = _told(machine, call, name, level) if holds else [call.state]
    return [(after, NONE) for state in states for after in _heard(machine, replace(call, state=state), name, level)]


def _told(machine: Machine, call: Call, name: str, level: int) -> list[State]:
    """A record becomes a text where a handler shows it: what it is given is asked for its own.

    That this fails is shown. Where there is no handler, Python shows warnings.
    """
    state = call.state
    kept = [_of_kind(_kept(state, above), _HANDLES) for above in _lineage(state, name)]
    given = [atom for rows in kept for _, one in rows for atom in one]
    least = [_level(_kept(state, atom).get(_LEVEL, const(0))) for atom in given] or [_DEFAULT]
    if not any(_accepts(each, level) for each in least):
        return [state]
    record, machine.record = machine.record, machine.record.copy()
    inner = Frame(call.frame.scope, call.frame.module)
    after = show(machine, replace(call, state=state.clone(), frame=inner, kwargs={}))
    machine.record = record
    return [one for one, _ in after] or [state]


def _heard(machine: Machine, call: Call, name: str, level: int) -> list[State]:
    state, process = call.state, call.state.process
    listening = state.get(_LISTENING)
    if not isinstance(listening, LibraryObject):
        return [state]
    # A second record does to the process what the first one did.
    key, now = f"{name} {level}", (process.identity, process.driver is None)
    if constant(listening.fields.get(key, NONE)) == now:
        return [state]
    state.store(_LISTENING, replace(listening, fields={**listening.fields, key: const(now)}))
    return _handled(machine, call, name, level)


def _handled(machine: Machine, call: Call, name: str, level: int) -> list[State]:
    state = call.state
    msg, *others = call.args or [NONE]
    given_it: Value = (state.new(("record args", call.site), Sequence("tuple", tuple(others))),)
    texts: dict[str, Value] = {"msg": msg, "args": given_it, "name": const(name), "levelno": const(level)}
    made: Value = (state.new(("record", call.site), LibraryObject(_RECORD, texts, call.site)),)
    passed, stopped = _filtered(machine, call, [state], name, made)
    for above in _lineage(state, name):
        for _, given in _of_kind(_kept(state, above), _HANDLES):
            for atom in given:
                if _accepts(_level(_kept(state, atom).get(_LEVEL, const(0))), level):
                    passed = _emitted(machine, call, passed, atom, made)
    return merge([*passed, *stopped])


def _emitted(machine: Machine, call: Call, states: list[State], handler: Atom, made: Value) -> list[State]:
    passed, stopped = _filtered(machine, call, states, handler, made)
    after: list[State] = []
    for state in passed:
        found = state.get(handler) if isinstance(handler, Ref) else None
        method = _emitter(machine, found, state) if isinstance(found, Instance) else None
        if method is None:
            is_queued = isinstance(found, Instance) and _queues(machine, found, state)
            carries_on = _queued if is_queued else _formatted
            after.extend(carries_on(machine, call, state, handler, made))
            continue
        bound: Value = (Bound(method, handler),)
        after.extend(done for done, _ in machine.call_value(bound, [made], {}, state, call.frame, call.site))
    return [*after, *stopped]


def _queues(machine: Machine, handler: Instance, state: State) -> bool:
    """Whether a handler puts on a queue what a method of the program makes of a record."""
    own = any(machine.user_method(handler, name, state) is not None for name in (_PREPARES, _ENQUEUES))
    return own and machine.library_base(handler.cls, state) == _QUEUE_HANDLER


def _queued(machine: Machine, call: Call, state: State, handler: Atom, made: Value) -> list[State]:
    """A record goes to the queue of a handler as ``prepare()`` leaves it; of the library, that is a text."""
    found = state.get(handler) if isinstance(handler, Ref) else None
    if not isinstance(found, Instance):
        return [state]
    prepare = machine.user_method(found, _PREPARES, state)
    ways: Results = [(state, unknown("prepared", call.site))]
    if prepare is not None:
        ways = machine.call_value((Bound(prepare, handler),), [made], {}, state, call.frame, call.site)
    enqueue = machine.user_method(found, _ENQUEUES, state)
    after: list[State] = []
    for current, prepared in ways:
        puts: Results = [(current, (Bound(enqueue, handler),))] if enqueue is not None else []
        if enqueue is None:
            queue = found.attributes.get("queue", ())
            puts = machine.attribute(queue, "put", current, call.frame, call.site) if queue else []
        results = [r for s, put in puts for r in machine.call_value(put, [prepared], {}, s, call.frame, call.site)]
        after.extend([done for done, _ in results] if puts else [current])
    return after


def queue_handler(machine: Machine, call: Call) -> Results:
    """``QueueHandler(queue)``: what is below it finds its queue there."""
    fields = {"queue": call.get("queue") or NONE}
    if initialised(call, fields):
        return [(call.state, NONE)]
    return [(call.state, (call.state.new(("handler", call.site), LibraryObject(_QUEUE_HANDLER, fields, call.site)),))]


def _emitter(machine: Machine, handler: Instance, state: State) -> Atom | None:
    return machine.user_method(handler, "handle", state) or machine.user_method(handler, "emit", state)


def _filtered(
    machine: Machine, call: Call, states: list[State], owner: Atom | str, made: Value
) -> tuple[list[State], list[State]]:
    """The paths on which a record passes the filters of a logger or handler, and those on which it does not."""
    passed, stopped = states, list[State]()
    for _, given in _of_kind(_kept(states[0], owner) if states else {}, _FILTER):
        results = [r for state in passed for r in _asked(machine, call, state, given, made)]
        passed = [state for state, value in results if constant(value) not in (False, None, 0)]
        stopped += [state for state, value in results if constant(value) in (False, None, 0)]
    return passed, stopped


def _asked(machine: Machine, call: Call, state: State, given: Value, made: Value) -> Results:
    atom = only(given)
    found = state.get(atom) if isinstance(atom, Ref) else None
    if atom is None or not _is_of_program(atom, state):
        return [(state, unknown("filter", call.site))]
    method = machine.user_method(found, "filter", state) if isinstance(found, Instance) else None
    if isinstance(found, Instance) and method is None:
        return [(state, unknown("filter", call.site))]
    function: Value = given if method is None else (Bound(method, atom),)
    return machine.call_value(function, [made], {}, state, call.frame, call.site)


def formats(machine: Machine, call: Call) -> Results:
    """``handler.format(record)``, and a library's ``emit``, of a handler of the program."""
    if call.receiver is None or not call.args:
        return [(call.state, unknown("formatted", call.site))]
    after = _formatted(machine, call, call.state, call.receiver, call.args[0])
    return [(state, unknown("formatted", call.site)) for state in merge(after)]


def _formatted(machine: Machine, call: Call, state: State, handler: Atom, made: Value) -> list[State]:
    """What goes wrong in a formatter is printed, and the program goes on."""
    atom = only(_kept(state, handler).get(_FORMATTER, NONE))
    found = state.get(atom) if isinstance(atom, Ref) else None
    if not isinstance(found, Instance) or atom is None:
        return [state]
    before = machine.record
    for name in ("format", "formatMessage"):
        method = machine.user_method(found, name, state)
        if method is None:
            continue
        machine.record = before.copy()
        inner = Frame(call.frame.scope, call.frame.module)
        results = machine.call_value((Bound(method, atom),), [made], {}, state.clone(), inner, call.site)
        machine.record = before
        return [after for after, _ in results] or [state]
    return [state]


def _lineage(state: State, name: str) -> Iterator[str]:
    """A logger and those above it, as far as its records go."""
    while True:
        yield name
        if not name or _kept(state, name).get(_PROPAGATE) == FALSE:
            return
        name = name.rpartition(".")[0]


def _of_kind(fields: dict[str, Value], kind: str) -> list[tuple[str, Value]]:
    return [(name, given) for name, given in fields.items() if name.startswith(f"{kind} ")]


def adapter(machine: Machine, call: Call) -> Results:
    """``LoggerAdapter(logger, extra)``."""
    fields = {"logger": call.get("logger") or NONE, "extra": call.get("extra") or NONE}
    if initialised(call, fields):
        return [(call.state, NONE)]
    return [(call.state, (call.state.new(("adapter", call.site), LibraryObject(call.path, fields, call.site)),))]


def adapted(machine: Machine, call: Call) -> Results:
    """``adapter.info(message)``: its logger, where it listens, is given what ``process()`` makes of the message."""
    found = starter(call.receiver, call.state)
    logger, level = only(found.fields.get("logger", ())) if found is not None else None, _level_of(call)
    name = _ROOT if logger is None else _name(logger) or _ROOT
    if found is None or level is None or not _passes(call.state, name, level):
        return [(call.state, NONE)]
    # The level comes first where the name of the method does not say it.
    at = 1 if call.path.endswith(".log") and call.args else 0
    results = []
    for state, message in _processed(machine, call, found.ref, call.args[at : at + 1] or [NONE]):
        given = replace(call, receiver=logger, state=state, args=[*call.args[:at], message, *call.args[at + 1 :]])
        results.extend(record(machine, given))
    return results


def _processed(machine: Machine, call: Call, adapter: Ref, message: list[Value]) -> Results:
    state = call.state
    instance = state.get(adapter)
    method = machine.user_method(instance, "process", state) if isinstance(instance, Instance) else None
    if method is None:
        return [(state, message[0])]
    options: dict[Hashable, Value] = dict(call.kwargs.items())
    named: Value = (state.new(("kwargs", call.site), Dict(options)),)
    made = machine.call_value((Bound(method, adapter),), [*message, named], {}, state, call.frame, call.site)
    texts = [(after, (machine.exact_items(pair, after) or [()])[0]) for after, pair in made]
    return [(after, text or unknown("message", call.site)) for after, text in texts]


def enabled(machine: Machine, call: Call) -> Results:
    """``logger.isEnabledFor(level)``, where the program is seen to set the level."""
    name, level = _name(call.receiver), _level(call.get(_LEVEL) or ())
    set_ = None if name is None else _set_level(call.state, name)
    if set_ is None or level is None or (least := _level(set_)) is None:
        return [(call.state, unknown("enabled", call.site, call.state.process.identity))]
    return [(call.state, TRUE if level >= least else FALSE)]


def _set_level(state: State, name: str) -> Value | None:
    """The level that counts for a logger: its own, or that of the nearest one above it that has one."""
    while True:
        given = _kept(state, name).get(_LEVEL)
        if given is not None and _level(given) != 0:
            return given
        if not name:
            return None
        name = name.rpartition(".")[0]


def _passes(state: State, name: str, level: int) -> bool:
    given = _set_level(state, name)
    return _accepts(_DEFAULT if given is None else _level(given), level)


def _accepts(least: int | None, level: int) -> bool:
    return level >= (_USUAL if least is None else least)


def _level_of(call: Call) -> int | None:
    name = call.path.rpartition(".")[2].upper()
    return _level(call.args[0]) if name == "LOG" and call.args else _LEVELS.get(name)


def _level(given: Value) -> int | None:
    match only(given):
        case Const(value=str() as text):
            return _LEVELS.get(text)
    return integer(given)
