"""The bodies of modules and classes: what only binds names in them is bound at once."""

from __future__ import annotations

from cudalint.ir import nodes as ir
from cudalint.machine.frame import Frame
from cudalint.machine.heap import Closure, Scope
from cudalint.machine.interpreter.core import Core
from cudalint.machine.joining import merge_imported
from cudalint.machine.state import State
from cudalint.machine.toplevel import Bindings, gathered
from cudalint.structs import replace


class Bodies(Core):
    """Runs the bodies of modules and classes."""

    def _top_level(self, module: ir.Module, state: State, frame: Frame) -> list[State]:
        """The statements of a module."""
        if self.options.watched:
            return self.block(module.body, [state], frame)
        states = [state]
        for part in self._gathered(None, module.body, frame):
            if isinstance(part, Bindings):
                self._bind_all(part, states, frame)
            else:
                states = self.block((part,), states, frame)
                if self._importing and len(states) > 1:
                    states = merge_imported(states)
        return states

    def _class_body(self, node: ir.ClassDef, state: State, frame: Frame) -> list[State]:
        """The statements of a class."""
        if self.options.watched:
            return self.block(node.body, [state], frame)
        states = [state]
        for part in self._gathered(node.ordinal, node.body, frame):
            if isinstance(part, Bindings):
                self._bind_all(part, states, frame)
            else:
                states = self.block((part,), states, frame)
        return states

    def _gathered(self, ordinal: int | None, body: tuple[ir.Stmt, ...], frame: Frame) -> tuple[Bindings | ir.Stmt, ...]:
        """The statements of a module, or of a class by its number in it, worked out once per program."""
        known = self.program.gathered
        key = (frame.module, ordinal)
        if key not in known:
            known[key] = gathered(body, frame.module, self.program, self.library)
        return known[key]

    def _bind_all(self, bindings: Bindings, states: list[State], frame: Frame) -> None:
        self._steps += 1 + bindings.statements // 10
        for state in states:
            found = state.get(frame.scope)
            if not isinstance(found, Scope):
                continue
            in_class = found.kind == "class"
            variables = dict(found.variables)
            for name, given in bindings.names:
                if isinstance(given, Closure):
                    made = replace(given, scope=frame.scope, owner=frame.scope) if in_class else given
                    variables[name] = (state.new(("def", frame.module, given.function.ordinal), made),)
                else:
                    variables[name] = given
            state.store(frame.scope, replace(found, variables=variables))
