"""Blocks, and statements that only choose what runs next."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace

from cudalint.ir import nodes as ir
from cudalint.machine import operators
from cudalint.machine.assumptions import Asking
from cudalint.machine.frame import Frame
from cudalint.machine.heap import Scope
from cudalint.machine.interpreter.core import Core
from cudalint.machine.interpreter.room import room
from cudalint.machine.questions import plain
from cudalint.machine.state import State
from cudalint.machine.trace import Site
from cudalint.machine.values import NONE, Value


@room
class Statements(Core):
    """Runs blocks of statements."""

    def block(self, body: Iterable[ir.Stmt], states: list[State], frame: Frame) -> list[State]:
        """Run statements on every state; what leaves early is gathered in the frame."""
        for statement in body:
            following: list[State] = []
            for state in states:
                following.extend(self.statement(statement, state, frame))
            states = self.joined(following)
            if not states:
                break
        return states

    def _expr_stmt(self, node: ir.ExprStmt, state: State, frame: Frame) -> list[State]:
        if isinstance(node.value, ir.Call):
            return [s for s, _ in self._call(node.value, state, frame, statement=True)]
        return [s for s, _ in self.eval(node.value, state, frame)]

    def _return(self, node: ir.Return, state: State, frame: Frame) -> list[State]:
        if node.value is None:
            frame.returns.append((state, NONE))
            return []
        frame.returns.extend(self.eval(node.value, state, frame))
        return []

    def _if(self, node: ir.If, state: State, frame: Frame) -> list[State]:
        yes, no = self.branch(node.test, state, frame)
        return [*self.block(node.body, self.joined(yes), frame), *self.block(node.orelse, self.joined(no), frame)]

    def _break(self, node: ir.Break, state: State, frame: Frame) -> list[State]:
        frame.breaks.append(state)
        return []

    def _continue(self, node: ir.Continue, state: State, frame: Frame) -> list[State]:
        frame.continues.append(state)
        return []

    def _scoping(self, node: ir.Scoping, state: State, frame: Frame) -> list[State]:
        found = state.get(frame.scope)
        if isinstance(found, Scope) and found.kind != "module":
            outside = {**found.outside, **dict.fromkeys(node.names, node.kind)}
            state.store(frame.scope, replace(found, outside=outside, variables=dict(found.variables)))
        return [state]

    def _assert(self, node: ir.Assert, state: State, frame: Frame) -> list[State]:
        asked = self.record.asked
        known = len(asked)
        yes, no = self.branch(node.test, state, frame)
        if not frame.tries:
            self.record.refused.extend(failed.facts for failed in no)
            asked.update({question: replace(asked[question], required=True) for question in tuple(asked)[known:]})
        return yes

    def _match(self, node: ir.Match, state: State, frame: Frame) -> list[State]:
        result: list[State] = []
        for current, subject in self.eval(node.subject, state, frame):
            result.extend(self._cases(node, subject, current, frame))
        return result

    def _cases(self, node: ir.Match, subject: Value, state: State, frame: Frame) -> list[State]:
        result: list[State] = []
        remaining: list[State] = [state]
        for case in node.cases:
            following: list[State] = []
            for current in remaining:
                verdict: bool | None = None
                asked: Hashable | None = None
                if case.irrefutable:
                    verdict = True
                elif case.value is not None and case.guard is None:
                    found = self.eval(case.value, current, frame)
                    if found:
                        sym = ("case", frame.module, case.value.ordinal)
                        equal = operators.compare("==", subject, found[0][1], sym)
                        verdict, asked = self.truth(equal, current)
                if verdict is not False:
                    taken = current if verdict else current.clone()
                    if verdict is None and asked is not None:
                        if isinstance(case.value, ir.Const):
                            here = Site(frame.module, node.subject.ordinal)
                            self.record.asked.setdefault(plain(asked, True)[0], Asking(here, here, True))
                        taken.assume(asked, True)
                        current.assume(asked, False)
                    for name in case.binds:
                        self.bind(name, subject, taken, frame)
                    result.extend(self.block(case.body, [taken], frame))
                if verdict is not True:
                    following.append(current)
            remaining = following
        return self.joined([*result, *remaining])
