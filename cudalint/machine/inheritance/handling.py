"""Exceptions that a process handles while it starts others: a fork goes on in the handler, a fresh process does not.

What a forked worker raises has that exception as its context, which tracebacks show, and may ask for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from cudalint.ir import nodes as ir
from cudalint.machine.frame import Call, Frame, Given, Raised, Results
from cudalint.machine.inheritance.doubts import Why
from cudalint.machine.inheritance.statements import Statements
from cudalint.machine.interpreter import Beginning, Setting
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Atom, Bound, Lib, Unknown, Value

# What a worker has called that asked for the exception which is handled.
_ASKS = "<handled exception>"
_CONTEXT = "__context__"


class Handling(Statements):
    """A machine that notes which workers are started while an exception is handled, and who asks for that."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        # Whether workers were started so: their tracebacks, which the program may show, tell of it.
        self._begin_in_handlers = False

    def begins_process(self, launch: Beginning) -> None:
        """A process is about to start, perhaps in a handler."""
        entries = self._ledger.get(launch.parent.process.identity, ())
        moments = self._moments_of(launch, launch.parent)
        handles = any(entry.doubt.why is Why.HANDLES and any(map(entry.stands, moments)) for entry in entries)
        self._begin_in_handlers = self._begin_in_handlers or handles
        super().begins_process(launch)

    def _handled(
        self, handler: ir.Handler, final: tuple[ir.Stmt, ...], state: State, raised: Raised, frame: Frame
    ) -> list[State]:
        with self._handles_at(_place(handler.body, frame), state):
            return super()._handled(handler, final, state, raised, frame)

    def _may_handle(self, handler: ir.Handler, state: State, frame: Frame) -> list[State]:
        with self._handles_at(_place(handler.body, frame), state):
            return super()._may_handle(handler, state, frame)

    def _finally(self, final: tuple[ir.Stmt, ...], states: list[State], returned: int, frame: Frame) -> list[State]:
        with self._handles_at(_place(final, frame), states[0] if states else None):
            return super()._finally(final, states, returned, frame)

    def _finally_beside(self, final: tuple[ir.Stmt, ...], left: tuple[int, int, int], frame: Frame) -> None:
        state = next((state for state, _ in frame.raises[left[0] :]), None)
        with self._handles_at(_place(final, frame), state):
            super()._finally_beside(final, left, frame)

    def leave(self, manager: Value, state: State, frame: Frame, site: Site) -> list[State]:
        """``manager.__exit__()``, perhaps because of an exception."""
        with self._handles_at(site, state):
            return super().leave(manager, state, frame, site)

    def _left_by_exception(self, raised: Raised, manager: Value, state: State, frame: Frame, site: Site) -> list[State]:
        with self._handles_at(site, state):
            return super()._left_by_exception(raised, manager, state, frame, site)

    @contextmanager
    def _handles_at(self, site: Site | None, state: State | None) -> Iterator[None]:
        """While the code at this place runs, its process handles an exception."""
        if site is None or state is None:
            yield
            return
        self._note(Why.HANDLES, "", site, state, ends=True, felt_by=(_ASKS,))
        yield
        self._close(site, state)

    # -- who asks for it ----------------------------------------------------------------------------------------------

    def _call_atom(self, atom: Atom, given: Given) -> Results:
        match atom:
            case Unknown(sym=(_, ".", str(name))):
                self._asks_what_is_handled(f"?.{name}", given.kwargs, given.state)
        return super()._call_atom(atom, given)

    def library_call(self, call: Call) -> Results:
        """A call of a library, which may show the exception that is handled."""
        self._asks_what_is_handled(self.library.canonical(call.path), call.kwargs, call.state)
        return super().library_call(call)

    def _foreign(self, path: str, atom: Lib | Bound, given: Given) -> Results:
        self._asks_what_is_handled(path, given.kwargs, given.state)
        return super()._foreign(path, atom, given)

    def _asks_what_is_handled(self, path: str, kwargs: Iterable[str], state: State) -> None:
        if path.startswith("traceback.") or "exc_info" in kwargs or self.library.traits.has(path, "tells-failure"):
            self._asks_for_context(state)

    def _attribute_of(self, atom: Atom, name: str, state: State, frame: Frame, site: Site) -> Results:
        if name == _CONTEXT:
            self._asks_for_context(state)
        return super()._attribute_of(atom, name, state, frame, site)

    def statement(self, node: ir.Stmt, state: State, frame: Frame) -> list[State]:
        """Run one statement; ``raise`` alone raises once more what is handled, wherever that is."""
        match node:
            case ir.Raise(exc=None) if not frame.handling:
                self._asks_for_context(state)
        return super().statement(node, state, frame)

    def _asks_for_context(self, state: State) -> None:
        for watch in self._reading(state):
            watch.called.add(_ASKS)


def _place(body: tuple[ir.Stmt, ...], frame: Frame) -> Site | None:
    return Site(frame.module, body[0].ordinal) if body else None
