"""Functions that the standard library keeps and calls later: by schedulers, selectors, event loops, warnings."""

from __future__ import annotations

from cudalint.machine.effects.stdlib.ranks import ranks
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import REPLACED, Dict, LibraryObject, Scope, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.joining import merge
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import NONE, Partial, Ref, Value, only, union, unknown
from cudalint.structs import replace

_EVENT, _DATA = "<event>", "<data>"
# What a scheduler runs may enter itself again, for ever: two rounds show what that leads to.
_ROUNDS = 2
_SHOWS = "warnings.showwarning"


def later(machine: Machine, call: Call) -> Results:
    """``loop.call_later(delay, f, *args)``: f is called while the program goes on, at a time that nobody knows."""
    place = call.params.index("callback") if "callback" in call.params else 0
    function = call.get("callback") or ()
    if function:
        made: Value = (Partial(function, tuple(call.args[place + 1 :]), ()),)
        machine.hands_over((made,), call.state, call.frame, call.site, is_called=True)
    return [(call.state, unknown("handle", call.site))]


def enter(machine: Machine, call: Call) -> Results:
    """``scheduler.enter(delay, priority, action, arguments)``: ``run()`` calls it."""
    ref, action = call.receiver, call.get("action")
    found = call.state.get(ref) if isinstance(ref, Ref) else None
    if isinstance(ref, Ref) and isinstance(found, LibraryObject) and action:
        args = machine.exact_items(call.get("argument") or (), call.state) or ()
        named = call.state.get(atom) if isinstance(atom := only(call.get("kwargs") or ()), Ref) else None
        options = [(k, v) for k, v in named.items.items() if isinstance(k, str)] if isinstance(named, Dict) else []
        made: Value = (Partial(action, tuple(args), tuple(options)),)
        after: Value = call.get("delay") or ()
        row = Sequence("tuple", (after, call.get("priority") or (), made))
        event: Value = (call.state.new(("event", call.site), row),)
        number = 0 if machine.grows_on(ref) else sum(name.startswith(_EVENT) for name in found.fields)
        name = f"{_EVENT} {number} {call.site.module} {call.site.ordinal}"
        call.state.store(ref, replace(found, fields={**found.fields, name: event}))
    return [(call.state, unknown("event", call.site))]


def run(machine: Machine, call: Call) -> Results:
    """``scheduler.run()``: all that was entered, and what that enters."""
    ref = call.receiver
    found = call.state.get(ref) if isinstance(ref, Ref) else None
    waiting = _waiting(found) if isinstance(found, LibraryObject) else {}
    if len(waiting) > 1 and _order(machine, call, waiting, call.state) is not None:
        # A plan says what comes before what; a single event may as well be run again by others.
        return _all_rounds(machine, call)
    return machine.at_any_time(call.state, lambda: _all_rounds(machine, call))


def events(machine: Machine, call: Call) -> Results:
    """``app.exec()``: its user does things in any order, and again, each of which calls what was handed over for it."""
    states = machine.runs_events(call.state, lambda functions: _any_order(machine, call, list(functions)))
    return [(state, unknown("loop", call.site)) for state in states]


def _any_order(machine: Machine, call: Call, functions: list[Value]) -> list[State]:
    states = [call.state]
    for _ in range(_ROUNDS):
        runs = [(state.clone(), function) for state in states for function in functions]
        after = [
            one
            for state, function in runs
            for one, _ in machine.call_value(function, [], {}, state, call.frame, call.site, is_open=True)
        ]
        states = merge([*states, *after])
    return states


def _waiting(scheduler: LibraryObject) -> dict[str, Value]:
    return {name: given for name, given in scheduler.fields.items() if name.startswith(_EVENT)}


def _all_rounds(machine: Machine, call: Call) -> Results:
    states = [call.state]
    for _ in range(_ROUNDS):
        states = [after for state in states for after in _round(machine, call, state)]
    return [(state, NONE) for state in merge(states)]


def _round(machine: Machine, call: Call, state: State) -> list[State]:
    ref = call.receiver
    found = state.get(ref) if isinstance(ref, Ref) else None
    if not isinstance(ref, Ref) or not isinstance(found, LibraryObject):
        return [state]
    waiting = _waiting(found)
    state.store(ref, replace(found, fields={k: v for k, v in found.fields.items() if k not in waiting}))
    states = [state]
    for name, given in _by_time(machine, call, waiting, state):
        _, module, ordinal = name.rsplit(" ", 2)
        site = Site(module, int(ordinal))
        states = [s for each in states for s, _ in machine.call_value(given, [], {}, each, call.frame, site)]
    return states


def _by_time(machine: Machine, call: Call, waiting: dict[str, Value], state: State) -> list[tuple[str, Value]]:
    """What waits and where it was entered: the first times first, where these are known, else as it was entered."""
    named = [(name, _parts(machine, event, state)[2]) for name, event in waiting.items()]
    order = _order(machine, call, waiting, state)
    return named if order is None else [named[number] for number in order]


def _order(machine: Machine, call: Call, waiting: dict[str, Value], state: State) -> list[int] | None:
    """In which order what waits is run; None where the times are not known, or cannot be compared."""
    events = [_parts(machine, event, state) for event in waiting.values()]
    times = ranks(machine, call, [time for time, _, _ in events], state)
    urgent = ranks(machine, call, [priority for _, priority, _ in events], state)
    if times is None or urgent is None:
        return None
    try:
        return sorted(range(len(events)), key=lambda number: (times[number], urgent[number]))
    except TypeError:
        return None


def _parts(machine: Machine, event: Value, state: State) -> tuple[Value, Value, Value]:
    """When something is run, how urgent that is, and what it is."""
    time, priority, action = machine.exact_items(event, state) or [(), (), ()]
    return time, priority, action


def watch(machine: Machine, call: Call) -> Results:
    """``selector.register(socket, events, data)``: ``select()`` gives the data back, mostly a function to call."""
    ref, data = call.receiver, call.get("data")
    found = call.state.get(ref) if isinstance(ref, Ref) else None
    if isinstance(ref, Ref) and isinstance(found, LibraryObject) and data is not None:
        kept = union([found.fields.get(_DATA, ()), data])
        call.state.store(ref, replace(found, fields={**found.fields, _DATA: kept}))
    return [(call.state, unknown("key", call.site))]


def ready(machine: Machine, call: Call) -> Results:
    """``selector.select()``: rows of a key, with what was registered under it, and of events."""
    state, ref = call.state, call.receiver
    found = state.get(ref) if isinstance(ref, Ref) else None
    data = found.fields.get(_DATA) if isinstance(found, LibraryObject) else None
    fields = {"data": data or unknown("data", call.site), "fileobj": unknown("file", call.site)}
    key: Value = (state.new(("key", call.site), LibraryObject("selectors.SelectorKey", fields, call.site)),)
    row: Value = (state.new(("row", call.site), Sequence("tuple", (key, unknown("events", call.site)))),)
    return [(state, (state.new(("rows", call.site), Sequence("list", None, row)),))]


def warned(machine: Machine, call: Call) -> Results:
    """``warnings.warn(message)``: what the program set in the place of the function that shows it."""
    replaced = call.state.get(REPLACED)
    shows = replaced.variables.get(_SHOWS, NONE) if isinstance(replaced, Scope) else NONE
    if shows == NONE:
        return [(call.state, NONE)]
    given = [
        call.args[0] if call.args else NONE,
        *(unknown("warning", call.site, name) for name in ("category", "file", "row")),
    ]
    results = machine.call_value(shows, given, {}, call.state, call.frame, call.site)
    return [(state, NONE) for state, _ in results]
