"""Queues within a process, and lists that are kept as heaps: what is put there comes out again, in some order."""

from __future__ import annotations

from dataclasses import replace

from cudalint.machine import operators
from cudalint.machine.effects.receivers import library_object
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import LibraryObject, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.values import NONE, Ref, only, union, unknown

_HELD = "<held>"


def queue(machine: Machine, call: Call) -> Results:
    """``queue.Queue()``."""
    made = LibraryObject(call.text("type", call.path), {_HELD: ()}, call.site)
    return [(call.state, (call.state.new(("queue", call.site), made),))]


def put(machine: Machine, call: Call) -> Results:
    """``q.put(x)``."""
    obj = library_object(call)
    if obj is not None and isinstance(call.receiver, Ref) and call.args:
        held = union([obj.fields.get(_HELD, ()), call.args[0]])
        call.state.store(call.receiver, replace(obj, fields={**obj.fields, _HELD: held}))
    return [(call.state, NONE)]


def get(machine: Machine, call: Call) -> Results:
    """``q.get()``: one of the things that were put there so far; anything, where another thread puts them later."""
    obj = library_object(call)
    held = () if obj is None else obj.fields.get(_HELD, ())
    return [(call.state, held or unknown("queue", call.site, call.receiver))]


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
