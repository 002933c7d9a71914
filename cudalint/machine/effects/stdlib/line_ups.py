"""Queues and events within a process, and lists that are kept as heaps: what is put there comes out again."""

from __future__ import annotations

from dataclasses import replace

from cudalint.machine import operators
from cudalint.machine.effects.concurrency import threads
from cudalint.machine.effects.receivers import library_object
from cudalint.machine.frame import Call, Raised, Results
from cudalint.machine.heap import LibraryObject, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.messages import QUEUED
from cudalint.machine.values import FALSE, NONE, TRUE, Ref, const, only, union, unknown

_HELD = "<held>"
_GIVEN = "<given>"


def queue(machine: Machine, call: Call) -> Results:
    """``queue.Queue()``."""
    machine.record.messages.opened(call.site)
    made = LibraryObject(call.text("type", call.path), {_HELD: ()}, call.site)
    return [(call.state, (call.state.new(("queue", call.site), made),))]


def put(machine: Machine, call: Call) -> Results:
    """``q.put(x)``."""
    obj = library_object(call)
    item = call.get("item")
    if obj is None or not isinstance(call.receiver, Ref) or item is None:
        return [(call.state, NONE)]
    machine.record.messages.sent(obj.site, item, call.state, call.site if machine.open_loops else None)
    before = obj.fields.get(_HELD, ())
    held = union([before, item])
    call.state.store(call.receiver, replace(obj, fields={**obj.fields, _HELD: held}))
    after = [call.state] if held == before else threads.let_go_on(machine, call)
    return [(state, NONE) for state in after]


def get(machine: Machine, call: Call) -> Results:
    """``q.get()``: one of the things that were put there so far; anything, where another thread puts them later."""
    obj = library_object(call)
    held = () if obj is None else obj.fields.get(_HELD, ())
    if not held and _waits(call):
        threads.hold_up(machine, call)
    elif not held and call.frame.tries:
        machine.fail(call.state.clone(), call.frame, Raised(None, ("Empty", "QueueEmpty"), harmless=True))
    return [(call.state, held or unknown(QUEUED, call.site, call.receiver, obj and obj.site))]


def _waits(call: Call) -> bool:
    """Whether a call returns only when somebody gives what it waits for."""
    may_return = call.text("kind") == "polls" or call.get("timeout") not in (None, NONE)
    return not may_return and call.get("block") in (None, TRUE) and call.get("blocking") in (None, TRUE)


def event(machine: Machine, call: Call) -> Results:
    """``threading.Event()``, ``Condition()``: nobody has given a sign yet; ``Semaphore(2)``: so many are there."""
    given = const(call.text("kind") == "counted" and call.get("value") != const(0))
    made = LibraryObject(call.text("type", call.path), {_GIVEN: given}, call.site)
    return [(call.state, (call.state.new(("event", call.site), made),))]


def give(machine: Machine, call: Call) -> Results:
    """``event.set()``, ``condition.notify()``: who waits for it goes on; after ``clear()`` it takes another sign."""
    obj = library_object(call)
    if obj is None or not isinstance(call.receiver, Ref):
        return [(call.state, NONE)]
    given = const(call.text("kind") != "clears")
    call.state.store(call.receiver, replace(obj, fields={**obj.fields, _GIVEN: given}))
    after = threads.let_go_on(machine, call) if given == TRUE != obj.fields.get(_GIVEN) else [call.state]
    return [(state, NONE) for state in after]


def meet(machine: Machine, call: Call) -> Results:
    """``barrier.wait()``: whoever comes last lets the others go on."""
    return give(machine, call) if threads.is_awaited(call) else wait(machine, call)


def wait(machine: Machine, call: Call) -> Results:
    """``event.wait()``: until the sign was given."""
    obj = library_object(call)
    if obj is not None and obj.fields.get(_GIVEN) == FALSE and _waits(call):
        threads.hold_up(machine, call)
    return [(call.state, unknown("wait", call.site))]


def heap_push(machine: Machine, call: Call) -> Results:
    """``heapq.heappush(heap, x)``."""
    atom = only(call.args[0]) if len(call.args) == 2 else None
    found = call.state.get(atom) if isinstance(atom, Ref) else None
    if isinstance(atom, Ref) and isinstance(found, Sequence):
        call.state.store(atom, operators.append(found, call.args[1]))
    return [(call.state, NONE)]


def heap_pop(machine: Machine, call: Call) -> Results:
    """``heapq.heappop(heap)``: one of the things in it."""
    held = union(machine.elements(call.args[0], call.state)) if call.args else ()
    return [(call.state, held or unknown("heap", call.site))]
