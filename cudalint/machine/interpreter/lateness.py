"""Iterators that a variable keeps: what they do to their process happens when something goes through them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cudalint.ir import nodes as ir
from cudalint.machine.frame import Frame, Given, Results
from cudalint.machine.heap import Closure, Generator, Scope
from cudalint.machine.interpreter.core import Core
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import Lib, Ref, Value, only


class Lateness(Core):
    """Makes generators of what runs only when it is asked for elements.

    Most of them only compute. These are gone through where they are made, since more is known of what they give then.
    """

    def goes_late(self, function: Value) -> bool:
        """Whether a function of a library gives an iterator that has not begun."""
        atom = only(function)
        spec = self.library.function(atom.path) if isinstance(atom, Lib) else None
        return spec is not None and spec.get("iterator") is True

    def kept_value(self, node: ir.Expr, state: State, frame: Frame) -> Results:
        """The value of an expression that is kept or given on: iterators in it have not begun."""
        before, self._unbegun = self._unbegun, tuple(_parts(node))
        results = self.eval(node, state, frame)
        self._unbegun = before
        return results

    def stays_unbegun(self, node: ir.Expr) -> bool:
        """Whether an iterator that an expression makes is not gone through there."""
        return any(one is node for one in self._unbegun)

    def unbegun_arguments(self, node: ir.Call, function: Value, state: State) -> tuple[ir.Expr, ...]:
        """The arguments of a call that are handed on as they are: iterators among them have not begun."""
        is_own = bool(function) and all(isinstance(a, Ref) and isinstance(state.get(a), Closure) for a in function)
        if not is_own and not (self.stays_unbegun(node) and self.goes_late(function)):
            return ()
        return tuple(part for arg in node.args if not arg.star for part in _parts(arg.value))

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


def _parts(node: ir.Expr) -> Iterator[ir.Expr]:
    """An expression, and what it is or holds without going through it."""
    yield node
    inside: tuple[ir.Expr, ...] = ()
    match node:
        case ir.Display(items=items):
            inside = items
        case ir.IfExp(body=body, orelse=orelse):
            inside = (body, orelse)
    for part in inside:
        yield from _parts(part)


# The variables of such a generator, which no program can name.
_ITERATED = ".iterated"
_CALLED = ".called"
_NAME = "<genexpr>"
