"""asyncio: calls that an event loop hands to an executor or to a thread."""

from __future__ import annotations

from cudalint.machine.effects.concurrency.pools import pool_apply
from cudalint.machine.effects.concurrency.threads import threaded
from cudalint.machine.frame import Call, Results
from cudalint.machine.heap import LibraryObject, Sequence
from cudalint.machine.interpreter import Machine
from cudalint.machine.state import State
from cudalint.machine.values import NONE, Atom, Ref, Value, only, union, unknown
from cudalint.structs import replace


def run_in_executor(machine: Machine, call: Call) -> Results:
    """``loop.run_in_executor(executor, f, *args)``: a task of that executor; of a thread where there is none."""
    if len(call.args) < 2:
        return [(call.state, unknown("executor", call.site))]
    executor, function, *args = call.args
    if executor == NONE:
        return threaded(machine, call, call.site, function, args, {}, None)
    atom = only(executor)
    path = _submit_of(call, atom)
    spec = None if path is None else machine.library.function(path)
    if path is None or spec is None:
        return [(call.state, unknown("executor", call.site))]
    submitted = pool_apply(machine, replace(call, path=path, spec=spec, args=[function, *args], receiver=atom))
    return [(state, _result(state, value)) for state, value in submitted]


def _submit_of(call: Call, atom: Atom | None) -> str | None:
    found = call.state.get(atom) if isinstance(atom, Ref) else None
    return f"{found.type}.submit" if isinstance(found, LibraryObject) else None


def _result(state: State, future: Value) -> Value:
    """What awaiting a submitted task gives."""
    atom = only(future)
    found = state.get(atom) if isinstance(atom, Ref) else None
    return found.fields.get("<result>", future) if isinstance(found, LibraryObject) else future


def gathered(machine: Machine, call: Call) -> Results:
    """``asyncio.gather(*awaitables)``: what each of them gives, in their order."""
    items = None if call.open else tuple(call.args)
    made = Sequence("list", items, union(call.args))
    return [(call.state, (call.state.new(("gathered", call.site), made),))]


def to_thread(machine: Machine, call: Call) -> Results:
    """``asyncio.to_thread(f, *args)``: in a thread of this process."""
    if not call.args:
        return [(call.state, unknown("thread", call.site))]
    return threaded(machine, call, call.site, call.args[0], call.args[1:], call.kwargs, None)
