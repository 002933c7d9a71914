"""Generators that are run step by step: each from the ``yield`` where it stands to the next one.

A loop runs a generator as a whole. Where a program asks for one element (``next``, ``send``), what is behind the next
``yield`` is left for when it asks again: until then other code runs.
"""

from __future__ import annotations

from cudalint.ir import nodes as ir
from cudalint.ir.yields import has_steps, holds
from cudalint.machine.frame import Frame, Raised, Results, Steps
from cudalint.machine.heap import Closure, Generator, Scope, Sequence
from cudalint.machine.interpreter.core import Core
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import NONE, Ref, Value

_ENDED = Raised(None, ("StopIteration",))


class Stepping(Core):
    """Runs generators step by step."""

    def can_step(self, generator: Generator, state: State) -> bool:
        """Whether a generator can be run up to its next ``yield``, and go on from there."""
        closure = state.get(generator.closure)
        return isinstance(closure, Closure) and has_steps(closure.function)

    def advance(
        self,
        ref: Ref,
        generator: Generator,
        state: State,
        frame: Frame,
        sent: Value = NONE,
        closes: bool = False,
        thrown: Raised | None = None,
    ) -> tuple[Results, list[State]]:
        """What a generator gives at its next ``yield``, and the paths on which it ends before."""
        running = (ref, -1)
        if running in self._called:
            # It runs already: Python raises ValueError.
            return self.fail(state, frame, Raised(None, ("ValueError",))), []
        if closes and generator.waits is None:
            state.store(ref, _exhausted())
            return [], [state]
        if thrown is not None and generator.waits is None:
            state.store(ref, _exhausted())
            return self.fail(state, frame, thrown), []
        self._called.append(running)
        results = self.step_of(ref, generator, state, frame, sent, Steps(generator.waits, closes=closes, thrown=thrown))
        self._called.pop()
        given = [(after, value) for after, value in results if isinstance(after.get(ref), Generator)]
        return given, [after for after, _ in results if not isinstance(after.get(ref), Generator)]

    def next_of(self, ref: Ref, generator: Generator, state: State, frame: Frame, sent: Value = NONE) -> Results:
        """``next(generator)`` and ``generator.send(x)``: at its end, an exception."""
        given, ended = self.advance(ref, generator, state, frame, sent)
        for after in ended:
            self.fail(after, frame, _ENDED)
        return given

    def throw(self, ref: Ref, generator: Generator, state: State, frame: Frame, exception: Value) -> Results:
        """``generator.throw(error)``: the ``yield`` where it stands raises that."""
        thrown = self.as_raised(exception, state)
        if not thrown.names:
            thrown = Raised(None, ("Exception",), hidden=True)
        given, ended = self.advance(ref, generator, state, frame, thrown=thrown)
        for after in ended:
            self.fail(after, frame, _ENDED)
        return given

    def resumed(self, node: ir.Stmt, state: State, frame: Frame, at: int) -> list[State]:
        """Run a statement from a ``yield`` within it."""
        match node:
            case ir.If():
                return self.block(node.body if holds(node.body, at) else node.orelse, [state], frame)
            case ir.While():
                states, left = self._rest_of_round(node.body, state, frame)
                return self.joined([*left, *(s for c in states for s in self.statement(node, c, frame))])
            case ir.For():
                states, left = self._rest_of_round(node.body, state, frame)
                return self.joined([*left, *(s for c in states for s in self._rest_of_loop(node, c, frame))])
            case ir.With():
                return self._rest_of_with(node, state, frame)
            case ir.Try() if not holds(node.body, at):
                handler = next(handler for handler in node.handlers if holds(handler.body, at))
                return self.block(handler.body, [state], frame)
        return self.statement(node, state, frame)

    def _rest_of_round(self, body: tuple[ir.Stmt, ...], state: State, frame: Frame) -> tuple[list[State], list[State]]:
        """The paths on which the next round of a loop follows, and those that leave it."""
        outer = frame.breaks, frame.continues
        frame.breaks, frame.continues = [], []
        states = self.joined([*self.block(body, [state], frame), *frame.continues])
        left = frame.breaks
        frame.breaks, frame.continues = outer
        return states, left

    def _rest_of_loop(self, node: ir.For, state: State, frame: Frame) -> list[State]:
        """The rounds of a loop that were not run; one that may go on for longer ends, or has another one."""
        waiting = _hidden(state, frame, _rest(node))
        found = state.get(waiting[0]) if waiting and isinstance(waiting[0], Ref) else None
        if not isinstance(found, Sequence):
            return [state]
        rounds, ended = list(found.items or ()), []
        if not rounds and found.open:
            rounds = [found.element]
            ended = self.block(node.orelse, [state.clone()], frame)
        if not rounds:
            return self.block(node.orelse, [state], frame)
        return [*ended, *self._rounds(node, rounds, rounds, state, waiting, frame)]

    def keep_rest(
        self, node: ir.For, waiting: list[Value], last: Value, more: bool, states: list[State], frame: Frame
    ) -> None:
        """Remember which rounds of a loop are still to come, where a generator may stand within one."""
        for state in states:
            rest = Sequence("iterator", tuple(waiting), last, more)
            kept = state.new(("rest", frame.module, node.ordinal), rest)
            state.set_variable(frame.scope, _rest(node), (kept,))

    def keep_manager(self, node: ir.With, position: int, manager: Value, state: State, frame: Frame) -> None:
        """Remember what a ``with`` statement entered, where a generator may stand within it."""
        state.set_variable(frame.scope, _manager(node, position), manager)

    def _rest_of_with(self, node: ir.With, state: State, frame: Frame) -> list[State]:
        returned = len(frame.returns)
        states = self.block(node.body, [state], frame)
        leaving, frame.returns[returned:] = frame.returns[returned:], []
        frame.returns.extend((s, value) for after, value in leaving for s in self._managers_left(node, after, frame))
        return self.joined([s for after in self.joined(states) for s in self._managers_left(node, after, frame)])

    def _managers_left(self, node: ir.With, state: State, frame: Frame) -> list[State]:
        """The paths after the managers of a ``with`` statement were left, the last one first."""
        states = [state]
        for position in reversed(range(len(node.items))):
            site = Site(frame.module, node.items[position][0].ordinal)
            name = _manager(node, position)
            states = [s for c in states for s in self.leave(_hidden(c, frame, name) or NONE, c, frame, site)]
        return states


def _exhausted() -> Sequence:
    """A generator that has ended."""
    return Sequence("iterator", (), ())


def _hidden(state: State, frame: Frame, name: str) -> Value:
    found = state.get(frame.scope)
    return found.variables.get(name, ()) if isinstance(found, Scope) else ()


def _rest(node: ir.For) -> str:
    return f"<rest {node.ordinal}>"


def _manager(node: ir.With, position: int) -> str:
    return f"<manager {node.ordinal} {position}>"
