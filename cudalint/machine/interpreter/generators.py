"""Generators: they run at their first consumer, or step by step up to a ``yield``."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from cudalint.ir import nodes as ir
from cudalint.ir.walk import inner_statements
from cudalint.machine.frame import Around, Frame, Raised, Results, Steps
from cudalint.machine.heap import Closure, Generator, Scope, Sequence
from cudalint.machine.interpreter.core import Core
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import NONE, Ref, Value, only, unknown
from cudalint.structs import replace


class Generators(Core):
    """Runs generators."""

    def drained(self, results: Results, frame: Frame) -> Results:
        """Results whose generators have run: the unknown caller of an entry iterates what it returns."""
        done: Results = []
        for state, value in results:
            atom = only(value)
            found = state.get(atom) if isinstance(atom, Ref) else None
            if isinstance(atom, Ref) and isinstance(found, Generator):
                done.extend(self.consume(atom, found, state, frame))
            else:
                done.append((state, value))
        return done

    def consume(
        self,
        ref: Ref,
        generator: Generator,
        state: State,
        frame: Frame,
        around: Around | None = None,
        sent: Value | None = None,
    ) -> Results:
        """Run a generator at its first consumer; the value is what it yields.

        A context manager runs ``around`` where it yields: the body of the ``with`` statement. ``sent`` is what it is
        sent there.
        """
        closure = state.get(generator.closure)
        if not isinstance(closure, Closure):
            return [(state, unknown("generator", generator.site))]
        begun = None if generator.waits is None else Steps(generator.waits, stops=False)
        if sent is None and around is None and begun is None and _receives(closure.function.body):
            # It waits for what it is sent, and begins anew with that.
            state.store(_waiting(ref), self.afresh(generator, state))
        state.store(ref, Sequence("iterator", None, ()))
        found = state.get(generator.scope)
        args: list[Value] = []
        if isinstance(found, Scope) and closure.owner is not None and closure.function.params:
            args = [found.variables.get(closure.function.params[0].name, ())]
        name = closure.function.name
        message = f"runs the generator {name}()" if around is None else f"enters {name}()"
        message = f"awaits {name}()" if closure.function.is_async and not closure.function.is_generator else message
        results = self._run_body(
            closure, generator.scope, args, state, frame, generator.site, message, around, sent, begun
        )
        is_ordered = around is None and len(results) == 1 and _yields_in_order(closure.function.body, self.undecided)
        rows = self.yielded if is_ordered else ()
        for after, element in results:
            # More alternatives than a value keeps are gone with the call.
            is_row = len(rows) > 1 and all(set(row) <= set(element) for row in rows)
            after.store(ref, Sequence("iterator", rows if is_row else None, element, is_row))
        return results

    def step_of(self, ref: Ref, generator: Generator, state: State, frame: Frame, sent: Value, steps: Steps) -> Results:
        """Run a generator up to its next ``yield``."""
        closure, found = state.get(generator.closure), state.get(generator.scope)
        if not isinstance(closure, Closure):
            return [(state, unknown("generator", generator.site))]
        args: list[Value] = []
        if isinstance(found, Scope) and closure.owner is not None and closure.function.params:
            args = [found.variables.get(closure.function.params[0].name, ())]
        message = f"runs the generator {closure.function.name}()"
        site, scope = generator.site, generator.scope
        stepped = ref, generator
        return self._run_body(closure, scope, args, state, frame, site, message, None, sent, steps, stepped)

    def exhausted(self, values: Iterable[Value], state: State, frame: Frame) -> list[State]:
        """The paths on which the generators among some values have run to their end."""
        states = [state]
        for atom in map(only, values):
            following: list[State] = []
            for current in states:
                found = current.get(atom) if isinstance(atom, Ref) else None
                if isinstance(atom, Ref) and isinstance(found, Generator):
                    following.extend(after for after, _ in self.consume(atom, found, current, frame))
                else:
                    following.append(current)
            states = following
        return states

    def afresh(self, generator: Generator, state: State) -> Generator:
        """A generator that has not begun, with variables of its own."""
        found = state.get(generator.scope)
        if not isinstance(found, Scope):
            return generator
        return replace(generator, scope=state.new(("afresh", generator.site), found))

    def send(self, ref: Ref, value: Value, state: State, frame: Frame) -> Results:
        """``generator.send(value)`` of one that has begun: what it does with that value."""
        waiting = state.get(_waiting(ref))
        if not isinstance(waiting, Generator):
            return [(state, unknown("sent", ref.address))]
        running = (_waiting(ref), 0)
        if running in self._called:
            # It runs already: Python raises ValueError.
            frame.raises.append((state, Raised(None, ("ValueError",))))
            return []
        self._called.append(running)
        results = self.consume(ref, self.afresh(waiting, state), state, frame, None, value)
        self._called.pop()
        return results

    def _yield(self, node: ir.Yield, state: State, frame: Frame) -> Results:
        if node.value is None and frame.around is not None:
            return self._around(node, frame.around, NONE, state, frame)
        if frame.steps is not None and frame.steps.at == node.ordinal:
            return self._goes_on_at(frame.steps, node, state, frame)
        if frame.steps is not None and frame.steps.stops:
            given = [(state, NONE)] if node.value is None else self.eval(node.value, state, frame)
            frame.steps.left.extend((after, value, node.ordinal) for after, value in given)
            return []
        received = frame.sent or unknown("sent", frame.module, node.ordinal)
        if node.value is None:
            frame.yields.append(NONE)
            return [(state, received)]
        results = self.eval(node.value, state, frame)
        if frame.around is not None:
            return [r for after, value in results for r in self._around(node, frame.around, value, after, frame)]
        for after, value in results:
            if node.each:
                is_generator = isinstance(atom := only(value), Ref) and isinstance(after.get(atom), Generator)
                for _, rounds in self.iterate(value, after, frame, Site(frame.module, node.ordinal)):
                    frame.yields.extend(rounds)
                received = (self.given_back or received) if is_generator else received
            else:
                frame.yields.append(value)
        return [(s, received) for s, _ in results]

    def _goes_on_at(self, steps: Steps, node: ir.Yield, state: State, frame: Frame) -> Results:
        """A generator goes on, or ends, at the ``yield`` where it stands."""
        steps.at = None
        if steps.closes:
            frame.returns.append((state, NONE))
            return []
        if steps.thrown is not None:
            return self.fail(state, frame, steps.thrown)
        return [(state, frame.sent or unknown("sent", frame.module, node.ordinal))]

    def _around(self, node: ir.Yield, body: Around, value: Value, state: State, frame: Frame) -> Results:
        """The place where a context manager lets the body of its ``with`` statement run; a second round does not."""
        if state.second_round and node.ordinal in frame.entered:
            return [(state, NONE)]
        frame.entered.add(node.ordinal)
        before = state.stack
        state.stack = frame.outside
        self.yielding.append(frame)
        after = body(state, value)
        self.yielding.pop()
        for current in after:
            current.stack = before
        return [(current, NONE) for current in after]


def _yields_in_order(body: tuple[ir.Stmt, ...], undecided: Collection[int]) -> bool:
    """Whether nothing decides in which order a generator yields but its loops, and tests that each went one way."""
    for statement in body:
        inner = tuple(inner_statements(statement))
        is_decided = isinstance(statement, ir.If) and statement.ordinal not in undecided
        if is_decided or isinstance(statement, ir.For | ir.While | ir.With):
            if not _yields_in_order(inner, undecided):
                return False
        elif _yields(inner) or _receives((statement,)):
            return False
    return True


def _yields(body: tuple[ir.Stmt, ...]) -> bool:
    return any(
        (isinstance(statement, ir.ExprStmt | ir.Assign) and isinstance(statement.value, ir.Yield))
        or _yields(tuple(inner_statements(statement)))
        for statement in body
    )


def _waiting(ref: Ref) -> Ref:
    """Where a generator that waits for what it is sent is kept as it was before it began."""
    return Ref(("waiting", ref.address))


def _receives(body: tuple[ir.Stmt, ...]) -> bool:
    """Whether a generator binds what it is sent."""
    return any(
        (isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Yield) and not statement.value.each)
        or _receives(tuple(inner_statements(statement)))
        for statement in body
    )
