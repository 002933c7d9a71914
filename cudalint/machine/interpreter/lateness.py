"""Iterators that a variable keeps: what they do to their process happens when something goes through them."""

from __future__ import annotations

from collections.abc import Callable

from cudalint.ir import nodes as ir
from cudalint.machine.frame import Frame, Given, Results
from cudalint.machine.heap import Closure, Generator, Scope
from cudalint.machine.interpreter.core import Core
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Lib, Value, only


class Lateness(Core):
    """Makes generators of what runs only when it is asked for elements.

    Most of them only compute. These are gone through where they are made, since more is known of what they give then.
    """

    def goes_late(self, function: Value) -> bool:
        """Whether a function of a library gives an iterator that has not begun."""
        atom = only(function)
        spec = self.library.function(atom.path) if isinstance(atom, Lib) else None
        return spec is not None and spec.get("iterator") is True

    def late_comprehension(
        self, node: ir.Comprehension, state: State, frame: Frame, now: Callable[[State], Results]
    ) -> Results:
        """A generator expression: what it goes through first is evaluated at once, and all else when it is asked."""
        before = state.clone()
        results = self._if_idle(state, frame, now)
        if results is not None:
            return results
        first = node.generators[0]
        body: ir.Stmt = ir.ExprStmt(node.ordinal, ir.Yield(node.element.ordinal, node.element, False))
        for clause in reversed(node.generators):
            for test in reversed(clause.tests):
                body = ir.If(test.ordinal, test, (body,), ())
            iterated = ir.Name(first.iter.ordinal, _ITERATED) if clause is first else clause.iter
            body = ir.For(node.ordinal, clause.target, iterated, (body,), ())
        return [
            (current, self._generator(node, body, {_ITERATED: value}, current, frame))
            for current, value in self.eval(first.iter, before, frame)
        ]

    def late_call(self, node: ir.Call, function: Value, given: Given, now: Callable[[State], Results]) -> Results:
        """A call that gives an iterator: its arguments are what they are now, what it does with them comes later."""
        variables = {_CALLED: function, **{f".{i}": value for i, value in enumerate(given.args)}}
        variables |= {f".{name}": value for name, value in given.kwargs.items()}
        state, frame = given.state, given.frame
        args = [ir.Arg(ir.Name(node.ordinal, f".{i}"), None, "") for i in range(len(given.args))]
        args += [ir.Arg(ir.Name(node.ordinal, f".{name}"), name, "") for name in given.kwargs]
        call = ir.Call(node.ordinal, ir.Name(node.ordinal, _CALLED), tuple(args))
        body = ir.ExprStmt(node.ordinal, ir.Yield(node.ordinal, call, True))
        before = state.clone()
        results = self._if_idle(state, frame, now)
        return results or [(before, self._generator(node, body, variables, before, frame))]

    def _if_idle(self, state: State, frame: Frame, now: Callable[[State], Results]) -> Results | None:
        """What going through it now gives; None where that does something to the process, or fails."""
        outcomes, raised, before = len(self.record.outcomes), len(frame.raises), state.process
        results = now(state)
        quiet = (outcomes, raised) == (len(self.record.outcomes), len(frame.raises))
        if quiet and results and all(after.process == before for after, _ in results):
            return results
        del self.record.outcomes[outcomes:], frame.raises[raised:]
        return None

    def _generator(
        self, node: ir.Expr, body: ir.Stmt, variables: dict[str, Value], state: State, frame: Frame
    ) -> Value:
        site = Site(frame.module, node.ordinal)
        code = ir.Code((body,), True, frozenset(), 1, frozenset())
        function = ir.Function(node.ordinal, _NAME, _NAME, (), False, code)
        closure = state.new(("late", site), Closure(function, frame.scope, frame.module, ()))
        scope = state.new(("late scope", site), Scope(variables, frame.scope, frame.module, "function"))
        return (state.new(("late generator", site), Generator(closure, scope, site)),)


# The variables of such a generator, which no program can name.
_ITERATED = ".iterated"
_CALLED = ".called"
_NAME = "<genexpr>"
