"""Queues and events within a process, and lists that are kept as heaps: what is put there comes out again."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable
from typing import Any

from cudalint.machine import operators
from cudalint.machine.effects.concurrency import threads
from cudalint.machine.effects.concurrency.receiving import received
from cudalint.machine.effects.receivers import library_object
from cudalint.machine.effects.stdlib.ranks import ranks
from cudalint.machine.frame import Call, Raised, Results
from cudalint.machine.heap import LibraryObject, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.messages import Channel
from cudalint.machine.values import FALSE, NONE, TRUE, Ref, Value, const, constant, integer, only, union, unknown
from cudalint.structs import MutableUnique, replace

_HELD = "<held>"
_GIVEN = "<given>"
# What lies in a queue, one after the other, as long as that is known; which of these comes next; how many it takes.
_ROW, _NEXT, _MOST = "<row>", "<next>", "<most>"
_EMPTY = Raised(None, ("Empty", "QueueEmpty"), harmless=True)
_FULL = Raised(None, ("Full", "QueueFull"), harmless=True)


def queue(machine: Machine, call: Call) -> Results:
    """``queue.Queue()``."""
    machine.messages.any_made = True
    row: Value = (call.state.new(("row", call.site), Sequence("list", ())),)
    fields = {_HELD: (), _ROW: row, _NEXT: const(call.text("kind")), _MOST: call.get("maxsize") or const(0)}
    made = LibraryObject(call.text("type", call.path), fields, call.site)
    return [(call.state, (call.state.new(("queue", call.site), made),))]


def _row_of(machine: Machine, call: Call) -> tuple[Ref, Sequence] | None:
    """What lies in a queue; None where nobody knows, as where more rounds of a loop put something there."""
    obj = library_object(call)
    atom = None if obj is None else only(obj.fields.get(_ROW, ()))
    found = call.state.get(atom) if isinstance(atom, Ref) else None
    if not isinstance(atom, Ref) or not isinstance(found, Sequence) or found.items is None or found.open:
        return None
    if isinstance(call.receiver, Ref) and machine.grows_on(call.receiver):
        call.state.store(atom, Sequence("list", None))
        return None
    return atom, found


def _is_full(call: Call, row: Sequence) -> bool:
    obj = library_object(call)
    most = None if obj is None else integer(obj.fields.get(_MOST, ()))
    return most is not None and 0 < most <= len(row.items or ()) and not threads.may_run(call.state)


def size(machine: Machine, call: Call) -> Results:
    """``q.qsize()``, ``q.empty()``, ``q.full()``: where nothing else puts there or takes from it."""
    row = _row_of(machine, call)
    obj = library_object(call)
    most = None if obj is None else integer(obj.fields.get(_MOST, ()))
    if row is None or most is None or threads.may_run(call.state):
        return [(call.state, unknown("queue", call.path, call.site, call.receiver))]
    number = len(row[1].items or ())
    answers: dict[str, Hashable] = {"qsize": number, "empty": not number, "full": 0 < most <= number}
    return [(call.state, const(answers[call.path.rpartition(".")[2]]))]


def put(machine: Machine, call: Call) -> Results:
    """``q.put(x)``."""
    obj = library_object(call)
    item = call.get("item")
    if obj is None or not isinstance(call.receiver, Ref) or item is None:
        return [(call.state, NONE)]
    machine.says(channel(obj), item, call.state, call.site)
    row = _row_of(machine, call)
    if row is not None and call.frame.tries and not _waits(call) and _is_full(call, row[1]):
        return machine.fail(call.state, call.frame, _FULL)
    if row is not None:
        call.state.store(row[0], replace(row[1], items=(*(row[1].items or ()), item)))
    before = obj.fields.get(_HELD, ())
    held = union([before, item])
    call.state.store(call.receiver, replace(obj, fields={**obj.fields, _HELD: held}))
    after = [call.state] if held == before else threads.let_go_on(machine, call)
    return [(state, NONE) for state in after]


def get(machine: Machine, call: Call) -> Results:
    """``q.get()``: one of the things that were put there so far; anything, where another thread puts them later."""
    obj = library_object(call)
    held = () if obj is None else obj.fields.get(_HELD, ())
    row = _row_of(machine, call)
    if obj is not None and row is not None and row[1].items:
        taken = _next_of(machine, call, obj, row[1])
        call.state.store(row[0], Sequence("list", None) if taken is None else replace(row[1], items=taken[1]))
        return [(call.state, held if taken is None else taken[0])]
    if not held and _waits(call):
        threads.hold_up(machine, call)
    elif row is not None and call.frame.tries and call.text("kind") != "awaits" and not _waits(call):
        is_sure = not threads.may_run(call.state)
        machine.fail(call.state if is_sure else call.state.clone(), call.frame, _EMPTY)
        if is_sure:
            return []
    elif not held and call.frame.tries:
        machine.fail(call.state.clone(), call.frame, _EMPTY)
    sym = ("queue", call.site, call.receiver)
    taken_later = [] if held or obj is None else received(machine, call, channel(obj), sym)
    return taken_later or [(call.state, held or unknown(*sym))]


def is_queue(found: LibraryObject) -> bool:
    """Whether an object is a queue within a process."""
    return _HELD in found.fields


def channel(queue: LibraryObject) -> Channel:
    """What goes through a queue, by where that was made."""
    return (queue.site, _HELD)


def _next_of(machine: Machine, call: Call, obj: LibraryObject, row: Sequence) -> tuple[Value, tuple[Value, ...]] | None:
    """What comes out of a queue next, and what stays; None where that is not known."""
    items = list(row.items or ())
    kind = constant(obj.fields.get(_NEXT, ()))
    if kind != "least":
        at = len(items) - 1 if kind == "last" else 0
        return items[at], tuple(items[:at] + items[at + 1 :])
    ranked = _ranked(machine, call, items)
    if ranked is None:
        return None
    try:
        heapq.heapify(ranked)
        first = heapq.heappop(ranked)
    except TypeError:
        return None
    return first.value, tuple(one.value for one in ranked)


def _waits(call: Call) -> bool:
    """Whether a call returns only when somebody gives what it waits for."""
    may_return = call.text("kind") in ("polls", "awaits") or call.get("timeout") not in (None, NONE)
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


def asked(machine: Machine, call: Call) -> Results:
    """``event.is_set()``: where no other thread may have given the sign."""
    obj = library_object(call)
    given = () if obj is None else obj.fields.get(_GIVEN, ())
    is_known = given == TRUE or (given == FALSE and not threads.may_run(call.state))
    return [(call.state, given if is_known else unknown("event", call.site, call.receiver))]


def meet(machine: Machine, call: Call) -> Results:
    """``barrier.wait()``: whoever comes last lets the others go on."""
    return give(machine, call) if threads.is_awaited(call) else wait(machine, call)


def wait(machine: Machine, call: Call) -> Results:
    """``event.wait()``: until the sign was given."""
    obj = library_object(call)
    if obj is None or obj.fields.get(_GIVEN) != FALSE:
        is_told = obj is not None and obj.type == "threading.Event" and obj.fields.get(_GIVEN) == TRUE
        return [(call.state, TRUE if is_told else unknown("wait", call.site))]
    if _waits(call):
        threads.hold_up(machine, call)
        return [(call.state, unknown("wait", call.site))]
    # It may go on without a sign as well.
    later = replace(call, state=call.state.clone())
    threads.hold_up(machine, later)
    told: Results = [(later.state, TRUE)] if later.state.process.held_up else []
    return [(call.state, unknown("wait", call.site)), *told]


class _Ranked(MutableUnique):
    """A value among others that Python puts in order."""

    rank: Any
    value: Value

    def __lt__(self, other: _Ranked) -> bool:
        return bool(self.rank < other.rank)


def _ranked(machine: Machine, call: Call, items: list[Value]) -> list[_Ranked] | None:
    """Values with what puts them in order; None where that is not known of all of them."""
    known = ranks(machine, call, items, call.state)
    return None if known is None else [_Ranked(rank, item) for rank, item in zip(known, items, strict=True)]


# What these do to a list of which all is known, with what they are given besides.
_ON_HEAPS: dict[str, Callable[..., _Ranked | None]] = {
    "heapify": heapq.heapify, "heappush": heapq.heappush, "heappop": heapq.heappop,
    "heappushpop": heapq.heappushpop, "heapreplace": heapq.heapreplace,
}  # fmt: skip


def heap(machine: Machine, call: Call) -> Results:
    """``heapq.heappush(heap, x)``, ``heappop(heap)``: as Python does it, where what lies there is known."""
    state, name = call.state, call.path.rpartition(".")[2]
    atom = only(call.args[0]) if call.args else None
    found = state.get(atom) if isinstance(atom, Ref) else None
    if not isinstance(atom, Ref) or not isinstance(found, Sequence):
        return [(state, NONE if name in ("heapify", "heappush") else unknown("heap", call.site))]
    is_whole = found.items is not None and not found.open and not machine.grows_on(atom)
    held = list(found.items or ())
    ranked = _ranked(machine, call, [*held, *call.args[1:]]) if is_whole else None
    if ranked is not None:
        row = ranked[: len(held)]
        try:
            result = _ON_HEAPS[name](row, *ranked[len(held) :])
        except IndexError:
            if call.frame.tries:
                return machine.fail(state, call.frame, Raised(None, ("IndexError", "LookupError")))
        except TypeError:
            pass
        else:
            state.store(atom, replace(found, items=tuple(one.value for one in row)))
            return [(state, NONE if result is None else result.value)]
    element = union(machine.elements((atom,), state))
    for value in call.args[1:]:
        longer = operators.append(found, value)
        state.store(atom, replace(longer, open=longer.open or machine.grows_on(atom)))
    return [(state, NONE if name in ("heapify", "heappush") else element or unknown("heap", call.site))]
